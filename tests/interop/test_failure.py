"""Tasks that are killed: training recovers, and nothing is left behind."""
import pathlib
import struct
import sys
import time

import pytest

import cluster as cl
import wire
from wire import FLOAT, INT64, Master, Tensor, Type, f

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs"))
import debtor  # noqa: E402

MANY = 1000000  # steps that no test waits for


def flags(tmp_path, steps, *more):
    return ["--steps=%d" % steps, "--device_filters",
            "--checkpoint_dir=%s" % (tmp_path / "ckpt"), "--save_steps=50",
            *more]


@pytest.mark.trainer
@pytest.mark.sanitize
@pytest.mark.parametrize("victim, variables", [
    (1, "--ref"), pytest.param(0, "--resource", marks=pytest.mark.full)],
    ids=["ps1", "ps0"])
def test_killed_ps_comes_back_and_training_ends_well(cluster, tmp_path,
                                                     victim, variables):
    """The chief restores the checkpoint and all reach the last step."""
    c = cluster(ps=2, workers=2)
    for i in range(2):
        c.train(i, *flags(tmp_path, 2500, variables))
    c.reached(0, 200)
    c.ps[victim].stop()
    down = time.time()
    c.restart_ps(victim)
    c.finish(timeout=240)
    after = [s["step"] for i in range(2) for s in c.steps(i)
             if s["time"] > down]
    assert min(after) > 150, "it began again instead of restoring"
    assert max(after) >= 2500


@pytest.mark.trainer
def test_killed_worker_rejoins_and_the_other_goes_on(cluster, tmp_path):
    c = cluster(ps=2, workers=2)
    for i in range(2):
        c.train(i, *flags(tmp_path, MANY))
    c.reached(1, 100)
    c.reached(0, 100)
    c.workers[1].stop()
    at = c.steps(0)[-1]["step"]
    old = len(c.steps(1))
    c.reached(0, at + 200)
    c.train(1, *flags(tmp_path, MANY))
    cl.wait("worker 1 trains again", lambda: len(c.steps(1)) > old + 50, 120,
            tasks=c.workers, others=c.ps)
    # The chief noticed nothing: its steps only ever rose.
    steps = [s["step"] for s in c.steps(0)]
    assert all(b >= a for a, b in zip(steps, steps[1:]))
    assert c.steps(1)[-1]["step"] > at


@pytest.mark.full
@pytest.mark.trainer
def test_killed_chief_restores_and_goes_on(cluster, tmp_path):
    c = cluster(ps=2, workers=2)
    for i in range(2):
        c.train(i, *flags(tmp_path, MANY))
    c.reached(0, 150)
    c.workers[0].stop()
    old = len(c.steps(0))
    c.train(0, *flags(tmp_path, MANY))
    cl.wait("the chief trains again", lambda: len(c.steps(0)) > old + 50, 120,
            tasks=c.workers, others=c.ps)
    assert c.steps(0)[old]["step"] >= 50


# --- Debts ------------------------------------------------------------------


def owe(c, tmp_path, turn):
    """Start a debtor, let it owe, kill it."""
    task = cl.Task("debtor%d" % turn, [
        sys.executable, cl.PROGRAMS / "debtor.py",
        "--ps=" + c.ports["ps"][0].address,
        "--worker=" + c.ports["worker"][0].address, "--index=0"],
        tmp_path / ("debtor%d.log" % turn)).start()
    try:
        cl.wait("the debtor owes", lambda: "owing" in task.text(), 60,
                tasks=[task], others=c.ps)
        during = c.ps[0].sockets(), c.ps[0].rss()
    finally:
        task.stop()
    return during


