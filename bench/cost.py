"""What a step costs the machine, on the ps and in the worker.

Processor time, wake-ups (voluntary context switches), system calls and
allocations: of a null step, of a scalar that is pushed, and of each GB that is
pulled or pushed in tensors of 16 MB.  The kernel counts the first three, system
calls by `perf stat` (blank if that is not allowed); allocations are counted by
`parts/allocs.c`, which is loaded into every process here.
"""
import contextlib
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time

import figures
import sides
import steps

CASES = ("null", "scalar push", "pull 16 MB", "push 16 MB")
COUNTS = ("cpu_us", "wakeups", "allocations")


def cpu_us(pid):
    """Of all its threads, from the clock that the kernel has for a process."""
    return time.clock_gettime((~pid << 3) | 2) * 1e6


def wakeups(pid):
    total = 0
    for task in pathlib.Path("/proc/%d/task" % pid).iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in (task / "status").read_text().split("\n"):
                if line.startswith("voluntary_ctxt_switches:"):
                    total += int(line.split()[1])
    return total


def allocations(pid, folder):
    path = pathlib.Path(folder) / ("allocs.%d" % pid)
    return struct.unpack("l", path.read_bytes())[0] if path.exists() else 0


def counts(side, folder):
    """{who: [cpu_us, wakeups, allocations]}"""
    return {who: [sum(cpu_us(p) for p in pids), sum(wakeups(p) for p in pids),
                  sum(allocations(p, folder) for p in pids)]
            for who, pids in side.pids().items()}


@contextlib.contextmanager
def system_calls(side):
    """A dictionary {who: calls}, which is filled at the end."""
    found, running = {}, {}
    for who, pids in side.pids().items():
        with contextlib.suppress(FileNotFoundError):
            running[who] = subprocess.Popen(
                ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter",
                 "-p", ",".join(map(str, pids))], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
                preexec_fn=sides.die_with_parent)
    time.sleep(0.3)  # until it has attached itself
    yield found
    for who, perf in running.items():
        perf.send_signal(signal.SIGINT)
        text = perf.communicate(timeout=30)[1]
        for line in text.split("\n"):
            first = line.split(",")[0]
            if "sys_enter" in line and first.isdigit():
                found[who] = int(first)


def measure(results, side, case, seconds, folder):
    share = steps.BYTES.get(case, 1e9) / 1e9  # of a GB; 1: of a step
    label = case + ", a GB" if case in steps.BYTES else case
    before = counts(side, folder)
    done = side.run(case, seconds)[0]["steps"] * share
    after = counts(side, folder)
    with system_calls(side) as calls:
        traced = side.run(case, seconds)[0]["steps"] * share
    for who in before:
        found = {name: (b - a) / done for name, a, b in zip(
            COUNTS, before[who], after[who])}
        if who in calls:
            found["system_calls"] = calls[who] / traced
        results.add("%s: %s" % (label, who), side.name, **found)
    return label


def main():
    p = figures.options(__doc__, 3, 1, ("tensorflow", "muster"))
    args = p.parse_args()
    results = figures.Results("cost", args, "cpu_us", less=True)
    cases = [c for c in CASES if results.wanted(c)]
    tf = sides.tensorflow()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        job = sides.Job(tf, steps.builder(tf, cases), 1, 1, folder)
        env = {"LD_PRELOAD": str(sides.program("allocs.so")),
               "ALLOCS_FILE": os.path.join(folder, "allocs")}
        every = [stack.enter_context(sides.Side(name, job, env)).grow(1)
                 for name in sides.chosen(args)]
        for case in cases:
            for side in every:
                side.run(case, 0.2)
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    label = measure(results, side, case, args.seconds, folder)
            results.done(label)
    names = [("CPU us", "cpu_us", "%.3g"), ("wake-ups", "wakeups", "%.3g"),
             ("system calls", "system_calls", "%.3g"),
             ("allocations", "allocations", "%.3g")]
    results.table(names, [("less " + title, "tensorflow", name)
                          for title, name, _ in names[1:]], "less CPU")


if __name__ == "__main__":
    main()
