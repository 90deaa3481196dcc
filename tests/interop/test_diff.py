"""A few hundred of diff.py's random graphs, always the same ones.

The long runs are made by hand, see README.md; this is what every change has
to pass.  A failure prints the call and the seed, and `diff.py --seed N
--count 1` runs it again.
"""
import pytest

import diff

SEEDS = [(1000, 150), (50000, 150)]


@pytest.mark.parametrize("seed,count", SEEDS)
def test_random_graphs_give_what_tensorflow_gives(seed, count, kind, capsys):
    if kind != "muster":
        pytest.skip("about our server")
    failed = diff.main(["--seed", str(seed), "--count", str(count),
                        "--quiet"])
    if failed:
        pytest.fail(capsys.readouterr().out, pytrace=False)
