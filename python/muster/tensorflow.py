"""Gives TensorFlow's sessions the calls that change who is in a running job.

    import tensorflow.compat.v1 as tf
    import muster.tensorflow

    with tf.Session("grpc://ps0:2222") as sess:
        sess.add_onlineworker(2, "worker2:2222")

When the target of a session is a server of muster, the session has

    add_onlineworker(index, address, replace=False, job_name="worker")
    remove_onlineworker(index, job_name="worker")
    online_workers(job_name="worker")

as muster.add_onlineworker and so on have them; errors are those of tf.errors.
It does not matter whether the session has a graph or runs a step meanwhile: the
calls go beside it, to the same server. InteractiveSession has them too, and
MonitoredSession, where they are those of the session inside.

Sessions also take a target with the blanks that pages put after colons,
"grpc: //ps0:2222", which TensorFlow by itself does not know.
"""
import functools

from tensorflow.python.client import session as _session
from tensorflow.python.training import monitored_session as _monitored

from muster import cluster as _cluster
from muster._call import error as _error

INVALID_ARGUMENT, UNAVAILABLE = 3, 14


def _target(sess):
    target = sess.sess_str
    if not target:
        raise _error(INVALID_ARGUMENT,
                     "This session runs in its own process and has no cluster: "
                     "give it a server of muster's as its target, for example "
                     "tf.compat.v1.Session('grpc://ps0:2222')")
    return target


def add_onlineworker(self, index, address, replace=False, job_name="worker",
                     timeout=_cluster.TIMEOUT_S):
    """Add worker `index` at `address`; see muster.add_onlineworker."""
    return _cluster.add_onlineworker(_target(self), index, address, replace,
                                     job_name, timeout)


def remove_onlineworker(self, index, job_name="worker",
                        timeout=_cluster.TIMEOUT_S):
    """Take worker `index` out; see muster.remove_onlineworker."""
    return _cluster.remove_onlineworker(_target(self), index, job_name, timeout)


def online_workers(self, job_name="worker", timeout=_cluster.TIMEOUT_S):
    """The members of a job; see muster.online_workers."""
    return _cluster.online_workers(_target(self), job_name, timeout)


METHODS = (add_onlineworker, remove_onlineworker, online_workers)


def _of_inner(method):
    """The same for a session that wraps another, which it may lose."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        inner = self._tf_sess()
        if inner is None:
            raise _error(UNAVAILABLE, "The session is closed, or is just being "
                         "made anew")
        return method(inner, *args, **kwargs)
    return call


def _without_blanks(init):
    """BaseSession.__init__ for targets such as "grpc: //ps0: 2222"."""
    @functools.wraps(init)
    def call(self, target="", *args, **kwargs):
        if isinstance(target, str) and target.startswith("grpc"):
            target = "".join(target.split())
        init(self, target, *args, **kwargs)
    return call


def _install():
    base = _session.BaseSession
    if hasattr(base, "add_onlineworker"):
        return  # the module was loaded anew
    base.__init__ = _without_blanks(base.__init__)
    for method in METHODS:
        setattr(base, method.__name__, method)
        setattr(_monitored._MonitoredSession, method.__name__,
                _of_inner(method))


_install()
