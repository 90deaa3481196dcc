"""`muster train`: graphs that TensorFlow exported, trained without it.

TensorFlow writes the graphs and the data, says what the losses should be, reads
the checkpoints, and writes some for us to go on from.
"""
import json
import pathlib
import select
import signal
import subprocess

import pytest

from cluster import PROGRAMS, Task, muster, python, wait

MODELS = ["mlp", "cnn", "embedding", "lstm"]
STEPS = 50


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """All graphs, batches and expected losses, by one run of TensorFlow."""
    folder = tmp_path_factory.mktemp("exported")
    subprocess.run([python(), PROGRAMS / "exported.py", folder, str(STEPS)],
                   check=True, timeout=600)
    return folder


def options(exported, model, kind="ref"):
    data = exported / model
    return ["--meta_graph=%s" % (exported / ("%s-%s.meta" % (model, kind))),
            "--feed", "x=%s" % (data / "x.npy"),
            "--feed", "y=%s" % (data / "y.npy")]


def alone(*flags, code=0, **more):
    done = subprocess.run([muster(), "train", *map(str, flags)], text=True,
                          capture_output=True, timeout=120, **more)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def lines(text):
    return [json.loads(line) for line in text.split("\n") if line]


class Job:
    """Workers that are `muster train`, on the ps tasks of a cluster."""

    def __init__(self, c, tmp_path):
        self.c, self.folder = c, tmp_path

    def start(self, i, *flags):
        self.c.workers[i] = Task(
            "worker%d" % i,
            [muster(), "train", *self.c.host_flags(), "--job_name=worker",
             "--task_index=%d" % i, "--json", *flags],
            self.folder / ("train%d.log" % i)).start()

    def reports(self, i):
        found = []
        for line in self.c.workers[i].text().split("\n"):
            if line.startswith("{") and line.endswith("}"):
                found.append(json.loads(line))
        return found

    def reached(self, i, step):
        wait("worker %d is at step %d" % (i, step),
             lambda: any(r.get("step", 0) >= step for r in self.reports(i)),
             tasks=[self.c.workers[i]], others=self.c.servers())

    def finish(self, code=0):
        for i, task in enumerate(self.c.workers):
            if task:
                wait("worker %d ends" % i, lambda: not task.alive(), 120,
                     others=[task, *self.c.servers()])
                assert task.code == code, task.text()


@pytest.fixture
def job(cluster, tmp_path):
    def make(ps=2, workers=2):
        return Job(cluster(ps=ps, workers=workers), tmp_path)
    return make


# --- the same numbers -------------------------------------------------------


@pytest.mark.parametrize("variables", ["ref", "resource"])
@pytest.mark.parametrize("model", MODELS)
def test_losses_are_tensorflows(exported, job, model, variables):
    j = job(ps=2, workers=1)
    j.start(0, *options(exported, model, variables), "--steps=%d" % STEPS,
            "--log_steps=1")
    j.finish()
    want = json.loads((exported / "losses.json").read_text())
    got = [r["loss"] for r in j.reports(0) if "step" in r]
    assert len(got) == STEPS
    assert got == pytest.approx(want["%s-%s" % (model, variables)], rel=1e-4,
                                abs=1e-4)


def test_devices_are_those_of_replica_device_setter(exported):
    """Of every node that it gives one, for two and for three ps tasks."""
    peer = pathlib.Path(muster()).parent / "tests" / "placer_peer"
    for file in sorted(exported.glob("*.devices.json")):
        want = json.loads(file.read_text())
        got = subprocess.run(
            [peer, exported / (want["model"] + "-ref.meta"),
             str(want["ps"])], check=True, capture_output=True,
            text=True).stdout
        got = dict(line.split("\t") for line in got.split("\n") if line)
        differ = {n: (got.get(n), d) for n, d in want["devices"].items()
                  if d and got.get(n) != d}
        assert not differ


# --- jobs -------------------------------------------------------------------


