"""Runs random graphs on TensorFlow and on our server: the child of diff.py.

Reads "FROM TO" and addresses from stdin, writes one JSON object a line.  It
may die with TensorFlow, which aborts on some inputs; the parent then goes on
after the seed that was begun last.

A graph is one random call (diff_args.py) that is plain, or stands in a chain
of further ops, in a branch (Switch, Merge), in a loop, in a function, or
waits for others by control edges.  All inputs are fed to placeholders of
unknown shape, so that the kernels see what they get, not shape inference.
When a chain differs, each of its ops is run alone, fed what TensorFlow
computed for it: so the difference is one op's, with its inputs at hand.
"""
import ctypes
import json
import os
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2  # noqa: E402
from tensorflow.core.framework import types_pb2  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402
from tensorflow.python.framework import function  # noqa: E402
from tensorflow.python.framework import kernels as kernel_list  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

import diff_args as da  # noqa: E402
import diff_known as dk  # noqa: E402

tf.disable_v2_behavior()
OUT = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

# Ops that take what an op before them gave, whatever its shape.
LINKS = """Abs Neg Square Sign Exp Tanh Sigmoid Relu Sqrt Floor Round Identity
Snapshot Shape Size Rank Cast ZerosLike OnesLike Sum Max Mean Prod ExpandDims
Reshape AddV2 Mul Sub Maximum Equal Less Softplus Log1p Erf Where StopGradient
IsNan Invert LogicalNot StringLength AsString Squeeze Pack ConcatV2 SelectV2
Cumsum ArgMax Unique Fill Tile ReverseV2 Real Conj L2Loss""".split()

# Results of these are sums in another order: the scale is the largest value.
SUMS = ("MatMul", "Conv", "Sum", "Mean", "Einsum", "FFT", "Loss", "Norm",
        "Matrix", "Cholesky", "Solve", "Softmax", "Pool", "Prod", "Lu",
        "Eig", "Svd", "Qr", "AddN", "Entropy", "Segment", "Grad", "LRN",
        "Bincount", "Cum", "Logsumexp", "Tridiagonal", "Banded", "Scatter",
        "Accumulate", "LinSpace", "Resize", "Sparse", "Bessel", "Fresnel",
        "gamma", "Zeta", "Betainc", "Ndtri", "Erfinv", "Spence", "Expint",
        "Dawsn", "Patches", "Elu", "Selu")
# Of these only shapes are compared: the result is one of many.
SHAPES = {"SelfAdjointEigV2", "BatchSelfAdjointEigV2", "Svd", "BatchSvd",
          "Qr", "Eig", "SelfAdjointEig", "BatchSelfAdjointEig"}
# The order of an unsorted result is nobody's promise.
UNORDERED = {"TopK", "TopKV2"}
ULPS = {1: 64, 2: 256, 14: 2, 19: 4, 8: 64, 18: 256}


def say(**kw):
    OUT.write(json.dumps(kw) + "\n")


# --- Building ---------------------------------------------------------------


def attr_value(a, v):
    p = attr_value_pb2.AttrValue()
    if a.type == "type":
        p.type = v
    elif a.type == "list(type)":
        p.list.type.extend(v)
    elif a.type == "int":
        p.i = v
    elif a.type == "bool":
        p.b = v
    elif a.type == "float":
        p.f = v
    elif a.type == "string":
        p.s = v.encode()
    elif a.type == "list(int)":
        p.list.i.extend(v)
    elif a.type == "list(float)":
        p.list.f.extend(v)
    elif a.type == "shape":
        p.shape.CopyFrom(tf.TensorShape(v).as_proto())
    else:
        p.list.SetInParent()
    return p


class Step:
    """One op in the graph: its call and its tensors."""

    def __init__(self, call, ins, op):
        self.call, self.ins, self.op = call, ins, op
        self.outs = list(op.outputs)


