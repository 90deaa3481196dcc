"""A training job on this machine without TensorFlow: 2 ps tasks, 2 workers.

All four are processes of the program that MUSTER names: `muster serve` for the
ps tasks, `muster train` for the workers, on the digits in the folder beside
this file.  The job begins with one worker; the second joins while it trains and
knows nothing but the address of a ps.  Ends with 0 if the workers reached the
last step and the model knows the digits it has not seen.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

DIGITS = pathlib.Path(__file__).resolve().parent / "digits"
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
GOOD_ENOUGH = 0.9


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


class Task:
    """One process; what it prints goes to a file."""

    def __init__(self, name, words, folder):
        self.name = name
        self.log = pathlib.Path(folder) / (name.replace(" ", "") + ".log")
        self.peak = 0
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL)

    def reports(self):
        """The JSON lines of a worker."""
        text = self.log.read_text(errors="replace")
        return [json.loads(line) for line in text.split("\n")
                if line.startswith("{") and line.endswith("}")]

    def measure(self):
        """Notes its largest resident memory so far."""
        try:
            with open("/proc/%d/status" % self.process.pid) as f:
                for line in f:
                    if line.startswith("VmHWM:"):
                        self.peak = int(line.split()[1]) * 1024
        except OSError:
            pass

    def ended(self):
        return self.process.poll() is not None

    def stop(self):
        if not self.ended():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Job:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.muster = os.environ.get("MUSTER", "muster")
        self.ports = [hold_port() for _ in range(3)]
        hosts = ["127.0.0.1:%d" % p.getsockname()[1] for p in self.ports]
        self.cluster = ["--ps_hosts=" + ",".join(hosts[:2]),
                        "--worker_hosts=" + ",".join(hosts[2:])]
        self.ps = [self.serve(i) for i in range(2)]
        self.workers = [self.train(0, *self.cluster, "--job_name=worker",
                                   "--task_index=0")]
        self.rates = []  # (time, steps) of all workers together
        self.joined = None

    def serve(self, i):
        return Task("ps %d" % i, [
            self.muster, "serve", *self.cluster, "--job_name=ps",
            "--task_index=%d" % i, "--log=warn", "--state_dir=none"],
            self.folder)

    def join(self):
        """One more worker: it is told where one ps is, and nothing else."""
        self.joined = time.monotonic()
        ps = self.cluster[0].split("=")[1].split(",")[0]
        self.workers.append(self.train(1, "--join=" + ps, "--bind=127.0.0.1"))

    def train(self, i, *who):
        return Task("worker %d" % i, [
            self.muster, "train", *who,
            "--meta_graph=%s" % (DIGITS / "digits.meta"),
            "--data=%s" % (DIGITS / "digits.npz"),
            "--feed", "images=train_images", "--feed", "labels=train_labels",
            "--batch=%d" % self.options.batch, "--shuffle",
            "--steps=%d" % self.options.steps,
            "--checkpoint_dir=%s" % (self.folder / "checkpoints"),
            "--eval", "accuracy=accuracy", "--eval_feed", "images=test_images",
            "--eval_feed", "labels=test_labels", "--json", "--log_steps=100"],
            self.folder)

    def tasks(self):
        return self.ps + self.workers

    def broken(self):
        """A task that ended though it should not have, or badly."""
        for task in self.ps:
            if task.ended():
                return task
        for task in self.workers:
            if task.ended() and task.process.returncode:
                return task
        return None

    def stop(self):
        for task in reversed(self.tasks()):
            task.stop()


def note_rate(job):
    """Keeps how many steps there have been by now."""
    steps = 0
    for task in job.workers:
        reports = [r for r in task.reports() if "loss" in r]
        steps = max([steps, *(r["step"] for r in reports[-1:])])
    job.rates.append((time.monotonic(), steps))
    if not job.joined and steps > job.options.steps / 3:
        print("\r\033[K" * COLOUR + "step %5d: a second worker joins; it "
              "knows the address of ps 0 only" % steps, flush=True)
        job.join()


def rate(job, begin, end):
    """Steps/s of all workers between two moments."""
    part = [(t, n) for t, n in job.rates if begin <= t <= end and n]
    if len(part) < 2 or part[-1][0] <= part[0][0]:
        return 0
    return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])


def progress(job):
    """What the workers have come to, on one line."""
    parts, steps = [], 0
    for task in job.workers:
        reports = [r for r in task.reports() if "loss" in r]
        if reports:
            steps = max(steps, reports[-1]["step"])
            parts.append("%s: loss %s, %5.0f steps/s" % (
                task.name, paint("1", "%.4f" % reports[-1]["loss"]),
                reports[-1]["steps_per_s"]))
    return "step %5d/%d  %s" % (steps, job.options.steps, "  ".join(parts))


def watch(job):
    """Until the workers have ended; returns the task that failed, if any."""
    shown = time.monotonic()
    while not all(task.ended() for task in job.workers):
        for task in job.tasks():
            task.measure()
        if job.broken():
            break
        note_rate(job)
        if COLOUR:
            print("\r\033[K" + progress(job), end="", flush=True)
        elif time.monotonic() - shown > 1:
            print(progress(job), flush=True)
            shown = time.monotonic()
        time.sleep(0.05)
    if COLOUR:
        print("\r\033[K", end="")
    return job.broken()


def table(job):
    """Prints the figures; returns the accuracy."""
    ends = [task.reports()[-1] for task in job.workers]
    print("\n%-10s %7s %9s   %-18s %9s" % (
        "", "steps", "steps/s", "loss", "memory"))
    for task in job.ps:
        print("%-10s %7s %9s   %-18s %6.1f MB" % (
            task.name, "", "", "", task.peak / 1e6))
    for task, end in zip(job.workers, ends):
        print("%-10s %7d %9.0f   %.4f -> %.4f   %6.1f MB" % (
            task.name, end["steps"], end["steps_per_s"], end["first"],
            end["last"], task.peak / 1e6))
    print("%-10s %7d %9.0f" % (
        "together", sum(e["steps"] for e in ends),
        sum(e["steps"] for e in ends) / max(e["seconds"] for e in ends)))
    print("\n%.0f steps/s with one worker, %.0f with two" % (
        rate(job, 0, job.joined),
        rate(job, job.joined + 0.3, time.monotonic())))
    print("accuracy on %d digits that it has not seen: %s" % (
        360, paint("1", "%.1f %%" % (100 * ends[0]["accuracy"]))))
    return ends[0]["accuracy"]


def run(job):
    trouble = watch(job)
    if trouble:
        print("\n%s ended with code %d; the end of what it said:\n%s" % (
            trouble.name, trouble.process.returncode,
            trouble.log.read_text(errors="replace")[-3000:]))
        return False
    if table(job) < GOOD_ENOUGH:
        print("it should be %.0f %% at least" % (100 * GOOD_ENOUGH))
        return False
    return True


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--steps", type=int, default=9000)
    p.add_argument("--batch", type=int, default=32)
    options = p.parse_args()
    print("two ps tasks and a worker of muster, 8x8 digits, %d asynchronous "
          "steps; no TensorFlow" % options.steps)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
        job = Job(options, folder)
        try:
            good = run(job)
        except KeyboardInterrupt:
            good = False
            print("\nstopped")
        finally:
            job.stop()
    print(paint("32", "trained") if good else paint("31", "failed"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
