"""Who is in a job, changed while it runs, by all that faces people.

Real `muster serve` tasks, and against them: the program (add-worker,
remove-worker, status, serve --join), the Python package with and without
TensorFlow, the C API, and the script that users wrote down when they asked for
this, with TensorFlow's own session. What the servers make of it in every order
of events is tried in tests/sim and in the other tests here.
"""
import contextlib
import json
import os
import signal
import subprocess

import pytest

import cluster as cl

SEED = """
import tensorflow.compat.v1 as tf
import muster.tensorflow
def main (_):
    with tf.Session ('grpc: //%(ps0)s') as sess:
        sess.add_onlineworker (2, '%(worker2)s')
    with tf.Session ('grpc: //%(ps1)s') as sess:
        sess.add_onlineworker (2, '%(worker2)s')
if __name__ == "__main__":
    tf.app.run ()
"""


class Job(cl.Cluster):
    """Two ps and two workers of ours, and places for more workers."""

    def __init__(self, directory, ps=("muster", "muster"), served=(0, 1)):
        super().__init__(directory, ps, 2, served)
        self.more = []

    def __exit__(self, *exc):
        super().__exit__(*exc)
        for port in self.more:
            port.release()

    def place(self):
        self.more.append(cl.Port())
        return self.more[-1].address

    def address(self, job, i):
        return self.ports[job][i].address

    def target(self, job="ps", i=0):
        return "grpc://" + self.address(job, i)

    def cli(self, *args, code=0):
        """What the program says on standard output, or on the other."""
        done = subprocess.run([cl.muster(), *map(str, args)], text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == code, (args, done)
        return done.stderr if code else done.stdout

    def add(self, *args, **kwargs):
        return self.cli("add-worker", "--ps_hosts=" + self.hosts("ps"), *args,
                        **kwargs)

    def remove(self, *args, **kwargs):
        return self.cli("remove-worker", "--ps_hosts=" + self.hosts("ps"),
                        *args, **kwargs)

    def status(self, job="ps", i=0, *args):
        """{(job, task): member} as one task tells it."""
        told = json.loads(self.cli("status", "--json", self.target(job, i),
                                   *args))
        return {(m["job"], m["task"]): m for m in told["members"]}

    def sees(self, what, condition, job="ps", i=0, *args):
        """Waits until the members, as a task tells them, are so."""
        return cl.wait(what, lambda: condition(self.status(job, i, *args)),
                       tasks=self.servers())


@pytest.fixture
def job(tmp_path, kind, monkeypatch):
    if kind != "muster":
        pytest.skip("needs servers of ours")
    monkeypatch.setenv("MUSTER_STATE_DIR", str(tmp_path / "state"))
    made = []

    def make(**kwargs):
        made.append(Job(tmp_path / "job", **kwargs))
        return made[-1].__enter__()

    yield make
    for j in made:
        j.__exit__()


def all_alive(members):
    return all(m["state"] == "alive" for m in members.values())


# --- The program ------------------------------------------------------------


def test_program_adds_shows_and_removes(job):
    j = job()
    there = j.place()
    before = j.sees("all are alive",
                    lambda m: all_alive(m) and m)
    assert sorted(before) == [("ps", 0), ("ps", 1), ("worker", 0),
                              ("worker", 1)]
    assert {m["kind"] for m in before.values()} == {"muster"}

    assert j.add(2, there) == (
        "/job:worker/task:2 is at %s; 2 ps have it\n" % there)
    host, port = there.split(":")
    assert j.add(2, "%s: %s" % (host, port)) == (
        "/job:worker/task:2 was at %s already; 2 ps have it\n" % there)
    for task in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]:
        j.sees("%s/%d knows it" % task,
               lambda m: m.get(("worker", 2), {}).get("address") == there,
               *task)
    assert "worker/2  " + there in j.cli("status", j.target())

    assert j.remove(2) == "/job:worker/task:2 is removed; 2 ps have it\n"
    assert j.remove(2) == (
        "/job:worker/task:2 was removed already; 2 ps have it\n")
    assert ("worker", 2) not in j.status()
    assert j.status("ps", 0, "--all")["worker", 2]["state"] == "removed"


def test_program_says_what_is_wrong_and_changes_nothing(job):
    j = job()
    other = j.place()
    before = j.sees("all are alive", lambda m: all_alive(m) and m)
    said = j.add(1, other, code=1)
    assert j.address("worker", 1) in said and "replace" in said
    assert "is the address of /job:worker/task:1" in j.add(
        5, j.address("worker", 1), code=1)
    assert "no /job:worker/task:9" in j.remove(9, code=1)
    assert "no port" in j.add(2, "worker2", code=2)
    assert "999999" in j.add(1000000, other, code=2)
    after = j.status()
    assert {k: m["address"] for k, m in after.items()} == {
        k: m["address"] for k, m in before.items()}
    j.add("--replace", 1, other)
    assert j.status()["worker", 1]["address"] == other


