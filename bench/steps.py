"""Steps of a TensorFlow worker on one ps: ours beside TensorFlow's.

null    a step that touches a scalar on the ps
push    a worker's tensor is added to a variable of the ps (assign_add)
pull    a variable of the ps is read on the worker

One process is the worker of two clusters, one with each kind of ps, and runs
them in turn.  What is measured is what such a program sees: most of a small
step is spent in the worker's own TensorFlow.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import figures
from cluster import Cluster

KINDS = ("muster", "tensorflow")
SIZES = (("4 KB", 1 << 10), ("1 MB", 256 << 10), ("16 MB", 4 << 20),
         ("256 MB", 64 << 20))


class Side:
    """A cluster, its worker's server and session, and the steps to run."""

    def __init__(self, tf, kind, directory, resource):
        self.cluster = Cluster(directory, ps=(kind,), workers=1).__enter__()
        hosts = {"ps": [self.cluster.hosts("ps")],
                 "worker": [self.cluster.hosts("worker")]}
        self.server = tf.train.Server(hosts, job_name="worker", task_index=0)
        self.steps = {}
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._build(tf, resource)
            self.session = tf.Session(self.server.target)
            self.session.run(tf.global_variables_initializer())

    def _build(self, tf, resource):
        ps, worker = "/job:ps/task:0", "/job:worker/task:0"
        with tf.device(ps):
            scalar = tf.get_variable("scalar", [], use_resource=resource)
            self.steps["null"] = (scalar.op, 0)
        for name, count in SIZES:
            with tf.device(ps):
                there = tf.get_variable("there_%d" % count, [count],
                                        initializer=tf.zeros_initializer(),
                                        use_resource=resource)
            with tf.device(worker):
                here = tf.get_variable("here_%d" % count, [count],
                                       initializer=tf.ones_initializer(),
                                       use_resource=True)
                self.steps["pull " + name] = (tf.identity(there).op,
                                              4 * count)
            with tf.device(ps):
                self.steps["push " + name] = (
                    there.assign_add(here.read_value(),
                                     read_value=False)
                    if resource else there.assign_add(here.read_value()).op,
                    4 * count)

    def measure(self, name, seconds):
        """Seconds a step, the mean over so long."""
        op, _ = self.steps[name]
        run = self.session.make_callable(op)
        run()
        n, start = 0, time.perf_counter()
        while True:
            run()
            n += 1
            took = time.perf_counter() - start
            if took > seconds:
                return took / n

    def close(self):
        self.session.close()
        self.cluster.__exit__(None, None, None)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.4)
    p.add_argument("--ref", action="store_true",
                   help="reference variables instead of resource variables")
    args = p.parse_args()
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    with tempfile.TemporaryDirectory() as directory:
        sides = [Side(tf, kind, pathlib.Path(directory) / kind, not args.ref)
                 for kind in KINDS]
        rows = []
        for name, (_, size) in sides[0].steps.items():
            took = [[], []]
            for r in range(args.rounds):
                for i in (0, 1) if r % 2 else (1, 0):
                    took[i].append(sides[i].measure(name, args.seconds))
            rows.append((
                name,
                *(figures.spread([t * 1e6 for t in side], "%.0f")
                  for side in took),
                *(figures.spread([size / t / 1e9 for t in side], "%.2f")
                  if size > 8192 else "" for side in took),
                figures.spread(figures.ratios(took[1], took[0]), "%.2f")))
            figures.say("  %s done" % name)
        figures.table(("step", "muster us", "TensorFlow us", "muster GB/s",
                       "TensorFlow GB/s", "times quicker"), rows)
        for side in sides:
            side.close()


if __name__ == "__main__":
    main()
