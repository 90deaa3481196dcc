"""Processes of a cluster: ps tasks of either kind, TensorFlow workers.

A test says which kind each ps task is, `muster` or `tensorflow`, and gets a
Cluster, which starts, kills and restarts single tasks and keeps their output.

Ports are the kernel's choice and stay ours: the cluster binds each with
SO_REUSEADDR and never listens on it.  Linux lets a server that sets
SO_REUSEADDR too listen on such a port, but gives it to nobody else, neither
to a bind to port 0 nor as the source port of a connection; so nothing can
slip in between the choice and the use, nor while a task is being restarted.

Nothing here sleeps for a guessed time.  wait() polls a condition, gives up at
a deadline or when a task it needs has died, and then raises with the end of
every task's output, and with the stacks of our own servers.
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TRAINER = ROOT / "examples" / "trainer.py"
PROGRAMS = HERE / "programs"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def muster():
    """The program under test, or None."""
    path = os.environ.get("MUSTER")
    if path:
        return path
    for build in ("build", "build-dev"):
        if (ROOT / build / "muster").exists():
            return str(ROOT / build / "muster")
    return None


def package():
    """The folder of the Python package that was built with it.

    A sanitizer cannot be loaded into a Python that runs already, so such builds
    have none; calls to their servers are made with that of the plain build.
    """
    own = pathlib.Path(muster()).resolve().parent / "python"
    return str(own if own.exists() else ROOT / "build" / "python")


def python():
    """The Python whose TensorFlow the workers use."""
    return os.environ.get("MUSTER_TF") or sys.executable


def measurable():
    """Whether memory means something: a sanitizer keeps what is freed."""
    return not ("ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Port:
    """A loopback port that is ours until release()."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("", 0))  # TensorFlow listens on all addresses
        self.number = self.socket.getsockname()[1]

    @property
    def address(self):
        return "127.0.0.1:%d" % self.number

    def listening(self):
        """Whether anyone listens on it."""
        want = ":%04X" % self.number
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table) as f:
                for line in f:
                    field = line.split()
                    if field[3] == "0A" and field[1].endswith(want):
                        return True
        return False

    def release(self):
        self.socket.close()


class Task:
    """One process; its output goes to a file."""

    def __init__(self, name, argv, log, env=None):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log = pathlib.Path(log)
        self.env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2",
                    "CUDA_VISIBLE_DEVICES": "-1", **(env or {})}
        self.process = None

    def start(self):
        assert not self.alive(), self.name + " runs already"
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, env=self.env,
                preexec_fn=die_with_parent)
        return self

    @property
    def pid(self):
        return self.process.pid

    @property
    def code(self):
        return self.process.poll()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, how=signal.SIGKILL, timeout=30, report=False):
        """Send a signal and see the process end, by force in the end.

        Returns the stacks of what did not end, if asked for a report.
        """
        stacks = ""
        if self.alive():
            self.process.send_signal(how)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                if report:
                    stacks = "\n--- stacks\n" + self.stacks()
                self.process.kill()
                self.process.wait()
        return stacks

    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() \
            else ""

    def stacks(self):
        """What every thread does, for the report of a hang."""
        if not self.alive() or not shutil.which("gdb"):
            return ""
        try:
            return subprocess.run(
                ["gdb", "-p", str(self.pid), "-batch", "-nx", "-ex",
                 "thread apply all bt 24"], capture_output=True, text=True,
                stdin=subprocess.DEVNULL, timeout=60).stdout
        except subprocess.TimeoutExpired:
            return "gdb did not come back"

    # What the kernel knows of the process.

    def rss(self):
        """Resident bytes that are its own (anonymous memory)."""
        with open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        return 0

    def rss_all(self):
        with open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.pid))

    def sockets(self):
        """How many sockets it has open."""
        count = 0
        folder = "/proc/%d/fd" % self.pid
        for fd in os.listdir(folder):
            try:
                count += os.readlink(folder + "/" + fd).startswith("socket:")
            except FileNotFoundError:
                pass
        return count


class Failed(AssertionError):
    """A wait that did not end well; the text has what the tasks said."""


def wait(what, condition, timeout=60, tasks=(), others=()):
    """Poll until condition() is true, and return what it returned.

    Fails when the time is up, or when one of `tasks` has ended.  `others`
    may end, and only tell their story if it fails.
    """
    __tracebackhide__ = True
    end = time.monotonic() + timeout
    pause = 0.005
    while True:
        dead = [t for t in tasks if not t.alive()]
        value = condition()
        if value:
            return value
        late = time.monotonic() > end
        if dead or late:
            break
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    lines = ["waited in vain until " + what]
    for t in dead:
        lines.append("%s ended with code %s" % (t.name, t.code))
    if late:
        lines.append("gave up after %g s" % timeout)
    raise Failed("\n".join(lines) + stories([*tasks, *others], late))


def stories(tasks, stacks=False):
    """The end of each task's output, and where it hangs if asked for."""
    out = []
    for t in tasks:
        out.append("\n--- %s (%s)\n" % (t.name, " ".join(t.argv[:3])))
        out.append(t.text()[-4000:])
        if stacks and t.argv[0] == muster():
            out.append("\n--- stacks of %s\n%s" % (t.name, t.stacks()))
    return "".join(out)


