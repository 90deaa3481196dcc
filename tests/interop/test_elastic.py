"""Workers that join, move and leave while the job trains."""
import json
import subprocess
import time

import pytest

import cluster as cl

MANY = 1000000  # steps that no test waits for
pytestmark = pytest.mark.trainer
# Who serves worker 0, 1 and the new one: ours, or TensorFlow in its process.
WORKERS = {"tensorflow": (False, False, False), "ours": (True, True, True),
           "mixed": (False, True, True), "newcomer": (True, True, False)}


def muster(*args):
    """Run the program; its output."""
    return subprocess.run([cl.muster(), *args], check=True, text=True,
                          capture_output=True, timeout=30).stdout


def add(c, i, servers=None):
    """The script of the seeds, in a process of its own."""
    script = cl.Task(
        "script", [cl.python(), cl.PROGRAMS / "add_worker.py", i,
                   c.ports["worker"][i].address,
                   *(servers or [p.address for p in c.ports["ps"]])],
        c.directory / "script.log", {"PYTHONPATH": cl.package()}).start()
    cl.wait("the script ends", lambda: not script.alive(), 60,
            others=[script, *c.servers()])
    assert script.code == 0, script.text()


def all_train(c, what, more=30):
    """Every worker logs some more steps."""
    have = [len(c.steps(i)) for i in range(len(c.workers))]
    for i, task in enumerate(c.workers):
        cl.wait("worker %d trains %s" % (i, what),
                lambda: len(c.steps(i)) >= have[i] + more, 120, tasks=[task],
                others=[*c.workers, *c.servers()])


@pytest.mark.parametrize("who", [
    "tensorflow", pytest.param("ours", marks=pytest.mark.sanitize), "mixed",
    pytest.param("newcomer", marks=pytest.mark.full)])
def test_the_story_of_the_seeds(tmp_path, who):
    """Two train, a third is added; each ps is killed and started again."""
    served = WORKERS[who]
    with cl.Cluster(tmp_path, workers=2,
                    served=[i for i in range(2) if served[i]]) as c:
        flags = ["--steps=%d" % MANY, "--device_filters",
                 "--checkpoint_dir=%s" % (tmp_path / "ckpt"),
                 "--save_steps=50"]
        for i in range(2):
            c.train(i, *flags)
        c.reached(0, 100)
        all_train(c, "at first")
        new = c.grow(served[2])
        add(c, new)
        c.train(new, *flags)
        all_train(c, "with the new one")
        steps = [s["step"] for s in c.steps(0)]
        assert steps == sorted(steps), "the first worker began again"
        c.ps[0].stop()
        c.restart_ps(0, anew=True)
        all_train(c, "after ps 0 was started with the longer list")
        c.ps[1].stop()
        c.restart_ps(1)
        all_train(c, "after ps 1 was started with the old list")


@pytest.mark.sanitize
def test_many_come_and_go_and_every_step_counts(tmp_path, note):
    """As many steps on the ps as were acknowledged; no error for the rest."""
    count = 16 if cl.measurable() else 6
    with cl.Cluster(tmp_path, workers=1, served=[0]) as c:
        for _ in range(1, count):
            c.grow(served=True)
        out = tmp_path / "swarm.json"
        c.workers[0] = task = cl.Task(
            "swarm", [cl.python(), cl.PROGRAMS / "swarm.py",
                      "--ps_hosts=" + c.hosts("ps"),
                      "--workers=" + c.hosts("worker"), "--out=%s" % out],
            tmp_path / "swarm.log", {"PYTHONPATH": cl.package()}).start()
        cl.wait("the swarm ends", lambda: not task.alive(), 300,
                others=[task, *c.servers()])
        assert task.code == 0, task.text()
    got = json.loads(out.read_text())
    assert not got["hung"] and got["first"] is None
    assert all(got["steps"])
    for error in got["removed"].values():
        assert error and error.startswith("UnavailableError"), error
    assert got["counted"] == sum(got["steps"])
    note("%d workers, %d steps, all counted" % (count, got["counted"]))


def test_newcomer_to_a_synchronous_job_takes_part_or_stands_by(tmp_path):
    """Counts are those of the chief's graph; nobody hangs."""
    with cl.Cluster(tmp_path, workers=2, served=[0, 1]) as c:
        flags = ["--steps=%d" % MANY, "--device_filters", "--sync"]
        for i in range(2):
            c.train(i, *flags)
        all_train(c, "in step", 10)
        new = c.grow(served=True)
        add(c, new, [c.ports["ps"][1].address])
        c.train(new, *flags)
        all_train(c, "with the new one", 10)


@pytest.mark.sanitize
def test_worker_that_knows_one_ps_joins_moves_and_leaves(tmp_path):
    with cl.Cluster(tmp_path, workers=1, served=[0]) as c:
        ps = c.ports["ps"][1].address

        def members():
            said = json.loads(muster("status", "--json", "--all",
                                     "grpc://" + ps))
            return {(m["job"], m["task"]): m for m in said["members"]}

        def join():
            task = cl.Task("joins", [cl.muster(), "serve", "--join=" + ps,
                                     "--bind=127.0.0.1"],
                           tmp_path / ("join%d.log" % time.time_ns())).start()
            cl.wait("it is ready", lambda: "ready" in task.text(), 30,
                    tasks=[task], others=c.servers())
            return task

        first = join()
        assert "/job:worker/task:1 ready" in first.text()
        assert members()["worker", 1]["address"].startswith("127.0.0.1:")
        second = join()
        assert "/job:worker/task:2 ready" in second.text()
        first.stop()  # SIGKILL: gone, but its index stays its own
        cl.wait("it is seen to be gone", lambda:
                members()["worker", 1]["state"] == "gone", 60, tasks=c.ps)
        third = join()
        assert "/job:worker/task:3 ready" in third.text()
        for task in (second, third):
            task.stop(15)
            assert task.code == 0, task.text()
        now = members()
        assert not now["worker", 2].get("address")
        assert now["worker", 1]["address"]
        # Somebody else may have the index of one who is gone.
        muster("add-worker", "--ps_hosts=" + ps, "1", "127.0.0.1:9")
        assert members()["worker", 1]["address"] == "127.0.0.1:9"


def test_ps_that_was_down_hears_of_it_when_it_is_back(tmp_path):
    with cl.Cluster(tmp_path, workers=1) as c:
        c.ps[1].stop()
        said = muster("add-worker", "--ps_hosts=" + c.hosts("ps"), "7",
                      "127.0.0.1:9")
        assert "1 more will when it is back" in said
        c.restart_ps(1)
        cl.wait("ps 1 has it", lambda: "worker/7" in muster(
            "status", "grpc://" + c.ports["ps"][1].address), 30, tasks=c.ps)
        c.ps[0].stop()
        c.ps[1].stop()
        c.restart_ps(1)
        assert "worker/7" in muster(
            "status", "grpc://" + c.ports["ps"][1].address)
