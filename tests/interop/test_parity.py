"""Same seeds, one worker: the first losses are those of TensorFlow's ps."""
import pytest

pytestmark = pytest.mark.trainer
STEPS = 50
CASES = ["%s-%s" % (m, v) for m in ("mlp", "cnn", "embedding", "lstm")
         for v in ("ref", "resource")]


@pytest.fixture(scope="module")
def losses(tmp_path_factory, kind):
    """(losses with the ps under test, losses with TensorFlow's)."""
    import cluster as cl
    both = []
    for ps in (kind, "tensorflow"):
        with cl.Cluster(tmp_path_factory.mktemp(ps), [ps, ps], 1) as c:
            both.append(c.run("losses", "--steps=%d" % STEPS))
    return both


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_on_tensorflows_ps(losses, case):
    ours, theirs = losses[0][case], losses[1][case]
    assert len(ours) == len(theirs) == STEPS
    off = max(abs(a - b) for a, b in zip(ours, theirs))
    first = next((i for i, (a, b) in enumerate(zip(ours, theirs))
                  if abs(a - b) > 1e-4), None)
    assert off <= 1e-4, "step %s is the first that differs: %r, not %r" % (
        first, ours[first], theirs[first])
    assert ours[-1] < ours[0]
