"""A training job on this machine: two ps tasks of muster, two workers.

The workers are ordinary TensorFlow processes that run trainer.py; MUSTER names
the server program, MUSTER_TF the Python that has TensorFlow (this one, if
unset).  `--ps tensorflow` runs TensorFlow's own ps tasks instead, to compare.
Ends with 0 if both workers reached the last step and the ps tasks still ran.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TRAINER = HERE / "trainer.py"
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(code, text):
    return "\033[%sm%s\033[0m" % (code, text) if COLOUR else text


def hold_port():
    """A loopback port that the kernel gives to nobody else while we have it.

    A server may still listen on it, since both set SO_REUSEADDR and we do not
    listen.
    """
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


def memory(pid):
    """Resident bytes of a process."""
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Log:
    """The losses of one worker, read as they are written."""

    def __init__(self, path):
        self.path = path
        self.file = None
        self.rest = ""
        self.losses = []
        self.step = 0
        self.first = self.last = None  # times

    def read(self):
        if self.file is None:
            if not self.path.exists():
                return
            self.file = open(self.path)
        *lines, self.rest = (self.rest + self.file.read()).split("\n")
        for line in lines:
            item = json.loads(line)
            self.losses.append(item["loss"])
            self.step = max(self.step, item["step"])
            self.first = self.first or item["time"]
            self.last = item["time"]

    def recent(self):
        tail = self.losses[-20:]
        return sum(tail) / len(tail) if tail else None


class Job:
    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.ports = [hold_port() for _ in range(4)]
        hosts = ["127.0.0.1:%d" % p.getsockname()[1] for p in self.ports]
        self.hosts = ["--ps_hosts=" + ",".join(hosts[:2]),
                      "--worker_hosts=" + ",".join(hosts[2:])]
        self.python = os.environ.get("MUSTER_TF") or sys.executable
        self.tasks = []
        self.logs = [Log(self.folder / ("loss%d.jsonl" % i))
                     for i in range(2)]

    def start(self, job, index, head, *flags):
        argv = [*head, *self.hosts, "--job_name=" + job,
                "--task_index=%d" % index, *flags]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        with open(self.folder / ("%s%d.log" % (job, index)), "wb") as out:
            task = subprocess.Popen([str(a) for a in argv], stdout=out,
                                    stdin=subprocess.DEVNULL, env=env,
                                    stderr=subprocess.STDOUT)
        self.tasks.append(task)
        return task

    def start_all(self):
        o = self.options
        server = ([self.python, TRAINER] if o.ps == "tensorflow" else
                  [os.environ.get("MUSTER") or shutil.which("muster")
                   or HERE.parent / "build" / "muster", "serve"])
        self.ps = [self.start("ps", i, server) for i in range(2)]
        flags = ["--model=" + o.model, "--steps=%d" % o.steps,
                 "--optimizer=" + o.optimizer, "--recovery_wait_secs=0.2",
                 "--device_filters",
                 "--checkpoint_dir=%s" % (self.folder / "checkpoints")]
        flags += ["--sync"] * o.sync
        flags += ["--resource"] * o.resource
        self.workers = [self.start(
            "worker", i, [self.python, TRAINER], *flags,
            "--loss_log=%s" % self.logs[i].path) for i in range(2)]

    def stop_all(self):
        """End what still runs, politely first."""
        for task in reversed(self.tasks):
            if task.poll() is None:
                task.terminate()
        for task in self.tasks:
            try:
                task.wait(5)
            except subprocess.TimeoutExpired:
                task.kill()
                task.wait()
        for p in self.ports:
            p.close()

    def broken(self):
        """What went wrong so far, or None."""
        for i, task in enumerate(self.ps):
            if task.poll() is not None:
                return "ps", i, task.returncode
        for i, task in enumerate(self.workers):
            if task.poll():
                return "worker", i, task.returncode
        return None

    def done(self):
        return all(t.poll() is not None for t in self.workers)


class Progress:
    """A line a second; on a terminal the same line again and again."""

    def __init__(self, job):
        self.job = job
        self.seen = collections.deque(maxlen=5)  # (time, steps)
        self.shown = 0.0
        self.last = None

    def show(self, force=False):
        now = time.monotonic()
        if now - self.shown < 1 and not force:
            return
        self.shown = now
        steps = sum(len(log.losses) for log in self.job.logs)
        self.seen.append((now, steps))
        line = self.line()
        if line != self.last or COLOUR:
            print(line, end="\r" if COLOUR else "\n", flush=True)
        self.last = line

    def line(self):
        o = self.job.options
        step = max(log.step for log in self.job.logs)
        if not step:
            return "starting: TensorFlow is being imported".ljust(78)
        if step >= o.steps:
            return "the last step is done; the workers are closing".ljust(90)
        (t0, s0), (t1, s1) = self.seen[0], self.seen[-1]
        rate = (s1 - s0) / (t1 - t0) if t1 > t0 else 0.0
        losses = "  ".join(
            "worker %d loss %s" % (i, "%.4f" % log.recent()
                                   if log.losses else "-")
            for i, log in enumerate(self.job.logs))
        width = 20
        full = min(width, width * step // o.steps)
        bar = "#" * full + "." * (width - full)
        return ("[%s] %*d of %d  %4.0f steps/s  %s" % (
            paint("32", bar), len(str(o.steps)), min(step, o.steps),
            o.steps, rate, losses)).ljust(90)


def summary(job, seconds, rss):
    """What the job came to."""
    steps = sum(len(log.losses) for log in job.logs)
    first = min(log.first for log in job.logs if log.losses)
    last = max(log.last for log in job.logs if log.losses)
    train = max(last - first, 1e-9)
    rows = [("steps", "%d (worker 0: %d, worker 1: %d)" % (
        steps, *(len(log.losses) for log in job.logs))),
        ("seconds", "%.1f of training, %.1f with start and end" % (
            train, seconds)),
        ("steps/s", "%.0f" % (steps / train))]
    for i, log in enumerate(job.logs):
        if log.losses:
            rows.append(("worker %d loss" % i, "%.4f -> %.4f" % (
                log.losses[0], log.recent())))
    rows.append(("ps memory", ", ".join("%.1f MB" % (m / 1e6)
                                        for m in rss)))
    if job.options.ps == "muster":
        rows[-1] = ("ps memory", rows[-1][1]
                    + " (TensorFlow's: 470 to 590 MB)")
    for name, value in rows:
        print("  %-14s %s" % (name, value))


def run(job, progress):
    """Train; returns whether it went well."""
    start = time.monotonic()
    rss = [0, 0]
    job.start_all()
    trouble = None
    while not trouble and not job.done():
        for log in job.logs:
            log.read()
        progress.show()
        rss = [max(a, memory(t.pid)) for a, t in zip(rss, job.ps)]
        trouble = job.broken()
        time.sleep(0.05)
    trouble = trouble or job.broken()
    for log in job.logs:
        log.read()
    if not trouble:
        progress.show(force=True)
        print()
        summary(job, time.monotonic() - start, rss)
        if max(log.step for log in job.logs) >= job.options.steps:
            return True
        print("the last step was not reached")
        return False
    print("\n%s %d ended with code %d; the end of what it said:" % trouble)
    text = (job.folder / ("%s%d.log" % trouble[:2])).read_text(
        errors="replace")
    print(text[-3000:])
    return False


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ps", default="muster",
                   choices=["muster", "tensorflow"], help="whose ps tasks")
    p.add_argument("--model", default="mlp",
                   choices=["mlp", "cnn", "embedding", "lstm"])
    p.add_argument("--optimizer", default="adagrad")
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--sync", action="store_true",
                   help="synchronous training (SyncReplicasOptimizer)")
    p.add_argument("--resource", action="store_true",
                   help="resource instead of ref variables")
    options = p.parse_args()
    print("two ps tasks of %s, two TensorFlow workers, model %s, %d %s steps"
          % (options.ps, options.model, options.steps,
             "synchronous" if options.sync else "asynchronous"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
        job = Job(options, folder)
        try:
            good = run(job, Progress(job))
        except KeyboardInterrupt:
            good = False
            print("\nstopped")
        finally:
            job.stop_all()
    print(paint("32", "trained") if good else paint("31", "failed"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