@pytest.mark.sanitize
def test_worker_that_vanishes_while_it_owes_leaves_nothing(cluster, tmp_path,
                                                           kind, note):
    """Memory and sockets of the ps return to where they were."""
    c = cluster(ps=1, workers=1)
    ps = c.ps[0]
    bystander = Master(c.ports["ps"][0].address)
    step = wire.new_step()
    waiting = bystander.start("RecvTensor",
                              bystander.recv_request("mine", step))
    bystander.call("GetStatus")
    sockets = ps.sockets()
    owe(c, tmp_path, 0)  # pools and arenas get their size
    cl.wait("the first debtor's sockets are gone",
            lambda: ps.sockets() <= sockets, 60, tasks=[ps])
    before = ps.rss()
    peak = 0
    for turn in range(1, 6):
        during = owe(c, tmp_path, turn)
        assert during[0] > sockets
        peak = max(peak, during[1])
        cl.wait("the debtor's sockets are gone",
                lambda: ps.sockets() <= sockets, 60, tasks=[ps])
    room = (8 if kind == "muster" else 256) << 20
    if cl.measurable():
        cl.wait("memory is back", lambda: ps.rss() <= before + room, 60,
                tasks=[ps])
    note("after 5 debtors of 16 MB each: %+.1f MB, %+.1f MB at the worst"
         % ((ps.rss() - before) / 1e6, (peak - before) / 1e6))
    # What the dead waited for goes to the living.
    heirs(bystander)
    # And who had nothing to do with it still waits, and is served.
    assert not waiting.done()
    handle = bystander.register(
        bystander.n("c", "Const", dtype=Type(FLOAT),
                    value=Tensor(wire.floats(42))),
        bystander.send_node("mine", "c"))
    bystander.run_answer(bystander.call(
        "RunGraph", bystander.run_request(handle, step)))
    assert wire.floats_of(wire.parse(wire.outcome(waiting))[1][0]) == [42]
    bystander.close()


def heirs(m):
    """One element and one gradient: a dead waiter must not take them."""
    types = debtor.list_of_types("component_types", FLOAT)
    put = m.register(
        debtor.queue(m), m.n("c", "Const", dtype=Type(FLOAT),
                             value=Tensor(wire.floats(5, dims=[]))),
        m.n("e", "QueueEnqueueV2", "q", "c")
        + debtor.list_of_types("Tcomponents", FLOAT))
    m.run(put)
    take = m.register(debtor.queue(m),
                      m.n("d", "QueueDequeueV2", "q") + types,
                      m.send_node("out", "d", client=True))
    assert wire.floats_of(m.run(take, recv=[m.key("out")])[m.key("out")]) \
        == [5]
    give = m.register(
        debtor.accumulator(m),
        m.n("s", "Const", dtype=Type(INT64), value=Tensor(
            wire.tensor(INT64, [], struct.pack("<q", 0)))),
        m.n("g", "Const", dtype=Type(FLOAT), value=Tensor(wire.floats(6, 7))),
        m.n("a", "ResourceAccumulatorApplyGradient", "acc", "s", "g",
            dtype=Type(FLOAT)))
    m.run(give)
    count = m.register(debtor.accumulator(m),
                       m.n("n", "ResourceAccumulatorNumAccumulated", "acc"),
                       m.send_node("out", "n", wire.INT32, client=True))
    got = m.run(count, recv=[m.key("out")])[m.key("out")]
    assert struct.unpack("<i", wire.content(got)[1]) == (1,)


@pytest.mark.sanitize
def test_restarted_ps_answers_for_what_it_never_knew(cluster):
    """Calls of sessions and steps from before: codes that clients retry."""
    c = cluster(ps=1, workers=1)
    with Master(c.ports["ps"][0].address) as m:
        handle = m.register(m.n("a", "NoOp"))
        c.ps[0].stop()
        with pytest.raises(wire.Answer) as caught:
            m.run(handle)
        assert caught.value.number == 14
        c.restart_ps(0)

        def answers():
            try:
                m.call("GetStatus")
            except wire.Answer as e:
                assert e.number == 14
                return False
            return True

        cl.wait("the channel is back", answers, 30, tasks=c.ps)
        with pytest.raises(wire.StepError) as step:
            m.run(handle)
        assert step.value.number == 10
        assert "Session handle is not found" in step.value.text
        with pytest.raises(wire.Answer) as caught:
            m.call("RecvTensor", m.recv_request("x", 1))
        assert caught.value.number == 10
        assert "different device incarnation" in caught.value.text
        m.call("CleanupGraph", f(1, 12345))
        m.call("DeleteWorkerSession", f(1, m.session))


@pytest.mark.sanitize
def test_session_of_a_restarted_master_replaces_its_old_one(cluster):
    c = cluster(ps=1, workers=1)
    address, task = c.ports["ps"][0].address, "/job:worker/replica:0/task:0"
    with Master(address, task=task, incarnation=1) as old, \
            Master(address, task="/job:worker/replica:0/task:1",
                   incarnation=1) as other:
        handle = old.register(old.n("a", "NoOp"))
        same = other.register(other.n("a", "NoOp"))
        with Master(address, task=task, incarnation=2) as new:
            new.run(new.register(new.n("a", "NoOp")))
            with pytest.raises((wire.StepError, wire.Answer)) as caught:
                old.run(handle)
            assert caught.value.number == 10
            other.run(same)
