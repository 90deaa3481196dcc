"""Workers that join, leave and move, and a ps that restarts, while others train.

Two parameter servers and up to four workers of ours on this machine, an MLP
784-128-10, batch 32, Adagrad.  Workers are bench/elastic.c: their process, server
and graph are ready before they are added.

    joins      from the acknowledged call to the new worker's first applied
               update, and what the others did in the second before, during and
               after it
    story      steps/s over time through join, leave, move and ps restart, as
               a plot (--plot FILE.svg)

Nothing is compared with TensorFlow: it has no such thing.
"""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import tensorflow.compat.v1 as tf  # noqa: E402

import figures  # noqa: E402
from cluster import Cluster, Port, muster, package  # noqa: E402

sys.path.insert(0, package())

from muster import add_onlineworker, remove_onlineworker  # noqa: E402

DRIVER = pathlib.Path(muster()).resolve().parent / "bench" / "bench_elastic"


def graph_of(index, ps_count):
    """One step of worker `index`, its data random, as a GraphDef."""
    with tf.Graph().as_default() as g, tf.device(
            tf.train.replica_device_setter(
                ps_tasks=ps_count,
                worker_device="/job:worker/task:%d" % index)):
        x = tf.random.uniform([32, 784])
        y = tf.random.uniform([32], 0, 10, tf.int32)
        w1 = tf.get_variable("w1", [784, 128])
        b1 = tf.get_variable("b1", [128])
        w2 = tf.get_variable("w2", [128, 10])
        b2 = tf.get_variable("b2", [10])
        hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=y, logits=tf.matmul(hidden, w2) + b2))
        tf.train.AdagradOptimizer(0.01).minimize(
            loss, tf.train.get_or_create_global_step(), name="step")
        tf.group(tf.global_variables_initializer(), name="init")
    return g.as_graph_def().SerializeToString()


