"""Figures and tables: medians, spreads, and ratios taken round by round.

Machines are shared and noisy, so all sides are measured in one run, in turn,
and compared within each round: the ratio's median and its range say more than
two numbers from different minutes.
"""
import argparse
import json
import os
import pathlib
import statistics


def spread(values, form="%.3g"):
    """'median [min..max]', numbers past the form's digits in full."""
    return "%s [%s..%s]" % tuple(
        "%.0f" % v if abs(v) >= 1000 else form % v
        for v in (statistics.median(values), min(values), max(values)))


def ratios(ours, theirs):
    """ours / theirs of each round."""
    return [a / b for a, b in zip(ours, theirs) if b]


def table(head, rows):
    """Plain text columns, as wide as they need to be."""
    wide = [max(len(str(row[i])) for row in [head, *rows])
            for i in range(len(head))]
    for row in [head, ["-" * w for w in wide], *rows]:
        print("  ".join(str(c).ljust(w) for c, w in zip(row, wide)).rstrip())
    print(flush=True)


def say(text):
    print(text, flush=True)


def options(doc, rounds, seconds, sides):
    """The parser of a bench with sides, and what all of them take."""
    p = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=rounds)
    p.add_argument("--seconds", type=float, default=seconds,
                   help="of each measurement (%(default)g)")
    p.add_argument("--only", default="", metavar="WORD,...",
                   help="cases whose name has one of these in it")
    p.add_argument("--sides", default=",".join(sides), metavar="NAME,...",
                   help="who is measured (%(default)s)")
    p.add_argument("--quick", default="", metavar="off,tcp,shm",
                   help="ours also with these values of MUSTER_QUICK")
    p.add_argument("--json", metavar="FILE",
                   help="where the figures go as well; those of other benches "
                   "in it are kept")
    return p


def machine():
    with open("/proc/meminfo") as f:
        total = int(f.readline().split()[1]) >> 10
    with open("/proc/cpuinfo") as f:
        names = [l.split(":")[1].strip() for l in f if "model name" in l]
    return {"cpus": os.cpu_count(), "cpu": names[0] if names else "",
            "memory_mb": total, "load": os.getloadavg()[0]}


class Results:
    """What was measured, by case, side and round."""

    def __init__(self, bench, args, figure, less=False):
        """figure: the one that is compared with TensorFlow's.

        less: ratios say how many times less it is, not how many times more.
        """
        self.bench, self.args, self.figure, self.less = bench, args, figure, less
        self.machine = machine()
        self.cases = {}  # case -> side -> figure -> values, one a round

    def wanted(self, case):
        return any(word in case for word in self.args.only.split(","))

    def add(self, case, side, **figures):
        values = self.cases.setdefault(case, {}).setdefault(side, {})
        for name, value in figures.items():
            values.setdefault(name, []).append(value)

    def done(self, case):
        """A case is over; what was measured so far is kept."""
        if any(name.startswith(case) for name in self.cases):
            say("  %s done" % case)
            self.save()

    def ratios(self, case, side, base="tensorflow", figure=None):
        """Round by round, [] where there is nothing to compare."""
        pair = [self.cases[case].get(name, {}).get(figure or self.figure, [])
                for name in (side, base)]
        if side == base:
            return []
        return ratios(*(reversed(pair) if self.less else pair))

    def table(self, columns, compare=(), title="times TensorFlow"):
        """columns: (title, figure, form), of all cases and sides.

        title: of the ratio to TensorFlow; compare: (title, side, figure) of
        more ratios.
        """
        compare = [(title, "tensorflow", self.figure), *compare]
        rows = []
        for case, sides in self.cases.items():
            for side, values in sides.items():
                cells = [spread(values[figure], form) if figure in values
                         else "" for _, figure, form in columns]
                for _, base, figure in compare:
                    found = self.ratios(case, side, base, figure)
                    cells.append(spread(found, "%.2f") if found else "")
                rows.append((case, side, *cells))
        table(("step", "side", *(c[0] for c in columns),
               *(c[0] for c in compare)), rows)

    def save(self):
        if not self.args.json:
            return
        path = pathlib.Path(self.args.json)
        every = json.loads(path.read_text()) if path.exists() else {}
        every[self.bench] = {
            "options": vars(self.args), "machine": self.machine,
            "cases": [{"case": case, "side": side, "rounds": values,
                       "median": {name: statistics.median(v)
                                  for name, v in values.items()},
                       "times_tensorflow": summary(self.ratios(case, side))}
                      for case, sides in self.cases.items()
                      for side, values in sides.items()]}
        path.write_text(json.dumps(every, indent=1) + "\n")


def summary(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values)} if values else None


def turns(sides, round_):
    """The sides in the order of a round: who goes first changes."""
    at = round_ % len(sides)
    return [*sides[at:], *sides[:at]]
