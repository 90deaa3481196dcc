"""Run cases of ops on the ps and on this worker, and compare.

Each op gets a graph and a session of its own: every case is built twice, under
/job:ps/task:0 and on this worker, and one step fetches them all.  If that step
fails, the cases run one by one, so that the answer names the case; errors that
a case expects are compared by class and text.

The answer is one JSON line an op, written when it is done: {"op", "cases",
"failed": [[label, why]]}; a line {"op", "start": true} before it says which op
was being tried if this process or the ps does not live to the end.
"""
import argparse
import json
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.python.framework import kernels  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

import cases  # noqa: E402

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5,
             "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}
TIMEOUT_MS = 30000
# The cases are written for 2.21.  An older TensorFlow may lack a kernel, say
# the same in other words, or sum 16 bits more roughly.
OLD = tuple(int(n) for n in tf.__version__.split(".")[:2]) < (2, 21)
if OLD:
    TOLERANCE["float16"] = 2e-2


class Kit:
    """What a case builds with; one for each side of each case."""

    def __init__(self, side, device, task, prefix, feeds, scratch):
        self.tf = tf
        self.raw = tf.raw_ops
        self.side = side          # "ps" or "worker"
        self.device = device      # where the case lives
        self.task = task          # the worker's own device
        self.prefix = prefix
        self.feeds = feeds
        self.scratch = pathlib.Path(scratch) / side
        self.count = 0

    def types(self, op, attr="T"):
        return kernel_types(op, attr)

    def name(self):
        """A name that no other case uses."""
        self.count += 1
        return "%s_%d" % (re.sub(r"\W", "_", self.prefix), self.count)

    def feed(self, spec, dtype=None, position=0):
        """A placeholder on the worker for an array, X or V."""
        if isinstance(spec, (cases.X, cases.V)):
            name, value = spec.make(dtype, position)
        else:
            value = np.asarray(spec)
            name = "string" if value.dtype == object else value.dtype.name
        kind = tf.as_dtype(name)
        if kind != tf.string:
            value = value.astype(kind.as_numpy_dtype)
        # A control edge to a placeholder would be lost when it is fed.
        with tf.device(self.task), tf.control_dependencies(None):
            p = tf.placeholder(kind, None)
        self.feeds[p] = value
        return p

    x = feed

    def after(self, *ops):
        """A context whose ops run after these."""
        return tf.control_dependencies(
            [getattr(o, "op", o) for o in ops])

    def path(self, name):
        """A file of this side."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        return str(self.scratch / name)

    # Variables that have a value.

    def var(self, value, dtype=None, position=0):
        """A resource variable: its handle, after the assignment."""
        value = self.feed(value, dtype, position)
        handle = self.raw.VarHandleOp(dtype=value.dtype, shape=None,
                                      shared_name=self.name())
        with self.after(self.raw.AssignVariableOp(resource=handle,
                                                  value=value)):
            return tf.identity(handle)

    def ref(self, value, dtype=None, position=0, shape=None):
        """A ref variable: the reference, after the assignment."""
        value = self.feed(value, dtype, position)
        array = self.feeds[value]
        ref = self.raw.VariableV2(
            shape=array.shape if shape is None else shape, dtype=value.dtype,
            shared_name=self.name())
        return self.raw.Assign(ref=ref, value=value, use_locking=True)

    def read(self, handle, dtype):
        return self.raw.ReadVariableOp(resource=handle, dtype=dtype)


ALL = {}


def kernel_types(op, attr):
    """The plain types that TensorFlow's CPU kernels of the op have."""
    key = (op, attr)
    if key in ALL:
        return ALL[key]
    names = set()
    for k in kernels.get_registered_kernels_for_op(op).kernel:
        if k.device_type != "CPU":
            continue
        mine = [c for c in k.constraint if c.name == attr]
        if mine:
            names.update(tf.as_dtype(t).name
                         for t in mine[0].allowed_values.list.type)
        else:
            names.update(declared_types(op, attr))
    names &= set(declared_types(op, attr))
    ALL[key] = [t for t in cases.PLAIN if t in names]
    return ALL[key]


