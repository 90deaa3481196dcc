"""muster.Membership/Watch: who is in a job, as a stream of changes.

Any gRPC can read it; here it is grpcio, with the messages taken apart by hand.
"""
import subprocess

import grpc
import pytest

import cluster as cl
import wire

WAIT_S = 60
BEAT_S = 10  # a stream without news says so that often


class Watch:
    """A stream. `next` is the next message that has members."""

    def __init__(self, address, revision=0, instance=0):
        self.channel = grpc.insecure_channel(address)
        self.stream = self.channel.unary_stream("/muster.Membership/Watch")(
            wire.f(1, revision) + wire.f(2, instance), timeout=WAIT_S)
        self.revision = self.instance = None

    def message(self):
        """{(job, task): address or None}"""
        m = wire.parse(next(self.stream))
        self.revision, self.instance = m[2][0], m[3][0]
        members = [wire.parse(one) for one in m.get(1, [])]
        return {(one[1][0].decode(), one.get(2, [0])[0]):
                one[3][0].decode() if 3 in one else None for one in members}

    def next(self):
        while True:
            m = self.message()
            if m:
                return m

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stream.cancel()
        self.channel.close()


def muster(*args):
    return subprocess.run([cl.muster(), *map(str, args)], check=True, text=True,
                          capture_output=True, timeout=WAIT_S).stdout


@pytest.fixture
def job(tmp_path, kind, monkeypatch):
    if kind != "muster":
        pytest.skip("needs servers of ours")
    monkeypatch.setenv("MUSTER_STATE_DIR", str(tmp_path / "state"))
    with cl.Cluster(tmp_path / "job", workers=1, served=[0]) as c:
        c.add = lambda i, address: muster(
            "add-worker", "--ps_hosts=" + c.hosts("ps"), i, address)
        c.remove = lambda i: muster(
            "remove-worker", "--ps_hosts=" + c.hosts("ps"), i)
        yield c


@pytest.mark.parametrize("task", ["ps", "worker"])
def test_every_change_comes_when_it_is_made(job, task):
    with Watch(job.ports[task][0].address) as w:
        assert sorted(w.next()) == [("ps", 0), ("ps", 1), ("worker", 0)]
        for i in range(5, 10):
            job.add(i, "127.0.0.1:%d" % i)
            assert w.next() == {("worker", i): "127.0.0.1:%d" % i}
        job.remove(7)
        assert w.next() == {("worker", 7): None}


def test_a_stream_goes_on_where_another_ended(job):
    ps = job.ports["ps"][0].address
    with Watch(ps) as w:
        w.next()
    job.add(5, "127.0.0.1:5")
    with Watch(ps, w.revision, w.instance) as w:
        assert w.message() == {("worker", 5): "127.0.0.1:5"}
    with Watch(ps, w.revision, w.instance) as w:
        assert w.message() == {}  # nothing is new, and it says so at once
    with Watch(ps, w.revision, w.instance + 1) as w:
        assert len(w.message()) == 4  # of another start of the server


def test_one_that_reads_late_gets_where_it_led(job):
    ps = job.ports["ps"][0].address
    with Watch(ps) as w:
        w.next()
        for port in range(1, 11):
            job.add(5, "127.0.0.1:%d" % port)
            job.remove(5)
        job.add(6, "127.0.0.1:6")
        seen, messages = {}, 0
        while ("worker", 6) not in seen:
            seen.update(w.next())
            messages += 1
        assert seen == {("worker", 5): None, ("worker", 6): "127.0.0.1:6"}
        assert messages <= 21


@pytest.mark.sanitize
def test_a_server_that_stops_ends_its_streams(job):
    with Watch(job.ports["ps"][1].address) as w:
        w.next()
        job.ps[1].stop(15)
        assert job.ps[1].code == 0, job.ps[1].text()
        with pytest.raises(grpc.RpcError) as e:
            w.next()
        assert e.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.sanitize
def test_hundred_that_come_and_go(job):
    ps = job.ports["ps"][0].address
    watches = [Watch(ps) for _ in range(100)]
    for w in watches:
        w.next()
    for w in watches[::2]:
        w.__exit__()
    job.add(5, "127.0.0.1:5")
    for w in watches[1::2]:
        assert w.next() == {("worker", 5): "127.0.0.1:5"}
    for w in watches[1::2]:
        w.__exit__()
    with Watch(ps) as w:
        assert len(w.next()) == 4


def test_a_silent_one_is_heard_of(job):
    with Watch(job.ports["ps"][0].address) as w:
        w.next()
        cl.wait("nothing is new, and it says so", lambda: w.message() == {},
                3 * BEAT_S, tasks=job.ps)


@pytest.mark.sanitize
def test_a_worker_goes_on_when_the_ps_it_watches_is_gone(job):
    """What is added while it has no stream, it hears of from the other ps."""
    with Watch(job.ports["worker"][0].address) as w:
        w.next()
        job.ps[0].stop()
        job.add(5, "127.0.0.1:5")
        assert w.next() == {("worker", 5): "127.0.0.1:5"}
        job.restart_ps(0)
        job.add(6, "127.0.0.1:6")
        assert w.next() == {("worker", 6): "127.0.0.1:6"}
