"""How long a null step takes while others move large tensors.

One worker makes null steps on a ps; another one pulls and pushes 256 MB through
the same ps, or does nothing (alone).
"""
import contextlib
import tempfile

import figures
import sides
import steps

CASES = ("alone", "pull 256 MB", "push 256 MB")


def measure(side, case, seconds):
    """The answer of the one, and the GB/s of the other."""
    quiet, loud = side.workers
    if case != "alone":
        loud.ask(seconds + 0.5, side.job.steps[case])
        quiet.run(0.2, side.job.steps["null"])
    answer = quiet.run(seconds, side.job.steps["null"])
    if case == "alone":
        return answer, {}
    moved = loud.answer(seconds)
    return answer, {"gb_per_s": sides.total([moved]) * steps.BYTES[case] / 1e9}


def main():
    p = figures.options(__doc__, 5, 3, ("tensorflow", "muster"))
    args = p.parse_args()
    results = figures.Results("load", args, "p99_us", less=True)
    cases = [c for c in CASES if results.wanted(c)]
    tf = sides.tensorflow()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        job = sides.Job(tf, steps.builder(tf, ["null", *cases]), 1, 2, folder)
        every = [stack.enter_context(sides.Side(name, job)).grow(2)
                 for name in sides.chosen(args)]
        for case in cases:
            for side in every:
                measure(side, case, 0.2)
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    a, other = measure(side, case, args.seconds)
                    results.add(case, side.name, p50_us=a["p50_us"],
                                p99_us=a["p99_us"], p999_us=a["p999_us"],
                                steps_per_s=sides.total([a]), **other)
            results.done(case)
    results.table([("p50 us", "p50_us", "%.0f"), ("p99 us", "p99_us", "%.0f"),
                   ("p99.9 us", "p999_us", "%.0f"),
                   ("steps/s", "steps_per_s", "%.0f"),
                   ("the other's GB/s", "gb_per_s", "%.2f")],
                  [("less p50", "tensorflow", "p50_us"),
                   ("less p99.9", "tensorflow", "p999_us")], "less p99")


if __name__ == "__main__":
    main()