def test_one_ps_suffices_and_the_other_learns_it_when_it_is_back(job):
    j = job()
    there = j.place()
    j.sees("all are alive", all_alive)
    j.ps[0].stop()
    assert j.add(2, there) == (
        "/job:worker/task:2 is at %s; 1 ps has it, 1 more will when it is "
        "back\n" % there)
    j.restart_ps(0)  # with the list it had
    j.sees("ps 0 knows it", lambda m: ("worker", 2) in m)
    for i in (0, 1):
        j.ps[i].stop()
    for i in (0, 1):
        j.restart_ps(i)
        assert j.status("ps", i)["worker", 2]["address"] == there


def test_worker_that_joins_by_itself_is_shown_and_leaves(job):
    j = job()
    port = j.place()
    joined = cl.Task("joined", [cl.muster(), "serve",
                                "--join=" + j.address("ps", 1),
                                "--bind=" + port], j.directory / "joined.log")
    with contextlib.ExitStack() as stack:
        stack.callback(joined.stop)
        joined.start()
        j.sees("it is there and alive", lambda m: m.get(
            ("worker", 2), {}).get("state") == "alive")
        assert j.status()["worker", 2]["address"] == port
        assert "/job:worker/task:2 ready" in joined.text()
        joined.stop(signal.SIGTERM)
        assert joined.code == 0, joined.text()
    j.sees("it has left", lambda m: ("worker", 2) not in m)


def test_status_watches(job):
    j = job()
    there = j.place()
    log = j.directory / "watch.log"
    watch = cl.Task("watch", [cl.muster(), "status", "--watch", "--json",
                              j.target()], log)
    with contextlib.ExitStack() as stack:
        stack.callback(watch.stop)
        watch.start()
        cl.wait("a first line", lambda: "\n" in watch.text(), tasks=[watch])
        j.add(2, there)
        cl.wait("the change is told", lambda: there in watch.text(),
                tasks=[watch])
        j.ps[0].stop()
        cl.wait("it says that nobody answers",
                lambda: "Nobody answers" in watch.text(), tasks=[watch])
        lines = watch.text().count("\n{")
        j.restart_ps(0)
        cl.wait("it goes on", lambda: watch.text().count("\n{") > lines,
                tasks=[watch])


def test_status_tells_tensorflow_from_ours(job):
    j = job(ps=["muster", "tensorflow"])
    members = j.sees("the kinds are known", lambda m: all(
        v["kind"] for v in m.values()) and m)
    assert members["ps", 0]["kind"] == "muster"
    assert members["ps", 1]["kind"] == "tensorflow"
    said = j.cli("status", j.target("ps", 1), code=1)
    assert "is not a server of muster" in said
    # The list is that of the ps of ours, whichever comes first.
    assert "is at w9:1; 1 ps has it" in j.cli(
        "add-worker", "--ps_hosts=%s,%s" % (j.address("ps", 1),
                                            j.address("ps", 0)), 9, "w9:1")


# --- C ----------------------------------------------------------------------


def test_c_program(job):
    j = job()
    there, other = j.place(), j.place()
    peer = cl.Task("peer", [os.path.join(os.path.dirname(cl.muster()), "tests",
                                         "elastic_peer"),
                            j.target(), 2, there], j.directory / "peer.log")
    with contextlib.ExitStack() as stack:
        stack.callback(peer.stop)
        peer.start()
        cl.wait("it saw its own change", lambda: "seen:" in peer.text(),
                others=[peer])
        j.add(3, other)
        cl.wait("it ends", lambda: not peer.alive(), others=[peer])
    assert peer.code == 0, peer.text()
    lines = peer.text().split("\n")
    assert lines[0] == "added: 1 2 0"
    assert "seen: 2=%s" % there in lines
    assert "seen: 3=%s" % other in lines
    assert lines[-2].startswith("list: 0=") and "2=removed" in lines[-2]


# --- Python -----------------------------------------------------------------


