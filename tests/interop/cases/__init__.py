"""Cases of the conformance test: what each op is tried with.

A file of this folder holds the cases of some ops; all files are loaded.  The
usual case is one line, and TensorFlow knows the types:

    each("Abs", x=X(3, 5))                  every type TensorFlow's kernel has
    each("Fill", dims=i32(2, 3), value=X(), attr="T")
    each("Add", x=X(2, 1, 3), y=X(4, 1))    broadcasting is up to the op
    each("Reshape", tensor=X(6), shape=i32(4), fails=True)  same error, too

An argument that is an array, X or V is an input, and so is a list of such;
anything else is an attribute.  X is a random array, V a given one, both of the
type under test.  Inputs are fed to placeholders on the worker, so that their
shapes are not known when the graph is built.

Ops with state, or that take several ops to try, have a function:

    @graph("QueueSizeV2")
    def _(k):
        q = k.raw.FIFOQueueV2(component_types=["float32"],
                              shared_name=k.name())
        with k.after(k.raw.QueueEnqueueV2(handle=q,
                                          components=[k.x(f32(1))])):
            return k.raw.QueueSizeV2(handle=q)

It is called twice, for the ps and for the worker, and returns the tensors to
compare; `k` is a Kit (programs/ops.py).  With types="T" in the decorator it is
called for each type, as f(k, dtype).

This module and its files need no TensorFlow, so that pytest can list them.
"""
import importlib
import pathlib
import zlib

import numpy as np

TABLE = {}  # op name -> list of functions of a Kit that yield Case


class Case:
    """One thing to try: build(kit) makes the tensors to compare."""

    def __init__(self, op, label, build, tol=None, fails=False, runs=1,
                 compare="values", grappler=False):
        self.op = op
        self.label = label
        self.build = build
        self.tol = tol          # relative, or {type: relative}; None: usual
        self.fails = fails      # an error is expected; it must be the same
        self.runs = runs        # steps to compare one after the other
        self.compare = compare  # "values" or "shapes"


def add(op, generator):
    TABLE.setdefault(op, []).append(generator)


# --- Values -----------------------------------------------------------------