class Built:
    def __init__(self, seed):
        self.seed, self.feeds, self.steps = seed, {}, []
        self.fetch, self.how = [], "plain"


class Builder:
    def __init__(self, names):
        self.names = names
        self.defs = {n: op_def_registry.get(n) for n in {*names, *LINKS}}
        self.kernels = {}

    def types(self, name):
        if name not in self.kernels:
            found = []
            for k in kernel_list.get_registered_kernels_for_op(name).kernel:
                if k.device_type == "CPU":
                    found.append({c.name: list(c.allowed_values.list.type)
                                  for c in k.constraint})
            self.kernels[name] = [f for f in found if all(
                any(t in da.TYPES for t in v) for v in f.values())]
        return self.kernels[name]

    def feed(self, b, v, kind):
        t = tf.placeholder(tf.as_dtype(kind), shape=None)
        b.feeds[t] = v
        return t

    def add(self, b, call, given=None, control=()):
        """The op of `call` in the graph; given: name -> tensor to use."""
        d, ins = self.defs[call.op], []
        attrs = {a.name: attr_value(a, call.attrs[a.name])
                 for a in d.attr if a.name in call.attrs}
        for a in d.input_arg:
            v = call.inputs[a.name]
            kinds = a.type or call.types[a.type_attr or a.type_list_attr]
            if a.number_attr:
                attrs[a.number_attr] = attr_value_pb2.AttrValue(i=len(v))
            many = v if isinstance(v, list) else [v]
            kinds = kinds if isinstance(kinds, list) else [kinds] * len(many)
            for i, (e, k) in enumerate(zip(many, kinds)):
                use = given.pop(a.name, None) if given and not i else None
                ins.append(self.feed(b, e, k) if use is None else use)
        g = tf.get_default_graph()
        with g.control_dependencies(control):
            op = g._create_op_internal(call.op, ins, attrs=attrs, op_def=d)
        step = Step(call, ins, op)
        b.steps.append(step)
        return step

    def op(self, seed):
        rng = np.random.default_rng([seed, 0])
        return self.names[int(rng.integers(len(self.names)))]

    def graph(self, seed):
        """The graph of a seed."""
        rng = np.random.default_rng([seed, 0])
        rng.integers(len(self.names))
        name = self.op(seed)
        b = Built(seed)
        b.op = name
        call = da.call(self.defs[name], seed, self.types(name))
        b.call = call
        draw = rng.random()
        if draw < 0.6:
            step = self.add(b, call)
            b.fetch = step.outs
        elif draw < 0.80:
            self.chain(b, call, rng)
        elif draw < 0.87:
            self.branch(b, call, rng)
        elif draw < 0.93:
            self.loop(b, call, rng)
        elif draw < 0.97:
            self.function(b, call)
        else:
            b.how = "control"
            with tf.get_default_graph().control_dependencies(
                    [self.add(b, call).op]):
                b.fetch = [tf.identity(self.feed(b, np.float32(1), 1))]
        if not b.fetch:
            b.fetch = [b.steps[-1].op]
        return b

    def chain(self, b, call, rng):
        b.how = "chain"
        step = self.add(b, call)
        for i in range(int(rng.integers(1, 6))):
            for _ in range(8):
                if not step.outs:
                    return
                src = step.outs[int(rng.integers(len(step.outs)))]
                name = LINKS[int(rng.integers(len(LINKS)))]
                d = self.defs[name]
                want = src.dtype.base_dtype.as_datatype_enum
                a = d.input_arg[0]
                fit = [k for k in self.types(name)
                       if want in k.get(a.type_attr, [want])]
                if not fit:
                    continue
                try:
                    link = da.call(d, b.seed * 64 + i * 8 + 1, fit)
                except da.Broken:
                    continue
                if want != (a.type or link.types[a.type_attr]):
                    continue
                step = self.add(b, link, {a.name: src})
                b.fetch = b.fetch + step.outs[:1]
                break
        b.fetch = [o for s in b.steps for o in s.outs]

    def branch(self, b, call, rng):
        b.how = "branch"
        pred = self.feed(b, np.array(rng.random() < 0.7), 10)
        step = self.inside(call, [
            tf.raw_ops.Switch(data=t, pred=pred)[1]
            for t in self.outside(b, call)])
        b.fetch = step.outs or [step.op]
        if not step.outs or not step.ins:
            return
        out = step.outs[0]
        kind = out.dtype.base_dtype.as_datatype_enum
        if kind not in da.TYPES:
            return
        other = np.zeros((2,), da.TYPES[kind]) if kind != 7 else \
            np.array([b"x"], object)
        no = tf.raw_ops.Switch(data=self.feed(b, other, kind),
                               pred=pred)[0]
        b.fetch = list(tf.raw_ops.Merge(inputs=[out, no]))

    def loop(self, b, call, rng):
        b.how = "loop"
        d = self.defs[call.op]
        a = d.input_arg[0] if d.input_arg else None
        v = call.inputs[a.name] if a else []
        if isinstance(v, list):
            b.fetch = self.add(b, call).outs
            return
        start = self.feed(b, v, a.type or call.types[a.type_attr])
        n = self.feed(b, np.int32(rng.integers(0, 4)), 3)
        outer = self.outside(b, call)[1:]

        def body(i, x):
            step = self.inside(call, [x, *outer])
            same = [o for o in step.outs if o.dtype == x.dtype]
            with tf.get_default_graph().control_dependencies([step.op]):
                return i + 1, tf.identity(same[0] if same else x)
        b.fetch = list(tf.while_loop(
            lambda i, x: i < n, body, [tf.constant(0), start],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)]))

    def outside(self, b, call):
        """Placeholders for all inputs of a call, in order."""
        flat = []
        for a in self.defs[call.op].input_arg:
            v = call.inputs[a.name]
            many = v if isinstance(v, list) else [v]
            k = a.type or call.types[a.type_attr or a.type_list_attr]
            k = k if isinstance(k, list) else [k] * len(many)
            flat += [self.feed(b, *e) for e in zip(many, k)]
        return flat

    def inside(self, call, tensors):
        """The op of `call` on given tensors."""
        queue = list(tensors)
        self.feed = lambda b, v, k: queue.pop(0)
        try:
            return self.add(Built(0), call)
        finally:
            del self.feed

    def function(self, b, call):
        b.how = "function"
        args = self.outside(b, call)

        @function.Defun(*[t.dtype for t in args])
        def f(*args):
            step = self.inside(call, args)
            if not step.outs:
                with tf.get_default_graph().control_dependencies([step.op]):
                    return [tf.identity(tf.constant(1.0))]
            return step.outs
        out = f(*args)
        b.fetch = [o for o in (out if isinstance(out, (list, tuple))
                               else [out])
                   if isinstance(o, tf.Tensor)]
        if isinstance(out, tf.Operation):
            b.fetch = list(out.outputs)


