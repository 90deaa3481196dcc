"""Training steps a second of TensorFlow workers: our ps beside TensorFlow's.

For each model and number of workers two clusters are started, with two ps of
either kind; all workers are up all the time, and the two sides train in turn,
a few seconds each.  The rate is that of the whole job.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import figures
from cluster import Cluster, die_with_parent, python

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("muster", "tensorflow")


class Workers:
    """The workers of one cluster, which run when they are told to."""

    def __init__(self, kind, directory, model, count, flags):
        self.cluster = Cluster(directory, ps=(kind, kind),
                               workers=count).__enter__()
        self.processes = []
        for i in range(count):
            log = open(pathlib.Path(directory) / ("worker%d.log" % i), "wb")
            self.processes.append(subprocess.Popen(
                [python(), HERE / "training_worker.py",
                 *self.cluster.host_flags(), "--job_name=worker",
                 "--task_index=%d" % i, "--model=" + model,
                 "--device_filters", *flags],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, preexec_fn=die_with_parent,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}))
        for p in self.processes:
            self._answer(p)

    @staticmethod
    def _answer(process):
        line = process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended with code %s" % process.wait())
        return float(line)

    def rate(self, seconds):
        """Steps a second of all of them together."""
        for p in self.processes:
            p.stdin.write("%g\n" % seconds)
            p.stdin.flush()
        return sum(self._answer(p) for p in self.processes)

    def close(self):
        for p in self.processes:
            p.stdin.close()
        for p in self.processes:
            p.wait(60)
        self.cluster.__exit__(None, None, None)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--models", default="mlp,embedding")
    p.add_argument("--workers", default="1,2,4")
    p.add_argument("flags", nargs="*", help="for the trainer")
    args = p.parse_args()
    rows = []
    for model in args.models.split(","):
        for count in map(int, args.workers.split(",")):
            with tempfile.TemporaryDirectory() as directory:
                sides = [Workers(kind, pathlib.Path(directory) / kind, model,
                                 count, args.flags) for kind in KINDS]
                rates = [[], []]
                for side in sides:
                    side.rate(1)
                for r in range(args.rounds):
                    for i in (0, 1) if r % 2 else (1, 0):
                        rates[i].append(sides[i].rate(args.seconds))
                for side in sides:
                    side.close()
            rows.append((model, count,
                         *(figures.spread(side, "%.0f") for side in rates),
                         figures.spread(figures.ratios(*rates), "%.2f")))
            figures.say("  %s, %d workers done" % (model, count))
    figures.table(("model", "workers", "muster steps/s",
                   "TensorFlow steps/s", "ratio"), rows)


if __name__ == "__main__":
    main()
