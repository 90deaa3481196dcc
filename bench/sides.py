"""The sides of a bench: whose tasks a job has, and who drives its workers.

tensorflow    all tasks are TensorFlow's, started by tf.train.Server; the session
              is in the worker's process
muster        all tasks are ours; the client is in C, in the worker's process
muster-off,   the same with MUSTER_QUICK set to that word, for --quick
muster-tcp,
muster-shm
client        all tasks are ours (`muster serve`); the client is TensorFlow's, in
              Python, in a process of its own

Workers are processes that are told by lines what to do, and for how long, and
answer with a line of JSON each: `parts/worker.c` and `parts/worker.py`, which
run named ops of a graph that was written to a file.  All sides of a bench are up
at once and take turns.  Every wait has an end.
"""
import json
import os
import pathlib
import select
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = pathlib.Path(__file__).resolve().parent
PARTS = HERE / "parts"
sys.path[:0] = [str(HERE.parent / "tests" / "interop")]

from cluster import Cluster, die_with_parent, muster, python  # noqa: E402

SIDES = ("tensorflow", "muster", "client")
PATIENCE = 120  # seconds beyond what was asked for


def tensorflow():
    """TensorFlow for the graphs, without its words."""
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.disable_v2_behavior()
    return tf


def program(name):
    """A part that is built."""
    return pathlib.Path(muster()).resolve().parent / "bench" / ("bench_" + name)


def chosen(args):
    """The names of the sides that the options ask for."""
    names = args.sides.split(",")
    return names + ["muster-" + q for q in args.quick.split(",") if q]


def available():
    """Bytes of memory that could be had."""
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def env_of(name):
    return {"MUSTER_QUICK": name[7:]} if name.startswith("muster-") else {}


def cluster_of(name, directory, ps, workers, served=None, env=None):
    """The servers of a side; `client` has some for its workers, too."""
    kind = "tensorflow" if name == "tensorflow" else "muster"
    return Cluster(directory, ps=(kind,) * ps, workers=workers, env=env,
                   served=range(served or workers) if name == "client" else ())


class Driver:
    """A process that answers requests."""

    def __init__(self, argv, log, env=None):
        self.log = pathlib.Path(log)
        with open(self.log, "wb") as err:
            self.process = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=err, text=True, bufsize=1,
                preexec_fn=die_with_parent, env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.process.pid

    def answer(self, seconds=0):
        out = self.process.stdout
        line = select.select([out], [], [], seconds + PATIENCE)[0] and \
            out.readline()
        if not line:
            self.process.kill()
            raise SystemExit("%s did not answer, code %s\n%s" % (
                self.process.args[0], self.process.wait(),
                self.log.read_text(errors="replace")[-3000:]))
        return json.loads(line)

    def ask(self, seconds, ops=()):
        try:
            self.process.stdin.write("%g %s\n" % (seconds, " ".join(ops)))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer tells

    def run(self, seconds, ops=()):
        self.ask(seconds, ops)
        return self.answer(seconds)

    def end(self):
        """Tells it that nothing more will come."""
        self.process.stdin.close()

    def close(self):
        self.end()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def close(drivers):
    """All of them end at once."""
    for d in drivers:
        d.end()
    for d in drivers:
        d.close()


class Job:
    """The graphs of a job: what its ops are, and one file for each worker.

    build(device) makes the graph of the worker on that device in the default
    graph, with ops `init` for what the chief initialises and, if need be,
    `init_here` for what every worker has of its own, and returns {step: [op]}.
    """

    def __init__(self, tf, build, ps, workers, directory):
        self.tf, self.ps, self.workers = tf, ps, workers
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        for i in range(workers):
            with tf.Graph().as_default() as graph:
                self.steps = build("/job:worker/task:%d" % i)
                self.local = "init_here" in [
                    o.name for o in graph.get_operations()]
            self.file(i).write_bytes(graph.as_graph_def().SerializeToString())

    def file(self, i):
        return self.directory / ("graph%d.pb" % i)