# --- Running and comparing --------------------------------------------------


def config():
    c = tf.ConfigProto(operation_timeout_in_ms=8000,
                       inter_op_parallelism_threads=1,
                       intra_op_parallelism_threads=1)
    c.experimental.share_session_state_in_clusterspec_propagation = False
    c.isolate_session_state = True
    r = c.graph_options.rewrite_options
    r.disable_meta_optimizer = True
    r.min_graph_nodes = -1
    r.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    c.graph_options.optimizer_options.opt_level = -1
    return c


def run(session, fetch, feeds):
    try:
        got = session.run(fetch, feeds)
        return "OK", [g for g in got if g is not None]
    except tf.errors.OpError as e:
        return type(e).__name__, e.message
    except UnicodeDecodeError:
        return "an error", "whose text is not UTF-8"


def close(a, b, op, loop):
    """Whether two arrays are the same as far as `op` is exact; in a loop
    each round makes a small difference larger."""
    kind = tf.as_dtype(a.dtype).as_datatype_enum
    if kind not in ULPS:
        if a.dtype == object:
            return all(bytes(x) == bytes(y) if isinstance(x, bytes) else
                       x == y for x, y in zip(a.reshape(-1), b.reshape(-1)))
        return bool((a == b).all())
    if op in SHAPES:
        return True
    if kind in da.COMPLEX:
        half = np.float32 if kind == 8 else np.float64
        a = np.ascontiguousarray(a).view(half)
        b = np.ascontiguousarray(b).view(half)
    f = da.ml_dtypes.finfo(a.dtype)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        scale = np.maximum(abs(x), abs(y))
        if kind in da.COMPLEX and scale.size:
            scale = np.maximum(scale, scale.reshape(-1, 2).max(-1).repeat(
                2).reshape(scale.shape))
        if any(s in op for s in SUMS) and x.size:
            fin = np.where(np.isfinite(scale), scale, 0)
            scale = np.where(np.isfinite(scale), np.maximum(
                scale, max(fin.max(), 1)), scale)
        tol = ULPS[kind] * float(f.eps) * scale + 8 * float(f.tiny)
        tol = tol * (1000 if loop else 1)
        near = np.isfinite(x) & np.isfinite(y) & (abs(x - y) <= tol)
    return bool((same | near).all())