def declared_types(op, attr):
    op_def = op_def_registry.get(op)
    for a in op_def.attr:
        if a.name == attr:
            return [tf.as_dtype(t).name for t in
                    a.allowed_values.list.type] or cases.PLAIN
    return [tf.as_dtype(a.type).name for a in op_def.input_arg[:1] if a.type]


# --- Comparing --------------------------------------------------------------


def difference(got, want, tol):
    """None, or what is wrong with `got`."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype:
        return "type %s, not %s" % (got.dtype, want.dtype)
    if got.shape != want.shape:
        return "shape %s, not %s" % (got.shape, want.shape)
    if want.dtype == object or want.dtype.kind in "biuSU":
        bad = got != want
    else:
        name = want.dtype.name
        if name == "bfloat16":
            got, want = got.astype(np.float32), want.astype(np.float32)
        if tol is None or isinstance(tol, dict):
            tol = {**TOLERANCE, **(tol or {})}[name]
        with np.errstate(all="ignore"):
            finite = np.abs(want[np.isfinite(want)])
            slack = tol * (0.1 * finite.max() if finite.size else 0)
            near = np.abs(got - want) <= tol * np.abs(want) + slack
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | (
            near & np.isfinite(want))
        bad = ~same
    if not np.any(bad):
        return None
    where = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])
    at = where if want.shape else ()
    return "%d of %d differ, first at %s: %r, not %r" % (
        np.sum(bad), want.size, list(at), got[at], want[at])


def plain(error):
    """(class, text) of an error without what names nodes and tasks."""
    raw = error.__context__  # before Python wove its own tracebacks in
    text = (raw if isinstance(raw, tf.errors.OpError) else error).message
    lines = [line for line in (text or "").split("\n") if not re.match(
        r"(\s*(\(\d+\) )?[A-Z_]+: )?From /job:\S+:$|=+$|\s*$|\d+ root error",
        line)]
    text = re.sub(r"^\s*\(\d+\) [A-Z_]+: ", "", lines[0] if lines else "")
    text = re.sub(r"\{\{node [^}]*\}\}\s*", "", text)
    text = re.sub(r"\w*(ps|worker)/case\d+\S*", "NODE", text)
    text = re.sub(r"\w*(ps|worker)_case\d+\w*", "NAME", text)
    text = re.sub(r"\b(ps|worker)/NAME", "JOB/NAME", text)
    text = re.sub(r"container=(ps|worker)", "container=JOB", text)
    text = re.sub(r"/(ps|worker)/", "/SIDE/", text)
    text = re.sub(r"/job:(ps|worker)", "/job:JOB", text)
    return type(error).__name__, text.strip()


class Run:
    """Cases of one op in one graph and session."""

    serial = 0  # names of state are used once: it outlives the session

    def __init__(self, session_args, chosen, task, scratch):
        Run.serial += 1
        self.cases = chosen
        self.sides = {"ps": [], "worker": []}
        self.feeds = {"ps": [], "worker": []}
        self.graph = tf.Graph()
        devices = {"ps": "/job:ps/task:0", "worker": task}
        with self.graph.as_default():
            for number, case in chosen:
                for side, device in devices.items():
                    feeds = {}
                    prefix = "%s_case%d_%d_%d" % (
                        side, os.getpid(), Run.serial, number)
                    with tf.name_scope("%s/case%d" % (side, number)), \
                            tf.device(device):
                        kit = Kit(side, device, task, prefix, feeds, scratch)
                        out = flat(case.build(kit))
                    self.sides[side].append(out)
                    self.feeds[side].append(feeds)
        self.session = tf.Session(graph=self.graph, **session_args)

    def run(self, sides, which):
        fetches = [[self.sides[s][i] for i in which] for s in sides]
        feeds = {}
        for s in sides:
            for i in which:
                feeds.update(self.feeds[s][i])
        options = tf.RunOptions(timeout_in_ms=TIMEOUT_MS)
        return self.session.run(fetches, feeds, options=options)

    def verdict(self, case, got, want):
        for i, (g, w) in enumerate(zip(got, want)):
            if case.compare == "shapes":
                g, w = np.shape(g), np.shape(w)
            why = difference(g, w, case.tol)
            if why:
                return "output %d: %s" % (i, why)
        return None

    def together(self):
        """[why] of all cases, if none raises."""
        every = range(len(self.cases))
        whys = [None] * len(self.cases)
        for turn in range(max(c.runs for _, c in self.cases)):
            got, want = self.run(["ps", "worker"], every)
            for i, (_, case) in enumerate(self.cases):
                if turn < case.runs and not whys[i]:
                    whys[i] = self.verdict(case, got[i], want[i])
        return whys

    def single(self, i):
        """Why case i fails, run on its own."""
        case = self.cases[i][1]
        ends = {}
        for side in "worker", "ps":
            try:
                ends[side] = [self.run([side], [i])[0][0]
                              for _ in range(case.runs)], None
            except tf.errors.OpError as e:
                if side == "ps" and isinstance(
                        e, (tf.errors.UnavailableError,
                            tf.errors.AbortedError)) and not case.fails:
                    return "the ps is gone: " + plain(e)[1]
                ends[side] = None, e
        got, error = ends["ps"]
        want, expected = ends["worker"]
        if OLD and expected is not None and (
                not case.fails or type(error) is type(expected)):
            return None
        if (expected is not None) != case.fails:
            return "the case is wrong, TensorFlow says: %s" % (
                ": ".join(plain(expected)) if expected else "it works")
        if expected is not None:
            if error is None:
                return "no error, but TensorFlow says: %s: %s" % plain(
                    expected)
            if plain(error) != plain(expected):
                return "says %s: %s\n        not  %s: %s" % (
                    plain(error) + plain(expected))
            return None
        if error is not None:
            return "%s: %s" % plain(error)
        for g, w in zip(got, want):
            why = self.verdict(case, g, w)
            if why:
                return why
        return None

    def close(self):
        self.session.close()


def flat(out):
    """The tensors that a case returned."""
    if isinstance(out, (list, tuple)):
        return [t for o in out for t in flat(o)]
    if isinstance(out, tf.Operation):
        with tf.control_dependencies([out]):
            return [tf.constant(1)]
    return [out]


def test(op, session_args, task, scratch):
    """[(label, why)] of what fails, and how many cases there were."""
    kit = Kit("worker", task, task, "", {}, scratch)
    every = []
    for generate in cases.TABLE[op]:
        every.extend(generate(kit))
    every = list(enumerate(every))
    failed = []
    print(op, len(every), flush=True)
    if not every:
        return [("", "the table has no case for a type of this op")], 0
    calm = [e for e in every if not e[1].fails]
    todo = [[e] for e in every if e[1].fails]
    if calm:
        try:
            run = Run(session_args, calm, task, scratch)
            whys = run.together()
            run.close()
            failed += [(c.label, why) for (_, c), why in zip(calm, whys)
                       if why]
        except Exception:
            todo = [[e] for e in calm] + todo
    for one in todo:
        case = one[0][1]
        try:
            run = Run(session_args, one, task, scratch)
            why = run.single(0)
            run.close()
        except tf.errors.OpError as e:
            why = "%s: %s" % (type(e).__name__, e.message[:300])
        except Exception as e:
            why = None if OLD else "the case cannot be built: %s: %s" % (
                type(e).__name__, str(e)[:500])
        if why:
            failed.append((case.label, why))
            if "the ps is gone" in why:
                break
    return failed, len(every)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index", type=int)
    p.add_argument("--out")
    p.add_argument("--ops", help="a file with one name a line")
    a = p.parse_args()
    cases.load()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": a.ps_hosts.split(","),
                                    "worker": a.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name="worker",
                             task_index=a.task_index)
    config = tf.ConfigProto(
        device_filters=["/job:ps", "/job:worker/task:%d" % a.task_index])
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    session_args = {"target": server.target, "config": config}
    task = "/job:worker/task:%d" % a.task_index
    scratch = a.out + ".scratch"
    with open(a.out, "a", buffering=1) as out:
        for op in pathlib.Path(a.ops).read_text().split():
            out.write(json.dumps({"op": op, "start": True}) + "\n")
            if not hasattr(tf.raw_ops, op):
                out.write(json.dumps({"op": op, "cases": 0, "failed": [],
                                      "skip": "not in this TensorFlow"})
                          + "\n")
                continue
            failed, count = test(op, session_args, task, scratch)
            out.write(json.dumps({"op": op, "cases": count,
                                  "failed": failed}) + "\n")


if __name__ == "__main__":
    main()
