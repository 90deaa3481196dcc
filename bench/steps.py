"""Single steps of one worker on one ps, beside TensorFlow and beside the wire.

null          a step that reads a scalar on the ps, and leaves it there
scalar push   a worker's scalar is added to a variable of the ps
pull SIZE     a variable of the ps is read on the worker
push SIZE     a worker's variable is added to one of the ps
assign SIZE   the same without the sum: one of the ps becomes the worker's

Sides: tensorflow, muster, client (see sides.py), and for pulls and pushes
loopback: plain TCP between two processes, tuned, as `transport.c` measures it.
A step's time is what its client sees; p50 and p99 are those of each round.
"""
import contextlib
import pathlib
import tempfile

import figures
import sides

SIZES = (("4 KB", 4 << 10), ("1 MB", 1 << 20), ("16 MB", 16 << 20),
         ("256 MB", 256 << 20))
BYTES = {"%s %s" % (what, name): size for name, size in SIZES
         for what in ("pull", "push", "assign")}
CASES = ("null", "scalar push", *BYTES)


def builder(tf, cases):
    """The graph with these cases; see sides.Job."""
    def build(worker):
        steps = {}
        sizes = [1, *(n // 4 for name, n in SIZES
                      if any(name in case for case in cases))]
        ps = "/job:ps/task:0"
        there = sides.variables(tf, ps, "there", sizes)
        here = sides.variables(tf, worker, "here", sizes)
        sides.initialise(tf, there, here)
        with tf.device(ps):
            steps["null"] = [there[0].read_value().op.name]
        pushes = sides.push(tf, worker, there, here)
        steps["scalar push"] = pushes[:1]
        assigns = sides.push(tf, worker, there, here, add=False)
        pulls = sides.pull(tf, worker, there)
        for i, n in enumerate(sizes[1:], 1):
            name = next(name for name, size in SIZES if size == 4 * n)
            for what, ops in (("pull ", pulls), ("push ", pushes),
                              ("assign ", assigns)):
                steps[what + name] = [ops[i]]
        return steps
    return build


class Loopback:
    """The limit, as a side."""
    name = "loopback"

    def __init__(self, directory):
        self.driver = sides.Driver([sides.program("transport"), "-l"],
                                   pathlib.Path(directory) / "loopback.log")
        self.driver.answer()

    def run(self, case, seconds):
        size = BYTES.get(case)
        return [self.driver.run(seconds, [str(size)])] if size else []


def main():
    p = figures.options(__doc__, 5, 0.4, [*sides.SIDES, "loopback"])
    args = p.parse_args()
    results = figures.Results("steps", args, "steps_per_s")
    cases = [c for c in CASES if results.wanted(c)]
    tf = sides.tensorflow()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        job = sides.Job(tf, builder(tf, cases), 1, 1, folder)
        every = [stack.enter_context(sides.Side(name, job)).grow(1)
                 for name in sides.chosen(args) if name != "loopback"]
        if "loopback" in args.sides:
            every.append(Loopback(folder))
            stack.callback(every[-1].driver.close)
        for case in cases:
            for side in every:
                side.run(case, min(args.seconds, 0.2))
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    for a in side.run(case, args.seconds):
                        rate = sides.total([a])
                        results.add(case, side.name, steps_per_s=rate,
                                    p50_us=a["p50_us"], p99_us=a["p99_us"],
                                    **({"gb_per_s": rate * BYTES[case] / 1e9}
                                       if case in BYTES else {}))
            results.done(case)
    results.table([("steps/s", "steps_per_s", "%.3g"),
                   ("p50 us", "p50_us", "%.0f"), ("p99 us", "p99_us", "%.0f"),
                   ("GB/s", "gb_per_s", "%.3g")],
                  [("of loopback", "loopback", "gb_per_s")])


if __name__ == "__main__":
    main()