class Cluster:
    """ps and worker tasks on loopback; use it in a `with`."""

    def __init__(self, directory, ps=("muster", "muster"), workers=2,
                 served=(), env=None):
        """served: worker tasks that `muster serve` is, as their numbers.

        Their programs are clients only; the others start TensorFlow's server
        in their own process.  env: more of it, for all servers.
        """
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.state = self.directory / "state"  # who was added, by our ps
        self.env = env or {}
        self.kinds = list(ps)
        self.ports = {"ps": [Port() for _ in ps],
                      "worker": [Port() for _ in range(workers)]}
        self.ps = []
        self.workers = [None] * workers
        self.served = {i: None for i in served}

    def __enter__(self):
        for i in range(len(self.kinds)):
            self.ps.append(self._ps_task(i).start())
        for i in self.served:
            self.served[i] = self._serve("worker", i).start()
        self.ready()
        return self

    def __exit__(self, error=None, *exc):
        """Workers are killed; a ps of ours is asked to end, and ends well.

        So every test sees that a server drains, and a sanitizer gets to say
        what has leaked.
        """
        for task in self.workers:
            if task:
                task.stop()
        bad = []
        servers = [*zip(self.kinds, self.ps),
                   *(("muster", t) for t in self.served.values() if t)]
        for kind, task in servers:
            if kind == "muster" and task.alive():
                stacks = task.stop(signal.SIGTERM, report=True)
                if task.code != 0:
                    bad.append("%s ended with code %s when asked to%s%s" % (
                        task.name, task.code, stories([task]), stacks))
            else:
                task.stop()
        for ports in self.ports.values():
            for port in ports:
                port.release()
        if bad and not error:
            raise Failed("\n".join(bad))

    def hosts(self, job):
        return ",".join(p.address for p in self.ports[job])

    def host_flags(self):
        return ["--ps_hosts=" + self.hosts("ps"),
                "--worker_hosts=" + self.hosts("worker")]

    def _serve(self, job, i, head=None):
        return Task("%s%d" % (job, i),
                    [*(head or [muster(), "serve"]), *self.host_flags(),
                     "--job_name=" + job, "--task_index=%d" % i],
                    self.directory / ("%s%d.server.log" % (job, i)),
                    {"MUSTER_STATE_DIR": str(self.state), **self.env})

    def _ps_task(self, i):
        return self._serve("ps", i, None if self.kinds[i] == "muster"
                           else [python(), TRAINER])

    def master_flags(self, i):
        """Where worker i has its session, if it starts no server itself."""
        if i not in self.served:
            return []
        return ["--master=grpc://" + self.ports["worker"][i].address]

    def servers(self):
        """All tasks that only serve."""
        return [*self.ps, *(t for t in self.served.values() if t)]

    def ready(self):
        """Every server listens."""
        for i, task in enumerate(self.ps):
            wait("%s listens" % task.name, self.ports["ps"][i].listening,
                 tasks=[task])
        for i, task in self.served.items():
            wait("%s listens" % task.name,
                 self.ports["worker"][i].listening, tasks=[task])

    def grow(self, served=False):
        """One more worker, of whom no task that runs knows; its number.

        What is started from now on has the longer list.
        """
        i = len(self.workers)
        self.ports["worker"].append(Port())
        self.workers.append(None)
        if served:
            self.served[i] = self._serve("worker", i).start()
            self.ready()
        return i

    def restart_ps(self, i, anew=False):
        """The same task on the same port, a new process.

        anew: with the list as it is now, not as it was at its first start.
        """
        if anew:
            self.ps[i] = self._ps_task(i)
        self.ps[i].start()
        wait("%s listens again" % self.ps[i].name,
             self.ports["ps"][i].listening, tasks=[self.ps[i]])

    # Workers that run the trainer.

    def loss_log(self, i):
        return self.directory / ("loss%d.jsonl" % i)

    def train(self, i, *flags):
        """Start worker i on the trainer."""
        self.workers[i] = Task(
            "worker%d" % i,
            [python(), TRAINER, *self.host_flags(), "--job_name=worker",
             "--task_index=%d" % i, "--recovery_wait_secs=0.2",
             *self.master_flags(i), "--loss_log=%s" % self.loss_log(i), *flags],
            self.directory / ("worker%d.log" % i),
            env={"PYTHONPATH": package()}).start()
        return self.workers[i]

    def steps(self, i):
        """What worker i has logged: [{step, loss, time}]."""
        try:
            lines = self.loss_log(i).read_text().split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]

    def reached(self, i, step, timeout=120):
        """Wait until worker i has logged a global step >= this."""
        return wait("worker %d is at step %d" % (i, step),
                    lambda: any(s["step"] >= step for s in self.steps(i)),
                    timeout, tasks=[self.workers[i]], others=self.servers())

    def finish(self, timeout=180):
        """All workers end with 0, and every ps still runs."""
        for task in self.workers:
            if task is None:
                continue
            wait("%s ends" % task.name, lambda t=task: not t.alive(),
                 timeout, others=[task, *self.servers()])
            if task.code != 0:
                raise Failed("%s ended with code %s%s" % (
                    task.name, task.code, stories([task, *self.servers()])))
        for task in self.servers():
            if not task.alive():
                raise Failed("%s ended with code %s%s" % (
                    task.name, task.code, stories([task])))

    # Programs that are a worker of their own.

    def run(self, program, *args, timeout=300, task=0, env=None):
        """Run programs/PROGRAM.py as worker `task`; returns its answer.

        The program gets the host flags, --out=FILE and `args`, and answers
        with JSON in that file.
        """
        out = self.directory / (program + ".json")
        self.workers[task] = worker = Task(
            program,
            [python(), PROGRAMS / (program + ".py"), *self.host_flags(),
             "--task_index=%d" % task, "--out=%s" % out,
             *self.master_flags(task), *args],
            self.directory / (program + ".log"), env).start()
        wait("%s ends" % program, lambda: not worker.alive(), timeout,
             others=[worker, *self.servers()])
        if worker.code != 0:
            raise Failed("%s ended with code %s%s" % (
                program, worker.code, stories([worker, *self.servers()])))
        return json.loads(out.read_text())