def compare(r1, r2, op, loop=False):
    """None, or (kind, text) of the difference."""
    if "ResourceExhaustedError" in (r1[0], r2[0]):
        return None
    if "an error" in (r1[0], r2[0]) and "OK" not in (r1[0], r2[0]):
        return None
    if r1[0] != r2[0]:
        return ("%s/%s" % (r1[0], r2[0]),
                "TensorFlow: %s\nours: %s" % (brief(r1), brief(r2)))
    if r1[0] != "OK":
        return None
    for i, (a, b) in enumerate(zip(r1[1], r2[1])):
        a, b = np.asarray(a), np.asarray(b)
        if op in UNORDERED and a.shape == b.shape and a.ndim:
            a, b = np.sort(a, -1), np.sort(b, -1)
        if a.dtype != b.dtype:
            kind = "dtype"
        elif a.shape != b.shape:
            kind = "shape"
        elif not close(a, b, op, loop):
            kind = "value"
        else:
            continue
        return kind, "output %d\nTensorFlow: %s\nours: %s" % (
            i, da.show(a), da.show(b))
    return None


def brief(r):
    if r[0] == "OK":
        return "OK " + "; ".join(da.show(a) for a in r[1])[:600]
    lines = [s for s in str(r[1]).split("\n") if s.strip()]
    at = [i for i, s in enumerate(lines) if "{{node" in s]
    if at and at[0]:
        lines = lines[at[0] - 1:]
    return "%s: %s" % (r[0], " | ".join(lines[:2])[:400])


