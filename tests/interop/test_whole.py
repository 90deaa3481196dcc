"""A whole cluster: every mixture of our tasks and TensorFlow's.

The workers of ours are `muster serve` too, and the TensorFlow program is only
the client of their master service.
"""
import pytest

from test_parity import CASES, STEPS
from test_trainer import check

pytestmark = pytest.mark.trainer
# (ps 0, ps 1, worker): m is ours, t is TensorFlow's.
MIXTURES = ["mmm", "mtm", "tmm", "ttm", "mtt"]
KIND = {"m": "muster", "t": "tensorflow"}


def losses_of(directory, mixture):
    import cluster as cl
    ps = [KIND[k] for k in mixture[:2]]
    served = [0] if mixture[2] == "m" else []
    with cl.Cluster(directory, ps, 1, served) as c:
        return c.run("losses", "--steps=%d" % STEPS)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return losses_of(tmp_path_factory.mktemp("ttt"), "ttt")


@pytest.mark.parametrize("mixture", MIXTURES)
def test_losses_are_those_of_tensorflow_alone(reference, tmp_path, mixture):
    ours = losses_of(tmp_path, mixture)
    for case in CASES:
        a, b = ours[case], reference[case]
        assert len(a) == len(b) == STEPS
        off = [i for i in range(STEPS) if abs(a[i] - b[i]) > 1e-4]
        assert not off, "%s: step %d is the first that differs: %r, not %r" % (
            case, off[0], a[off[0]], b[off[0]])


@pytest.mark.parametrize("model, mode, variables", [
    pytest.param("mlp", "async", "ref", marks=pytest.mark.sanitize),
    pytest.param("mlp", "sync", "resource", marks=pytest.mark.sanitize),
    ("cnn", "async", "resource"), ("cnn", "sync", "ref"),
    ("embedding", "async", "resource"), ("embedding", "sync", "ref"),
    ("lstm", "async", "ref"), ("lstm", "sync", "resource")])
def test_four_tasks_of_ours_train(tmp_path, model, mode, variables):
    import cluster as cl
    steps = 400 if mode == "async" else 120
    flags = ["--model=" + model, "--" + variables,
             "--checkpoint_dir=%s" % (tmp_path / "ckpt"), "--save_steps=50"]
    if mode == "sync":
        flags.append("--sync")
    with cl.Cluster(tmp_path / "c", ("muster", "muster"), 2, (0, 1)) as c:
        for i in range(2):
            c.train(i, "--steps=%d" % steps, *flags)
        check(c, steps, model)
    assert (tmp_path / "ckpt" / "checkpoint").exists()


def test_one_worker_of_each_kind_trains(tmp_path):
    import cluster as cl
    with cl.Cluster(tmp_path, ("muster", "tensorflow"), 2, (1,)) as c:
        for i in range(2):
            c.train(i, "--steps=300", "--model=mlp")
        check(c, 300, "mlp")
