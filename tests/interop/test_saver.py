"""Checkpoints that ps tasks write and read, bit for bit.

All types, both kinds of variables, and partitioned ones, on two ps tasks: what
one kind of ps saved, the other restores, in the same cut and in others.
"""
import pytest


def run(c, what, prefix, *parts):
    return c.run("saver", "--do=" + what, "--prefix=%s" % prefix, "--parts",
                 *parts)


@pytest.mark.parametrize("ours_saves", [True, False])
def test_checkpoint_is_restored_bit_for_bit(cluster, tmp_path, kind,
                                            ours_saves):
    kinds = [kind, "tensorflow"] if ours_saves else ["tensorflow", kind]
    prefix = tmp_path / "new" / "dir" / "model"
    if not ours_saves:
        prefix.parent.mkdir(parents=True)  # theirs makes one level only
    saved, = run(cluster(ps=[kinds[0]] * 2, workers=1), "save", prefix, 3)
    files = sorted(p.name for p in prefix.parent.iterdir())
    assert files == ["checkpoint", "model.data-00000-of-00002",
                     "model.data-00001-of-00002", "model.index"]
    restored = run(cluster(ps=[kinds[1]] * 2, workers=1), "restore", prefix,
                   3, 1, 5)
    assert restored == [saved] * 3


def test_shards_of_both_kinds_make_one_checkpoint(cluster, tmp_path, kind):
    """One ps of each kind; the second merges."""
    for turn, kinds in enumerate([[kind, "tensorflow"], ["tensorflow", kind]]):
        prefix = tmp_path / ("model%d" % turn)
        c = cluster(ps=kinds, workers=1)
        saved, = run(c, "save", prefix, 3)
        assert run(c, "restore", prefix, 2, 3) == [saved] * 2