@pytest.mark.sanitize
@pytest.mark.parametrize("mode", ["ref", "sync"])
@pytest.mark.parametrize("model", MODELS)
def test_two_workers_train(exported, job, model, mode):
    """Without a chief of TensorFlow, and with its SyncReplicasOptimizer."""
    j = job()
    steps = 200 if mode == "ref" else 60
    for i in range(2):
        j.start(i, *options(exported, model, mode), "--steps=%d" % steps,
                "--shuffle", "--log_steps=1")
    j.finish()
    both = []
    for i in range(2):
        *reports, end = [r for r in j.reports(i)]
        assert end["done"] and end["global_step"] >= steps
        both += reports
    # One of them may have come when the other was nearly through.
    both.sort(key=lambda r: r["step"])
    first = [r["loss"] for r in both[:5]]
    last = [r["loss"] for r in both[-10:]]
    assert sum(last) / len(last) < 0.9 * sum(first) / len(first)


# --- checkpoints ------------------------------------------------------------


READ = """
import sys, tensorflow.compat.v1 as tf
folder, meta = sys.argv[1:]
tf.disable_v2_behavior()
saver = tf.train.import_meta_graph(meta, clear_devices=True)
with tf.Session() as s:
    path = tf.train.latest_checkpoint(folder)
    saver.restore(s, path)
    step = s.run("global_step:0")
    assert path.endswith("-%d" % step), path
    s.run(tf.assign(tf.global_variables()[
        [v.name for v in tf.global_variables()].index("global_step:0")], 1000))
    saver.save(s, folder + "/model.ckpt", global_step=1000)
print("step", step)
"""


def checkpoints(folder):
    return sorted(int(p.name.split("-")[1].split(".")[0])
                  for p in folder.glob("model.ckpt-*.index"))


def test_checkpoints_go_to_tensorflow_and_back(exported, tmp_path):
    folder = tmp_path / "run"
    flags = [*options(exported, "mlp"), "--checkpoint_dir=%s" % folder]
    alone(*flags, "--steps=35", "--save_steps=10", "--keep=2")
    assert checkpoints(folder)[-1] == 35
    assert len(checkpoints(folder)) == 2
    done = subprocess.run(
        [python(), "-c", READ, folder, exported / "mlp-ref.meta"], text=True,
        capture_output=True, timeout=300)
    assert "step 35" in done.stdout, done.stderr
    ended = alone(*flags, "--steps=1010", "--json")
    assert "model.ckpt-1000" in ended.stderr
    assert lines(ended.stdout)[-1]["steps"] == 10
    assert checkpoints(folder)[-1] == 1010


# --- what goes wrong --------------------------------------------------------


def test_a_killed_ps_comes_back(exported, job, tmp_path):
    j = job()
    for i in range(2):
        j.start(i, *options(exported, "mlp"), "--shuffle", "--log_steps=50",
                "--checkpoint_dir=%s" % (tmp_path / "run"), "--save_steps=1000")
    for i in range(2):
        j.reached(i, 60)
    wait("a checkpoint is there", lambda: checkpoints(tmp_path / "run"),
         tasks=j.c.workers)
    j.c.ps[1].stop()
    for i in range(2):
        wait("worker %d notices" % i,
             lambda: "a task was lost" in j.c.workers[i].text(),
             tasks=[j.c.workers[i]], others=j.c.servers())
    before = [len(j.reports(i)) for i in range(2)]
    j.c.restart_ps(1)
    for i in range(2):
        wait("worker %d trains again" % i,
             lambda: len(j.reports(i)) > before[i] + 5,
             tasks=[j.c.workers[i]], others=j.c.servers())
    for task in j.c.workers:
        task.process.send_signal(signal.SIGTERM)
    j.finish()
    assert "restoring" in j.c.workers[0].text()


@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130),
                                       (signal.SIGTERM, 0)])
def test_a_signal_saves_and_ends(exported, job, tmp_path, how, code):
    j = job(workers=1)
    j.start(0, *options(exported, "mlp"), "--log_steps=1",
            "--checkpoint_dir=%s" % (tmp_path / "run"))
    j.reached(0, 20)
    j.c.workers[0].process.send_signal(how)
    j.finish(code=code)
    end = j.reports(0)[-1]
    assert end["done"]
    assert checkpoints(tmp_path / "run") == [end["global_step"]]


