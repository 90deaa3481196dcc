"""Every TensorFlow 1 optimizer: five steps on the ps and on the worker agree.

Dense gradients and sparse ones with repeated rows, ref and resource variables;
AdaMax, AddSign and PowerSign, which have no class, through their ops.
"""
import pytest

NAMES = ["GradientDescent", "Momentum", "Nesterov", "Adagrad", "AdagradDA",
         "Adadelta", "Adam", "RMSProp", "CenteredRMSProp", "Ftrl",
         "FtrlShrinkage", "ProximalAdagrad", "ProximalGradientDescent"]
CASES = ["%s-%s-%s" % (n, f, v) for n in NAMES for f in ("dense", "sparse")
         for v in ("ref", "resource")] + [
             n + "-rule" for n in ("AdaMax", "AddSign", "PowerSign")]

pytestmark = [pytest.mark.trainer, pytest.mark.sanitize]


@pytest.fixture(scope="module")
def histories(shared):
    return shared.run("optimizers")


@pytest.mark.parametrize("case", CASES)
def test_optimizer_on_the_ps_does_as_on_the_worker(histories, case):
    history = histories[case]
    assert not isinstance(history, str), history
    for step, (ps, here) in enumerate(history):
        for i, (a, b) in enumerate(zip(ps, here)):
            scale = max(map(abs, b))
            worst = max(abs(x - y) / max(abs(y), 1e-2 * scale, 1e-30)
                        for x, y in zip(a, b))
            assert worst <= 1e-5, "state %d differs by %g after step %d" % (
                i, worst, step + 1)
    assert history[0][0] != history[-1][0], "nothing was updated"
