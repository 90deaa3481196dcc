"""Figures and tables: medians, spreads, and ratios taken round by round.

Machines are shared and noisy, so both sides are measured in one run, in turn,
and compared within each round: the ratio's median and its range say more than
two numbers from different minutes.
"""
import statistics


def spread(values, form="%.3g"):
    """'median [min..max]'"""
    return ("%s [%s..%s]" % (form, form, form)) % (
        statistics.median(values), min(values), max(values))


def ratios(ours, theirs):
    """ours / theirs of each round."""
    return [a / b for a, b in zip(ours, theirs)]


def table(head, rows):
    """Plain text columns, as wide as they need to be."""
    wide = [max(len(str(row[i])) for row in [head, *rows])
            for i in range(len(head))]
    for row in [head, ["-" * w for w in wide], *rows]:
        print("  ".join(str(c).ljust(w) for c, w in zip(row, wide)).rstrip())
    print(flush=True)


def say(text):
    print(text, flush=True)