def test_waiting_for_a_ps_can_be_stopped(exported, tmp_path):
    task = Task("worker", [muster(), "train", "--ps_hosts=127.0.0.1:1",
                           "--worker_hosts=127.0.0.1:0", "--job_name=worker",
                           *options(exported, "mlp")],
                tmp_path / "log").start()
    try:
        wait("it sleeps", lambda: task.threads() > 4, tasks=[task])
        task.process.send_signal(signal.SIGINT)
        wait("it ends", lambda: not task.alive())
        assert task.code == 130
    finally:
        task.stop()


@pytest.mark.parametrize("flags, code, text", [
    (["--feed", "x=no.npy"], 1, "no.npy"),
    (["--feed", "z=x.npy"], 1, 'no tensor "z"'),
    (["--feed", "x=y.npy"], 1, "the shape [1600]"),
    (["--fetch", "loss=mlp/nothing"], 1, "mlp/nothing"),
    (["--fetch", "w=mlp/hidden/w"], 1, "is no number"),
    (["--target", "nothing"], 1, 'no op "nothing"'),
    (["--stepz=3"], 2, "did you mean --steps?"),
])
def test_mistakes_are_said(exported, flags, code, text):
    done = alone("--meta_graph=%s" % (exported / "mlp-ref.meta"), *(
        [] if "x=" in " ".join(flags) else ["--feed", "x=x.npy"]),
        "--feed", "y=y.npy", "--steps=1", *flags, code=code,
        cwd=exported / "mlp")
    assert text in done.stderr


def test_steps_are_made_on_request(exported):
    with subprocess.Popen([muster(), "train", "--bench",
                           *options(exported, "mlp")], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        assert json.loads(p.stdout.readline()) == {"ready": True}
        p.stdin.write("0.3\n")
        p.stdin.flush()
        answer = json.loads(p.stdout.readline())
        assert answer["steps"] > 0 and answer["steps_per_s"] > 0
        p.stdin.close()
        assert p.wait(60) == 0


def test_a_request_is_answered_while_a_step_waits(exported, cluster):
    """A synchronous worker whose peer pauses, and goes on with it."""
    c = cluster(ps=2, workers=2)
    workers = [subprocess.Popen(
        [muster(), "train", "--bench", *c.host_flags(), "--job_name=worker",
         "--task_index=%d" % i, *options(exported, "mlp", "sync")], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(2)]

    def ask(*numbers):
        for i in numbers:
            workers[i].stdin.write("0.3\n")
            workers[i].stdin.flush()
        return [answer(workers[i]) for i in numbers]

    def answer(worker):
        assert select.select([worker.stdout], [], [], 60)[0]
        return json.loads(worker.stdout.readline())

    try:
        assert [answer(p) for p in workers] == [{"ready": True}] * 2
        ask(0)
        ask(1)
        assert all(a["steps"] > 1 for a in ask(0, 1))
        for p in workers:
            p.stdin.close()
        assert [p.wait(60) for p in workers] == [0, 0]
    finally:
        for p in workers:
            p.kill()
            p.wait()
            p.stdout.close()


# --- sessions ---------------------------------------------------------------


@pytest.fixture(scope="module")
def tensorflow(tmp_path_factory):
    """TensorFlow's own server, and a graph: (target, file)."""
    folder = tmp_path_factory.mktemp("master")
    with subprocess.Popen([python(), PROGRAMS / "master.py", folder], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        yield p.stdout.readline().strip(), folder / "graph.pb"
        p.stdin.close()
        p.wait(60)


def session(target, graph, *words):
    peer = pathlib.Path(muster()).parent / "tests" / "session_peer"
    done = subprocess.run([peer, target, graph, *words], text=True,
                          capture_output=True, timeout=120)
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("whose", ["tensorflow", "muster"])
def test_a_session_in_c_is_one_of_any_master(tensorflow, cluster, whose):
    target, graph = tensorflow
    if whose == "muster":
        c = cluster(ps=1, workers=0)
        target = "grpc://" + c.hosts("ps")
    assert session(target, graph, "x:0=3", "y:0") == ["-3"] * 4
    # An op without results: a line each is not printed.
    assert session(target, graph, "@init") == []
    assert session(target, graph, "count:0", "v:0")[0].startswith("1 ")
    assert session(target, graph, "count:0") == ["5", "6", "7", "8"]
    wrong = session(target, graph, "none:0")
    assert len(wrong) == 1 and "none" in wrong[0]
