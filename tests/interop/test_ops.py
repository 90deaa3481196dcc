"""Every op that our server has gives what TensorFlow's own gives.

The cases are in cases/.  An op without one fails here; an op that cannot have
one (_Send, Enter...) is in cases/covered.py with the test that covers it.

    pytest tests/interop/test_ops.py -k Scatter      only these
"""
import json
import subprocess

import pytest

import cases
import cluster as cl

# What a ps meets with all usual optimizers, the sharded saver and partitioned
# embeddings.
MET = """
VarHandleOp AssignVariableOp ReadVariableOp VarIsInitializedOp
AssignAddVariableOp AssignSubVariableOp ResourceGather ResourceScatterAdd
ResourceApplyGradientDescent ResourceApplyAdam ResourceApplyAdagrad
ResourceApplyMomentum ResourceApplyCenteredRMSProp ResourceSparseApplyAdagrad
ResourceSparseApplyMomentum VariableV2 Assign AssignSub IsVariableInitialized
ApplyGradientDescent ApplyAdam ApplyAdagrad ApplyFtrl SparseApplyAdagrad
SparseApplyFtrl ScatterAdd ScatterSub GatherV2 Unique UnsortedSegmentSum Shape
StridedSlice ExpandDims Pack Const Fill RandomUniform RandomStandardNormal Mul
AddV2 Sub Neg RealDiv Sqrt Identity Snapshot NoOp Switch Merge Enter Exit
NextIteration LoopCond _Send _Recv _HostSend _HostRecv ShardedFilename SaveV2
RestoreV2 MergeV2Checkpoints FIFOQueueV2 QueueEnqueueManyV2 QueueDequeueV2
QueueCloseV2 ResourceConditionalAccumulator ResourceAccumulatorApplyGradient
ResourceAccumulatorTakeGradient ResourceAccumulatorSetGlobalStep ControlTrigger
""".split()


def server_ops():
    """The ops of the server under test."""
    if not cl.muster():
        return []
    done = subprocess.run([cl.muster(), "ops"], capture_output=True,
                          text=True, check=True)
    return done.stdout.split()


def pytest_generate_tests(metafunc):
    if "op" not in metafunc.fixturenames:
        return
    if metafunc.config.getoption("--ps") == "muster":
        names = server_ops()
    else:
        names = sorted(cases.load())
    metafunc.parametrize("op", names)


@pytest.fixture(scope="module")
def results(request, tmp_path_factory, kind):
    """{op: answer of programs/ops.py} of the ops that this run selects."""
    cases.load()
    chosen = [i.callspec.params["op"] for i in request.session.items
              if i.module is request.module and hasattr(i, "callspec")]
    pending = [op for op in chosen if op in cases.TABLE]
    folder = tmp_path_factory.mktemp("ops")
    found = {}
    with cl.Cluster(folder, [kind], 1) as c:
        while pending:
            run(c, folder, pending, found)
            pending = [op for op in pending if op not in found]
    return found


def run(c, folder, pending, found):
    """Try the pending ops; one that kills the ps is recorded, and only it."""
    names, out = folder / "names", folder / "answers"
    names.write_text("\n".join(pending))
    out.unlink(missing_ok=True)
    c.workers[0] = worker = cl.Task(
        "ops", [cl.python(), cl.PROGRAMS / "ops.py", *c.host_flags(),
                "--task_index=0", "--out=%s" % out, "--ops=%s" % names],
        folder / "ops.log").start()
    cl.wait("the ops are through or the ps is gone",
            lambda: not worker.alive() or not c.ps[0].alive(), 1200,
            others=[worker, c.ps[0]])
    ps_died = not c.ps[0].alive()
    if ps_died:
        worker.stop()
    last = None
    for line in out.read_text().split("\n") if out.exists() else []:
        answer = json.loads(line) if line.endswith("}") else None
        if answer and "start" in answer:
            last = answer["op"]
        elif answer:
            found[answer["op"]] = answer
    if not ps_died and worker.code == 0:
        return
    dead = c.ps[0] if ps_died else worker
    assert last, "%s died at once\n%s" % (dead.name, cl.stories([dead]))
    found[last] = {"op": last, "cases": 0, "failed": [
        ["", "%s died (code %s)\n%s" % (
            dead.name, dead.code, dead.text()[-1500:])]]}
    if ps_died:
        c.restart_ps(0)


def test_op_gives_what_tensorflow_gives(op, request):
    cases.load()
    if op in cases.COVERED and op not in cases.TABLE:
        return
    if op not in cases.TABLE:
        pytest.fail("%s: no case for this op: add one in cases/" % op,
                    pytrace=False)
    answer = request.getfixturevalue("results")[op]
    if answer.get("skip"):
        pytest.skip(answer["skip"])
    if answer["failed"]:
        lines = ["  %s: %s" % (label, why)
                 for label, why in answer["failed"][:12]]
        if len(answer["failed"]) > 12:
            lines.append("  ...")
        pytest.fail("%s: %d of %d cases\n%s" % (
            op, len(answer["failed"]), answer["cases"], "\n".join(lines)),
            pytrace=False)


def test_ops_that_a_ps_meets_are_there(kind):
    if kind != "muster":
        pytest.skip("about our server")
    have = set(server_ops())
    # _Send and its kin belong to the executor and may not be listed.
    missing = [op for op in MET if op not in have and op[0] != "_"]
    assert not missing