class Side:
    """The processes of one side; its workers come when they are wanted."""

    def __init__(self, name, job, env=None, most=None):
        """most: how many workers it can have; all if not told."""
        self.name, self.job, self.workers = name, job, []
        self.most = min(job.workers, most or job.workers)
        self.env = {**env_of(name), **(env or {})}
        self.cluster = cluster_of(name, job.directory / name, job.ps,
                                  job.workers, self.most, self.env)

    def __enter__(self):
        self.cluster.__enter__()
        return self

    def __exit__(self, *exc):
        close(self.workers)
        self.cluster.__exit__(*exc)

    def grow(self, count):
        """So many workers, or as many as it can have."""
        first = len(self.workers)
        for i in range(first, min(count, self.most)):
            self.workers.append(self._worker(i))
        for w in self.workers[first:]:
            w.answer()
        for w in self.workers[first:]:
            if w is self.workers[0]:
                w.run(0, ["init"])
            if self.job.local:
                w.run(0, ["init_here"])
        return self

    def _worker(self, i):
        tf, folder = self.job.tf, self.cluster.directory
        spec = tf.train.ClusterSpec({
            job: self.cluster.hosts(job).split(",") for job in ("ps", "worker")})
        def_ = folder / ("def%d.pb" % i)
        def_.write_bytes(tf.train.ServerDef(
            cluster=spec.as_cluster_def(), job_name="worker", task_index=i,
            protocol="grpc").SerializeToString())
        config = folder / ("config%d.pb" % i)
        config.write_bytes(tf.ConfigProto(device_filters=[
            "/job:ps", "/job:worker/task:%d" % i]).SerializeToString())
        head = [program("worker")] if self.name.startswith("muster") \
            else [python(), PARTS / "worker.py"]
        tail = ["grpc://" + self.cluster.ports["worker"][i].address] \
            if self.name == "client" else []
        return Driver([*head, def_, self.job.file(i), config, *tail],
                      folder / ("worker%d.log" % i), self.env)

    def run(self, step, seconds, count=1):
        """The answers of the first `count` workers, at once; [] if it has
        fewer."""
        if count > len(self.workers):
            return []
        for w in self.workers[:count]:
            w.ask(seconds, self.job.steps[step])
        return [w.answer(seconds) for w in self.workers[:count]]

    def pids(self):
        """{who: [process]}"""
        return {"ps": [t.pid for t in self.cluster.ps],
                "worker": [*(w.pid for w in self.workers), *(
                    t.pid for t in self.cluster.served.values())]}


def total(answers):
    """Steps a second of all workers together, from the first's begin to the
    last's end."""
    begin = min(a["begin"] for a in answers)
    end = max(a["begin"] + a["seconds"] for a in answers)
    return sum(a["steps"] for a in answers) / (end - begin)


def variables(tf, device, prefix, sizes):
    """float32 variables of so many elements on a device, zeros at first."""
    with tf.device(device):
        return [tf.get_variable("%s%d" % (prefix, i), [n], use_resource=True,
                                initializer=tf.zeros_initializer())
                for i, n in enumerate(sizes)]


def initialise(tf, there, here=()):
    """The ops `init` and `init_here`."""
    tf.group(*(v.initializer for v in there), name="init")
    if here:
        tf.group(*(v.initializer for v in here), name="init_here")


def pull(tf, device, there):
    """Reads variables on a device: the ops."""
    with tf.device(device):
        return [tf.identity(v).op.name for v in there]


def push(tf, device, there, here, add=True):
    """Adds variables of a device to those of the ps, or assigns them: the ops."""
    ops = []
    for t, h in zip(there, here):
        with tf.device(device):
            value = h.read_value()
        with tf.device(t.device):
            update = t.assign_add if add else t.assign
            ops.append(update(value, read_value=False).name)
    return ops