def python(program, *args, code=0, interpreter=None):
    done = subprocess.run(
        [interpreter or cl.python(), "-c", program, *args], text=True,
        capture_output=True, timeout=120,
        env={**os.environ, "PYTHONPATH": cl.package(),
             "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


WITHOUT_TENSORFLOW = """
import sys, muster
target, address = sys.argv[1:]

def fails(kind, text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as e:
        assert text in str(e), str(e)
    else:
        raise AssertionError("no error")

assert muster.add_onlineworker(target, 2, address) == (True, 2, 0)
assert muster.add_onlineworker(target, 2, address) == (False, 2, 0)
two = muster.online_workers(target)[2]
assert (two.job_name, two.task_index, two.address) == ("worker", 2, address)
assert [m.task_index for m in muster.online_workers(target, None)] == [
    0, 1, 0, 1, 2]
assert muster.remove_onlineworker(target, 2).changed
assert len(muster.online_workers(target)) == 2
fails(ValueError, "no port", muster.add_onlineworker, target, 2, "x")
fails(ValueError, "not -1", muster.add_onlineworker, target, -1, address)
fails(TypeError, "", muster.add_onlineworker, target, "2", address)
fails(RuntimeError, "no /job:worker/task:9", muster.remove_onlineworker,
      target, 9)
fails(ConnectionError, "Nobody answers", muster.online_workers,
      "127.0.0.1:1")
assert "tensorflow" not in sys.modules
"""


def test_python_without_tensorflow(job):
    j = job()
    python(WITHOUT_TENSORFLOW, j.target(), j.place())


JOINS = """
import sys, muster
target, dir = sys.argv[1:]
server = muster.Server.join_cluster(target)
assert server.server_def.task_index == 2
two = muster.online_workers(target)[2]
assert server.target == "grpc://" + two.address
again = muster.Server.join_cluster(target, start=False)
assert again.server_def.task_index == 3
again.stop()
assert len(muster.online_workers(target)) == 3
server.stop()
assert len(muster.online_workers(target)) == 2

ps = muster.Server({"ps": ["localhost:0"], "worker": ["localhost:1"]}, "ps", 0,
                   state_dir=dir, lease=5)
assert muster.add_onlineworker(ps.target, 7, "w7:1") == (True, 1, 0)
ps.stop()
ps = muster.Server({"ps": ["localhost:0"]}, "ps", 0, state_dir=dir)
assert muster.online_workers(ps.target)[0].address == "w7:1"
ps.stop()
ps = muster.Server({"ps": ["localhost:0"]}, "ps", 0, state_dir=dir, job_id=8)
assert not muster.online_workers(ps.target)
ps.stop()
ps = muster.Server({"ps": ["localhost:0"]}, "ps", 0, state_dir="none")
assert not muster.online_workers(ps.target)
assert "tensorflow" not in sys.modules
"""


def test_python_server_joins_and_remembers(job, tmp_path):
    j = job()
    python(JOINS, j.target(), str(tmp_path / "other"))


WITH_TENSORFLOW = """
import sys, muster
import tensorflow.compat.v1 as tf
import muster.tensorflow
tf.disable_v2_behavior()
target, address, taken = sys.argv[1:]

def fails(kind, text, call, *args):
    try:
        call(*args)
    except kind as e:
        assert text in e.message, e.message
    else:
        raise AssertionError("no error")

with tf.Session(target) as sess:
    assert sess.run(tf.constant(20) + 1) == 21
    assert sess.add_onlineworker(2, address).changed
    assert sess.online_workers()[2].address == address
    assert sess.run(tf.constant(20) + 1) == 21
    fails(tf.errors.AlreadyExistsError, "is the address of",
          sess.add_onlineworker, 5, taken)
    fails(tf.errors.NotFoundError, "no /job:worker/task:9",
          sess.remove_onlineworker, 9)
    fails(tf.errors.InvalidArgumentError, "no port",
          sess.add_onlineworker, 2, "x")
sess = tf.InteractiveSession(target)
assert sess.remove_onlineworker(2).changed
sess.close()
with tf.Session() as sess:
    fails(tf.errors.InvalidArgumentError, "has no cluster",
          sess.online_workers)
theirs = tf.train.Server.create_local_server()
with tf.Session(theirs.target) as sess:
    fails(tf.errors.UnimplementedError, "is not a server of muster",
          sess.add_onlineworker, 2, address)
tf.train.get_or_create_global_step()
with tf.train.MonitoredTrainingSession(target) as sess:
    assert [m.task_index for m in sess.online_workers()] == [0, 1]
"""


@pytest.mark.trainer
def test_tensorflows_sessions(job):
    j = job()
    j.sees("all are alive", all_alive)
    python(WITH_TENSORFLOW, j.target(), j.place(), j.address("worker", 1))


# --- The whole story --------------------------------------------------------


@pytest.mark.trainer
@pytest.mark.parametrize("served", [(), (0, 1)], ids=["tensorflow", "ours"])
def test_script_of_the_users(job, served):
    """Two train, the script is run, the third trains with them."""
    j = job(served=served)
    for i in (0, 1):
        j.train(i, "--steps=1000000", "--model=mlp")
    for i in (0, 1):
        j.reached(i, 50)
    there = j.place()
    host, port = there.split(":")
    python(SEED % {"ps0": j.address("ps", 0), "ps1": j.address("ps", 1),
                   "worker2": "%s: %s" % (host, port)})
    assert j.status()["worker", 2]["address"] == there

    j.ports["worker"].append(j.more.pop())
    j.workers.append(None)
    if served:
        j.served[2] = j._serve("worker", 2).start()
        j.ready()
    j.train(2, "--steps=1000000", "--model=mlp")
    j.reached(2, 100)
    j.sees("the third is alive",
           lambda m: m["worker", 2]["state"] == "alive")
    for i in (0, 1):
        assert j.workers[i].alive(), j.workers[i].text()
        j.reached(i, j.steps(2)[-1]["step"] + 50)
