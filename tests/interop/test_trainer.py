"""The seeds' trainer on two ps and two TensorFlow workers.

Every model, asynchronous and synchronous, with ref and resource variables:
it reaches its last step, the loss falls, the workers end with 0 and the ps
tasks are still there, with the checkpoint of the last step on disk.
"""
import itertools

import pytest

pytestmark = pytest.mark.trainer
MODELS = ["mlp", "cnn", "embedding", "lstm"]
# Each model in both modes, each mode and each model with both kinds of
# variables.
COVER = {("mlp", "async", "ref"), ("mlp", "sync", "resource"),
         ("cnn", "async", "resource"), ("cnn", "sync", "ref"),
         ("embedding", "async", "ref"), ("embedding", "sync", "resource"),
         ("lstm", "async", "resource"), ("lstm", "sync", "ref")}
SANITIZED = {("embedding", "async", "ref"), ("mlp", "sync", "resource")}
# How far the loss must have come down, of where it started.
FALL = {"mlp": 0.5, "cnn": 0.3, "embedding": 0.95, "lstm": 0.7}


def cases():
    for case in itertools.product(MODELS, ["async", "sync"],
                                  ["ref", "resource"]):
        marks = [] if case in COVER else [pytest.mark.full]
        if case in SANITIZED:
            marks.append(pytest.mark.sanitize)
        yield pytest.param(*case, id="-".join(case), marks=marks)


def mean(losses):
    return sum(s["loss"] for s in losses) / len(losses)


def check(c, steps, model):
    """All workers ended well and what they logged makes sense."""
    c.finish()
    logs = [c.steps(i) for i in range(len(c.workers))]
    assert max(s["step"] for log in logs for s in log) >= steps
    for log in logs:
        assert log, "a worker made no step"
    chief = logs[0]
    assert mean(chief[-10:]) < FALL[model] * mean(chief[:3])


def start(c, steps, *flags):
    """The chief first; the second worker when there is room on the cores."""
    for i in range(len(c.workers)):
        c.train(i, "--steps=%d" % steps, *flags)


@pytest.mark.parametrize("model, mode, variables", list(cases()))
def test_trainer_reaches_its_last_step(cluster, tmp_path, model, mode,
                                       variables):
    c = cluster(ps=2, workers=2)
    steps = 400 if mode == "async" else 120
    flags = ["--model=" + model, "--" + variables,
             "--checkpoint_dir=%s" % (tmp_path / "ckpt"), "--save_steps=50"]
    if mode == "sync":
        flags.append("--sync")
    start(c, steps, *flags)
    check(c, steps, model)
    saved = sorted(int(p.name.split("-")[1].split(".")[0])
                   for p in (tmp_path / "ckpt").glob("model.ckpt-*.index"))
    assert saved[-1] >= steps
    assert len(list((tmp_path / "ckpt").glob("*.data-*"))) == 2 * len(saved)
    assert not list((tmp_path / "ckpt").glob("*_temp*"))


@pytest.mark.parametrize("kinds, model, flags", [
    (["muster", "tensorflow"], "embedding", ["--ref"]),
    (["tensorflow", "muster"], "mlp", ["--sync", "--resource"]),
    pytest.param(["muster", "tensorflow"], "lstm", ["--sync", "--ref"],
                 marks=pytest.mark.full),
    pytest.param(["tensorflow", "muster"], "cnn", ["--resource"],
                 marks=pytest.mark.full),
], ids=lambda v: "-".join(v) if isinstance(v, list) else v)
def test_trainer_on_one_ps_of_each_kind(cluster, tmp_path, kind, kinds, model,
                                        flags):
    if kind != "muster":
        pytest.skip("needs a ps of ours")
    c = cluster(ps=kinds, workers=2)
    steps = 120 if "--sync" in flags else 400
    start(c, steps, "--model=" + model, "--device_filters",
          "--checkpoint_dir=%s" % (tmp_path / "ckpt"), *flags)
    check(c, steps, model)


def test_checkpoint_of_one_kind_is_continued_on_the_other(cluster, tmp_path,
                                                          kind):
    """The trainer restores what the other ps wrote, and goes on from it."""
    flags = ["--model=embedding", "--resource", "--optimizer=adam",
             "--device_filters", "--checkpoint_dir=%s" % (tmp_path / "ckpt")]
    last = []
    for turn, (ps, steps) in enumerate([
            (kind, 100), ("tensorflow", 200), (kind, 300)]):
        c = cluster(ps=[ps, ps], workers=1)
        c.train(0, "--steps=%d" % steps, *flags)
        c.finish()
        log = c.steps(0)
        assert log[0]["step"] == turn * 100 + 1
        assert log[-1]["step"] == steps
        if last:
            assert mean(log[:10]) < 1.5 * mean(last[-10:]) + 0.05
        last = log
        if turn == 0:
            local_reading(c.run("reader", "--dir=%s" % (tmp_path / "ckpt")))


def local_reading(found):
    """TensorFlow alone reads the checkpoint, both ways the same."""
    assert found["embedding/words/table"][0] == [500, 16]
    assert found["embedding/words/table/Adam"][0] == [500, 16]
    for name, (shape, by_reader, in_session) in found.items():
        assert by_reader == in_session, name
