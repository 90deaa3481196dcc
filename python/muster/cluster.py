"""Who is in a running job: workers that are added and removed while it trains.

Any one parameter server of muster's may be asked; it tells the others. Asking
every one of them, as scripts do, is fine: the second call changes nothing.
"""
import operator
import typing

from muster import _muster
from muster._call import call

TIMEOUT_S = 10
STATES = ("unknown", "alive", "gone")


class Change(typing.NamedTuple):
    """What became of a change."""
    changed: bool  # False: it stood so before
    reached: int  # parameter servers that have it on disk
    missed: int  # those that get it when they are back


class Member(typing.NamedTuple):
    """A task of the job, as the server that was asked sees it."""
    job_name: str
    task_index: int
    address: str
    state: str  # "alive", "gone", "unknown": nothing was heard of it yet
    since: float  # it is a member at this address; time.time()
    state_since: typing.Optional[float]
    heard: typing.Optional[float]  # last sign of life
    sessions: int  # of its master on the server that was asked


def _text(value, what):
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise TypeError("%s must be a string, not %r" % (what, value))
    return value


def _target(value):
    return _text(value, "target")


def milliseconds(seconds):
    """A timeout as the library takes it."""
    if seconds is None:
        seconds = TIMEOUT_S
    if not seconds > 0:
        raise ValueError("timeout must be above 0, not %r" % seconds)
    return max(1, int(seconds * 1000))


def _when(ms):
    return ms / 1000 if ms else None


def add_onlineworker(target, index, address, replace=False, job_name="worker",
                     timeout=TIMEOUT_S):
    """Add worker `index` at `address` ("host:port") to a job that trains.

    target: "grpc://host:port" of any parameter server. An index whose worker
    is gone moves to the new address; if it is alive that is an error, unless
    `replace`. timeout: in seconds. Returns a Change.
    """
    return Change(*call(
        _muster.add_worker, _target(target), operator.index(index),
        _text(address, "address"), _text(job_name, "job_name"), bool(replace),
        milliseconds(timeout)))


def remove_onlineworker(target, index, job_name="worker", timeout=TIMEOUT_S):
    """Take worker `index` out of a job that trains. Returns a Change."""
    return Change(*call(
        _muster.remove_worker, _target(target), operator.index(index),
        _text(job_name, "job_name"), None, milliseconds(timeout)))


def online_workers(target, job_name="worker", timeout=TIMEOUT_S):
    """The members of a job of the cluster, as a list of Member.

    job_name: None for all jobs, the parameter servers among them.
    """
    found = call(_muster.list_members, _target(target), milliseconds(timeout))
    return [
        Member(job, task, address, STATES[state], since / 1000,
               _when(state_since), _when(heard), sessions)
        for job, task, address, state, since, state_since, heard, sessions
        in found if address and job_name in (None, job)]