class Worker:
    """A driver process; what it says is read by a thread."""

    def __init__(self, c, index, port, chief=False):
        self.index, self.port = index, port
        workers = {i: p.address for i, p in enumerate(c.ports["worker"])}
        workers[index] = port.address
        spec = tf.train.ClusterSpec({"ps": c.hosts("ps").split(","),
                                     "worker": workers})
        def_ = tf.train.ServerDef(cluster=spec.as_cluster_def(),
                                  job_name="worker", task_index=index,
                                  protocol="grpc")
        config = tf.ConfigProto(device_filters=[
            "/job:ps", "/job:worker/task:%d" % index])
        files = []
        for name, data in (("def", def_.SerializeToString()),
                           ("graph", graph_of(index, len(c.ps))),
                           ("config", config.SerializeToString())):
            files.append(c.directory / ("%s%d" % (name, port.number)))
            files[-1].write_bytes(data)
        self.rates, self.errors, self.first = [], [], None
        self.ready, self.stepped = threading.Event(), threading.Event()
        self.log = open(c.directory / ("w%d.log" % port.number), "w")
        self.process = subprocess.Popen(
            [DRIVER, *files, *(["chief"] if chief else [])], text=True,
            bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        assert self.ready.wait(30), "worker %d is not ready" % index

    def read(self):
        for line in self.process.stdout:
            word, *rest = line.split()
            if word == "ready":
                self.ready.set()
            elif word == "step":
                self.first = int(rest[0])
                self.stepped.set()
            elif word == "rate":
                self.rates.append((int(rest[0]), int(rest[1])))
            elif word == "error":
                self.errors.append((int(rest[0]), int(rest[1])))

    def say(self, word):
        self.process.stdin.write(word + "\n")

    def first_step(self):
        """When its first update was applied."""
        self.say("step")
        assert self.stepped.wait(30), "worker %d does not step" % self.index
        return self.first

    def end(self, how=None):
        if how:
            self.process.send_signal(how)
        else:
            self.process.stdin.close()
        self.process.wait(20)
        self.reader.join()
        self.log.close()

    def steps(self, begin, end):
        """Steps/s between two moments."""
        return sum(n for at, n in self.rates if begin < at <= end) \
            / ((end - begin) / 1e9)


def joins(c, rounds):
    """Latency of a join, and the others' rates around it."""
    others = [Worker(c, i, c.ports["worker"][i], i == 0) for i in range(2)]
    for w in others:
        w.first_step()
        w.say("go")
    took, marks = [], []
    for i in range(rounds):
        port = Port()
        new = Worker(c, 2 + i, port)
        time.sleep(1.2)
        add_onlineworker(c.ports["ps"][i % 2].address, new.index, port.address)
        called = time.monotonic_ns()
        took.append((new.first_step() - called) / 1e6)
        marks.append(called)
        time.sleep(2.2)
        remove_onlineworker(c.ports["ps"][0].address, new.index)
        new.end()
        port.release()
    second = 10 ** 9
    rates = {"before": [], "during": [], "after": []}
    for m in marks:
        for name, at in (("before", m - second), ("during", m),
                         ("after", m + second)):
            rates[name].append(sum(w.steps(at, at + second) for w in others))
    errors = sum(len(w.errors) for w in others)
    for w in others:
        w.end()
    figures.say("From the acknowledged call to the first applied update: "
                "%s ms, %d joins" % (figures.spread(took), rounds))
    figures.table(["the others' steps/s", "median [min..max]"],
                  [[name, figures.spread(r, "%.0f")]
                   for name, r in rates.items()])
    figures.say("during / before, join by join: %s; errors seen by the others:"
                " %d" % (figures.spread(figures.ratios(
                    rates["during"], rates["before"])), errors))
    return {"first_update_ms": took, "rates": rates, "errors": errors}


def story(c, pause):
    """Steps/s of all workers over time, and what happened when."""
    events, workers = [], []
    start = time.monotonic_ns()

    def happens(what):
        events.append(((time.monotonic_ns() - start) / 1e9, what))
        figures.say("%6.1f s  %s" % events[-1])

    def begin(index, port, chief=False):
        w = Worker(c, index, port, chief)
        workers.append(w)
        return w

    ps = c.ports["ps"][0].address
    for i in range(2):
        begin(i, c.ports["worker"][i], i == 0).first_step()
        workers[-1].say("go")
    happens("two workers train")
    time.sleep(pause)
    ports = [Port(), Port(), Port()]
    for i in (2, 3):
        w = begin(i, ports[i - 2])
        add_onlineworker(ps, i, w.port.address)
        happens("worker %d joins" % i)
        w.first_step()
        w.say("go")
        time.sleep(pause)
    remove_onlineworker(ps, 2)
    happens("worker 2 is removed")
    workers[2].say("stop")
    time.sleep(pause)
    workers[3].end(signal.SIGKILL)
    moved = begin(3, ports[2])
    add_onlineworker(ps, 3, moved.port.address)
    happens("worker 3 was killed, and moves")
    moved.first_step()
    moved.say("go")
    time.sleep(pause)
    c.ps[1].stop()
    happens("ps 1 is killed and starts again")
    c.restart_ps(1)
    time.sleep(pause)
    end = time.monotonic_ns()
    for w in workers:
        if w.process.poll() is None:
            w.end()
    wide = 250 * 10 ** 6
    rates = []
    for at in range(start, end - wide, wide):
        rates.append(((at + wide / 2 - start) / 1e9,
                      sum(w.steps(at, at + wide) for w in workers)))
    for p in ports:
        p.release()
    return {"events": events, "rates": rates}


def plot(result, path):
    """The story as a picture."""
    width, height, left, bottom, top = 900, 360, 60, 40, 110
    rates, events = result["rates"], result["events"]
    last = max(t for t, _ in rates)
    most = max(r for _, r in rates) * 1.05

    def x(t):
        return left + t / last * (width - left - 20)

    def y(r):
        return height - bottom - r / most * (height - bottom - top)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
           'font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="100%" height="100%" fill="white"/>']
    step = 10 ** (len(str(int(most))) - 1)
    for r in range(0, int(most) + 1, step):
        out.append('<path d="M%g %gH%d" stroke="#ddd"/><text x="%d" y="%g" '
                   'text-anchor="end">%d</text>'
                   % (left, y(r), width - 20, left - 6, y(r) + 4, r))
    for t in range(0, int(last) + 1, 5):
        out.append('<text x="%g" y="%d" text-anchor="middle">%d s</text>'
                   % (x(t), height - bottom + 18, t))
    for i, (t, what) in enumerate(events):
        out.append('<path d="M%g %dV%d" stroke="#999" stroke-dasharray="3"/>'
                   '<text x="%g" y="%d">%s</text>'
                   % (x(t), 20 + 15 * i, height - bottom, x(t) + 4,
                      24 + 15 * i, what))
    out.append('<path fill="none" stroke="#1f5fa8" stroke-width="2" d="M%s"/>'
               % " L".join("%.1f %.1f" % (x(t), y(r)) for t, r in rates))
    out.append('<text x="14" y="%g" transform="rotate(-90 14 %g)" '
               'text-anchor="middle">steps/s, all workers</text></svg>'
               % ((height - bottom + top) / 2, (height - bottom + top) / 2))
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--pause", type=float, default=5,
                   help="seconds between two events of the story")
    p.add_argument("--plot", metavar="FILE.svg")
    p.add_argument("--only", choices=["joins", "story"])
    a = p.parse_args()
    tf.disable_v2_behavior()
    with tempfile.TemporaryDirectory() as folder:
        if a.only != "story":
            with Cluster(folder + "/joins", workers=2) as c:
                joins(c, a.rounds)
        if a.only != "joins":
            with Cluster(folder + "/story", workers=2) as c:
                result = story(c, a.pause)
            level = [statistics.median(
                r for t, r in result["rates"] if a < t <= b)
                for a, b in zip([t for t, _ in result["events"]],
                                [t for t, _ in result["events"]][1:] + [1e9])]
            figures.table(["from", "steps/s, median"],
                          [[what, "%.0f" % l] for (_, what), l in zip(
                              result["events"], level)])
            if a.plot:
                plot(result, a.plot)
                figures.say("plotted to " + a.plot)


if __name__ == "__main__":
    main()