FLOATS = ["float32", "float64", "float16", "bfloat16"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
ONE = "one of the kernel's"
PLAIN = FLOATS + SIGNED + UNSIGNED + COMPLEX + ["bool", "string"]


class X:
    """A random array of the type under test, values from lo to hi.

    `zeros` is the share of elements that are 0; `special` puts NaN, the
    infinities and signed zeros in front, for real floating types.  (Not
    denormal numbers: TensorFlow takes them for 0.)
    """

    def __init__(self, *shape, lo=-4, hi=4, seed=0, zeros=0.0, special=False,
                 dtype=None):
        self.shape, self.lo, self.hi, self.seed = shape, lo, hi, seed
        self.zeros, self.special, self.dtype = zeros, special, dtype

    def make(self, dtype, position):
        dtype = self.dtype or dtype
        key = "%s %s %s %s" % (self.shape, self.seed, position, self.lo)
        rng = np.random.default_rng(zlib.crc32(key.encode()))
        v = values(rng, dtype, self.shape, self.lo, self.hi)
        if self.zeros:
            v = np.where(rng.random(self.shape) < self.zeros,
                         np.zeros((), v.dtype), v)
        if self.special and dtype in FLOATS and v.size >= 5:
            v.reshape(-1)[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
        return dtype, v


class V:
    """Given values, converted to the type under test."""

    def __init__(self, *items, dtype=None):
        self.items = items[0] if len(items) == 1 else items
        self.dtype = dtype

    def make(self, dtype, position):
        dtype = self.dtype or dtype
        return dtype, convert(np.array(self.items), dtype)


def convert(v, dtype):
    """To the dtype of that name; bfloat16 stays float32 until it is fed."""
    if dtype == "string":
        return np.vectorize(lambda e: str(e).encode(), otypes=[object])(v)
    if dtype == "bfloat16":
        return v.astype(np.float32)
    return v.astype(dtype)


def values(rng, dtype, shape, lo, hi):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "string":
        n = rng.integers(0, 12, shape)
        return np.vectorize(lambda k: rng.bytes(int(k)), otypes=[object])(n) \
            if np.size(n) else np.zeros(shape, object)
    if dtype in COMPLEX:
        v = rng.uniform(lo, hi, shape) + 1j * rng.uniform(lo, hi, shape)
    elif dtype in FLOATS:
        v = rng.uniform(lo, hi, shape)
    else:
        if dtype in UNSIGNED:
            lo, hi = max(lo, 0), max(hi, 1)
        v = rng.integers(int(np.ceil(lo)), int(np.floor(hi)) + 1, shape)
    v = np.asarray(v)
    return v.astype(np.float32) if dtype == "bfloat16" else v.astype(dtype)


def _array(dtype):
    def make(*items):
        items = items[0] if len(items) == 1 and isinstance(
            items[0], (list, np.ndarray)) else list(items)
        return np.array(items, dtype)
    return make


i32, i64 = _array(np.int32), _array(np.int64)
f32, f64 = _array(np.float32), _array(np.float64)
u8, b = _array(np.uint8), _array(np.bool_)


def s(*items):
    """A string tensor; one item in no list is a scalar: s0."""
    return np.array([i.encode() if isinstance(i, str) else i
                     for i in items], object)


def s0(item):
    return np.array(item.encode() if isinstance(item, str) else item, object)


def scalar(value, dtype):
    return np.array(value, dtype)


n0 = scalar  # a scalar of a numpy type: n0(3, "int32")


def is_input(v):
    if isinstance(v, (list, tuple)):
        return bool(v) and all(is_input(e) for e in v)
    return isinstance(v, (np.ndarray, np.generic, X, V))


def is_type(v):
    """Whether an attribute stands for the type under test."""
    return isinstance(v, str) and v == "T"


# --- One line a case --------------------------------------------------------


def each(op, label="", *, attr="T", types=None, tol=None, fails=False,
         runs=1, compare="values", **args):
    """The op with these arguments, once for each type of attribute `attr`.

    types: a list instead of those of TensorFlow's kernel, or ONE: any of
    them.  Without X or V among the arguments there is one case.
    """
    def has_type(v):
        if isinstance(v, (list, tuple)):
            return any(has_type(e) for e in v)
        return isinstance(v, (X, V)) and not v.dtype or is_type(v)

    def generate(kit):
        names = kit.types(op, attr) if not types or types == ONE else types
        if not any(has_type(v) for v in args.values()):
            names = [None]
        elif types == ONE:
            names = [t for t in ("float32", "int32", *names)
                     if t in names][:1]
        for dtype in names:
            yield Case(op, " ".join(filter(None, [
                label or shapes_of(args), dtype])),
                lambda k, dtype=dtype: call(k, op, dtype, args),
                tol, fails, runs, compare)
    add(op, generate)


def shapes_of(args):
    """A label from the arguments."""
    words = []
    for key, v in args.items():
        if isinstance(v, (X, np.ndarray)):
            words.append("%s%s" % (key, list(v.shape)))
        elif isinstance(v, (bool, int, float, str)):
            words.append("%s=%s" % (key, v))
        elif isinstance(v, (list, tuple)):
            words.append("%s*%d" % (key, len(v)))
    return " ".join(words)


def call(k, op, dtype, args):
    """Build the op with fed inputs."""
    built, position = {}, 0
    for key, v in args.items():
        if is_type(v):
            built[key] = dtype
        elif is_input(v):
            if isinstance(v, (list, tuple)):
                built[key] = [k.feed(e, dtype, position + i)
                              for i, e in enumerate(v)]
                position += len(v)
            else:
                built[key] = k.feed(v, dtype, position)
                position += 1
        else:
            built[key] = v
    return getattr(k.raw, op)(**built)


def graph(op, label="", *, types=None, attr="T", tol=None, fails=False,
          runs=1, compare="values"):
    """Decorator: the function builds a case of the op (see above).

    types: None, a list of names, or "kernel" for those of TensorFlow's.
    """
    def decorate(build):
        def generate(kit):
            if types is None:
                yield Case(op, label or build.__name__.strip("_"), build,
                           tol, fails, runs, compare)
                return
            names = kit.types(op, attr) if types == "kernel" else types
            for dtype in names:
                yield Case(op, " ".join(filter(None, [
                    label or build.__name__.strip("_"), dtype])),
                    lambda k, dtype=dtype: build(k, dtype),
                    tol, fails, runs, compare)
        for name in op.split():
            add(name, generate)
        return build
    return decorate


# --- Families ---------------------------------------------------------------


def unary(ops, *, arg="x", lo=-4, hi=4, special=True, **kw):
    """Element-wise: a matrix, a scalar, nothing, a long odd vector."""
    for op in ops.split():
        each(op, **{arg: X(3, 5, lo=lo, hi=hi)}, **kw)
        each(op, **{arg: X(lo=lo, hi=hi)}, **kw)
        each(op, **{arg: X(0, 3)}, **kw)
        each(op, **{arg: X(1031, lo=lo, hi=hi)}, **{**kw, "types": ONE})
        if special:
            each(op, "special", **{arg: X(8, lo=lo, hi=hi, special=True)},
                 **kw)


BROADCAST = [((3, 5), (3, 5)), ((), ()), ((2, 3), ()), ((), (4,)),
             ((4, 1, 3), (2, 1)), ((3, 1), (1, 4)), ((0, 3), (3,)),
             ((1, 0), (3, 1)), ((2, 3, 4, 5), (3, 1, 5)), ((7,), (1,))]


def binary(ops, *, x="x", y="y", lo=-4, hi=4, ylo=None, yhi=None,
           special=True, mismatch=True, **kw):
    """Element-wise with broadcasting; shapes that do not fit, too."""
    ylo = lo if ylo is None else ylo
    yhi = hi if yhi is None else yhi
    for op in ops.split():
        for sx, sy in BROADCAST:
            each(op, **{x: X(*sx, lo=lo, hi=hi),
                        y: X(*sy, lo=ylo, hi=yhi, seed=1)}, **kw)
        if special:
            each(op, "special",
                 **{x: X(9, lo=lo, hi=hi, special=True),
                    y: X(9, 1, lo=ylo, hi=yhi, special=True, seed=1)}, **kw)
        if mismatch:
            each(op, "shapes do not fit", fails=True,
                 **{x: X(2, 3), y: X(2, 4)}, **{**kw, "types": ONE})


def reduction(ops, *, arg="input", lo=-4, hi=4, **kw):
    """Over every kind of axes, keeping dimensions or not."""
    for op in ops.split():
        for keep in (False, True):
            for axes in (i32(0), i32(1), i32([0, 2]), i32([0, 1, 2]),
                         n0(-1, "int32"), i32([]), i64(-2)):
                each(op, "axes %s%s" % (axes.tolist(), " keep" * keep),
                     **{arg: X(2, 3, 4, lo=lo, hi=hi), "axis": axes,
                        "keep_dims": keep}, **kw)
        each(op, "of nothing", **{arg: X(0, 3), "axis": i32(0)}, **kw)
        each(op, "of a scalar", **{arg: X(), "axis": i32([])}, **kw)
        each(op, "long", **{arg: X(3, 1031, lo=lo, hi=hi),
                            "axis": i32(1)}, **kw)
        each(op, "axis out of range", fails=True,
             **{arg: X(2, 3), "axis": i32(2)}, **{**kw, "types": ONE})


# --- Ops that need no case of their own -------------------------------------

COVERED = {}  # op name -> the test that covers it


def covered(ops, by):
    for op in ops.split():
        COVERED[op] = by


def load():
    """Load all files of this folder."""
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            importlib.import_module("cases." + path.stem)
    return TABLE