class Runner:
    def __init__(self, target):
        self.target = target
        self.kinds = {}
        self.graphs = 0

    def sessions(self, graph):
        self.tf = tf.Session(graph=graph, config=config())
        self.graph = graph
        self.ours = None
        self.open()

    def open(self):
        if self.ours:
            try:
                self.ours.close()
            except tf.errors.OpError:
                pass
        self.ours = tf.Session(self.target, graph=self.graph,
                               config=config())

    def ask(self, seed):
        """Ours seems gone: the parent knows."""
        say(ev="gone", seed=seed)
        answer = line()
        if answer[0] == "new":
            self.target = answer[1]
            self.open()
            return True
        return False

    def on_ours(self, fetch, feeds, seed):
        r = run(self.ours, fetch, feeds)
        if r[0] in ("UnavailableError", "DeadlineExceededError",
                    "AbortedError", "CancelledError", "UnknownError") or \
                "GOAWAY" in str(r[1])[:300]:
            if self.ask(seed):
                return "CRASH", "server died"
            if r[0] == "DeadlineExceededError":
                self.open()
                return "HANG", "no answer in time"
        return r

    def one(self, b):
        say(ev="start", seed=b.seed, op=b.op)
        r1 = run(self.tf, b.fetch, b.feeds)
        say(ev="ran")
        r2 = self.on_ours(b.fetch, b.feeds, b.seed)
        self.graphs += 1
        what = b.how + ("!" if r1[0] != "OK" else "")
        self.kinds[what] = self.kinds.get(what, 0) + 1
        if "No OpKernel was registered" in str(r1[1]):
            return  # of any node in the batch: TensorFlow places them all
        found = compare(r1, r2, b.op, b.how == "loop")
        if found and b.how == "chain" and r2[0] not in ("CRASH", "HANG"):
            self.alone(b)
        elif found:
            self.report(b, b.call, found)

    def alone(self, b):
        """The first op of a chain that differs given TensorFlow's inputs."""
        for step in b.steps:
            feeds = {t: v for t, v in b.feeds.items() if t in step.ins}
            for t in step.ins:
                if t not in feeds:
                    r = run(self.tf, [t], b.feeds)
                    if r[0] != "OK":
                        return
                    feeds[t] = r[1][0]
            fetch = step.outs or [step.op]
            r1 = run(self.tf, fetch, feeds)
            r2 = self.on_ours(fetch, feeds, b.seed)
            found = compare(r1, r2, step.call.op)
            if found:
                call = da.Call(step.call.op)
                call.attrs = step.call.attrs
                call.inputs = {t.name: feeds[t] for t in step.ins}
                self.report(b, call, found)
                return

    def report(self, b, call, found):
        why = dk.known(call, found[0], found[1], b.how)
        if why:
            say(ev="known", seed=b.seed, why=why)
            return
        types = {k: v for k, v in call.types.items()}
        text = call.text()
        for k in types:
            text = text.replace("%s=%r" % (k, types[k]), "%s=%s" % (
                k, types_pb2.DataType.Name(types[k])[3:].lower()
                if isinstance(types[k], int) else types[k]))
        say(ev="differs", seed=b.seed, op=call.op, how=b.how, kind=found[0],
            bad=call.bad, call=text[:4000], text=found[1][:4000])


def work(builder, first, last, target, batch):
    """All seeds from first to last."""
    r = Runner(target)
    for at in range(first, last, batch):
        upto = min(at + batch, last)
        with tf.Graph().as_default() as g:
            built = []
            for seed in range(at, upto):
                try:
                    built.append(builder.graph(seed))
                except Exception as e:  # whatever Python refuses
                    say(ev="refused", seed=seed, why=repr(e)[:200],
                        op=builder.op(seed))
            r.sessions(g)
            for b in built:
                try:
                    r.one(b)
                except (ValueError, TypeError) as e:
                    say(ev="refused", seed=b.seed, op=b.op, why=str(e)[:200])
            r.tf.close()
            r.ours.close()
        say(ev="batch", upto=upto - 1, kinds=r.kinds)


def line():
    """One line of stdin, with nothing read ahead: parent and child share it."""
    text = b""
    while not text.endswith(b"\n"):
        c = os.read(0, 1)
        if not c:
            break
        text += c
    return text.decode().split()


def main():
    """Fork a worker for each range that is asked for: importing TensorFlow
    takes ten seconds, and it dies often."""
    builder = Builder(open(sys.argv[1]).read().split())
    while True:
        ask = line()
        if not ask:
            return
        pid = os.fork()
        if not pid:
            # Not to outlive the parent: a fork forgets that wish.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
            say(ev="pid", pid=os.getpid())
            work(builder, int(ask[0]), int(ask[1]), ask[2], int(sys.argv[2]))
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        say(ev="end", code=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
