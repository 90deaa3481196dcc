"""Arguments for a random call of any op: what diff.py tries.

call(op_def, seed, kernels) picks types, attributes and input arrays for one
op from a seed.  Most calls are plausible: the rules below know what an axis,
a permutation or a segment id is, by the op's name where it matters and by the
argument's name otherwise.  One call in four then has something broken in it:
another rank, an index out of range, a huge number, nothing at all.  Floating
values hold NaN, infinities, denormal and extreme numbers now and then.

Needs numpy and ml_dtypes only; TensorFlow's definitions come in as protos.
"""
import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
# DataType numbers that take part, with their numpy types.
TYPES = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16,
         6: np.int8, 7: object, 8: np.complex64, 9: np.int64, 10: np.bool_,
         14: BF16, 17: np.uint16, 18: np.complex128, 19: np.float16,
         22: np.uint32, 23: np.uint64}
FLOATS = (1, 2, 14, 19)
COMPLEX = (8, 18)
USUAL = [1, 2, 3, 9]
WORDS = [b"", b"a", b"abc", b"a b  c", b"-17", b"3.25", b"1e400", b" 42 ",
         b"nan", b"0x1F", b"h\xc3\xa9llo", b"\xff\xfe", b"a,b,,c", b"TRUE",
         b"\xe6\x97\xa5\xe6\x9c\xac", b"QUJD", b"YQ==", b"x" * 40, b"\0z"]
PATTERNS = [b"a", b"[a-c]+", b"^.*$", b"(\\w)(\\w)", b"b*", b"x{2,3}", b"(",
            b"\\d+", b"a|b|", b"(?i)A", b"[^ ]", b"\\xFF", b""]
EQUATIONS = {1: ["ij->ji", "ii->i", "...j->...", "ijk->k", "i->", "ij->ij"],
             2: ["ij,jk->ik", "i,i->", "ij,j->i", "...ij,...jk->...ik",
                 "bij,bjk->bik", "ij,kj->ik", "i,j->ij"]}


class Broken(Exception):
    """No call of this op can be made."""


class Call:
    """One op, its attributes, and its inputs in order (arrays or lists)."""

    def __init__(self, op):
        self.op, self.attrs, self.inputs, self.types = op, {}, {}, {}
        self.bad = None

    def text(self):
        args = ["%s=%s" % (k, show(v)) for k, v in self.inputs.items()]
        args += ["%s=%r" % kv for kv in self.attrs.items()]
        return "%s(%s)" % (self.op, ", ".join(args))


def show(v):
    if isinstance(v, list):
        return "[%s]" % ", ".join(show(e) for e in v)
    v = np.asarray(v)
    kind = "string" if v.dtype == object else v.dtype.name
    if v.size > 400:
        return "%s%s{%s...}" % (kind, list(v.shape), v.reshape(-1)[:8])
    if not v.size or not v.shape or v.size == 1:
        return "%s%s%s" % (kind, list(v.shape), v.tolist() if v.size else "")
    return "%s%s" % (kind, v.tolist())


class Gen:
    """The state of making one call."""

    def __init__(self, d, seed, kernels):
        self.d = d
        self.rng = np.random.default_rng([seed, 1])
        self.call = Call(d.name)
        self.types = {}    # type attr -> number, or list of numbers
        self.lens = {}     # int attr -> length of the lists that it counts
        self.kernels = kernels
        self.specials = self.maybe(0.2)
        self.S = self.shape()
        self.done = {}

    # --- random things ------------------------------------------------------

    def maybe(self, p=0.5):
        return self.rng.random() < p

    def n(self, lo, hi):
        """A number from lo to hi, both included."""
        return int(self.rng.integers(lo, hi + 1)) if hi >= lo else lo

    def pick(self, items):
        return items[self.n(0, len(items) - 1)]

    def dim(self):
        return self.pick([1, 1, 2, 2, 3, 3, 4, 5, 7, 0, 17]
                         if self.maybe(0.4) else [1, 2, 3, 4, 5])

    def shape(self, lo=0, hi=4):
        rank = self.pick([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4, 5)
                          if lo <= r <= hi])
        while True:
            s = tuple(self.dim() for _ in range(rank))
            if np.prod(s) <= 60 or self.maybe(0.05):
                return s

    def kind(self, name):
        """The type number of an input or of a type attribute."""
        for a in self.d.input_arg:
            if a.name == name:
                return a.type or self.types[a.type_attr or a.type_list_attr]
        return self.types[name]

    def values(self, shape, kind, lo=-4, hi=4):
        rng, size = self.rng, int(np.prod(shape, dtype=np.int64))
        if kind == 7:
            v = np.empty(size, object)
            v[:] = [self.pick(WORDS) for _ in range(size)]
            return v.reshape(shape)
        if kind == 10:
            return np.asarray(rng.random(shape) < 0.5)
        t = TYPES[kind]
        if kind in FLOATS or kind in COMPLEX:
            scale = self.pick([1, 1, 1, 0.1, 10, 100]) if lo == -4 else 1
            v = rng.uniform(lo, hi, shape) * scale
            if self.maybe(0.2):
                v = np.round(v)
            if kind in COMPLEX:
                v = v + 1j * rng.uniform(lo, hi, shape)
            v = np.array(v).astype(t)
            if self.specials and size and kind in FLOATS:
                f = ml_dtypes.finfo(t)
                odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(f.max),
                       -float(f.max), float(f.tiny), 1.0, -1.0,
                       float(f.smallest_subnormal)]
                flat = v.reshape(-1)
                for _ in range(self.n(1, 3)):
                    flat[self.n(0, size - 1)] = self.pick(odd)
            return v
        f = np.iinfo(t)
        if f.min == 0:
            lo, hi = max(lo, 0), max(hi, 1) * 2
        v = np.array(rng.integers(int(lo), int(hi) + 1, shape)).astype(t)
        if self.specials and size and lo in (-4, 0) and hi in (4, 8):
            flat = v.reshape(-1)
            flat[self.n(0, size - 1)] = self.pick([f.min, f.max, 0, 1])
        return v

    def x(self, name, shape, lo=-4, hi=4):
        return self.values(tuple(shape), self.kind(name), lo, hi)

    def ints(self, name, items):
        """Whole numbers as the type that input `name` has."""
        t = TYPES[self.kind(name)]
        return np.array(items, np.int64).astype(t)

    def axis(self, rank, name):
        return self.ints(name, self.n(-rank, rank - 1) if rank else
                         self.pick([0, -1]))

    def broadcast(self):
        """Two shapes that fit, from S."""
        def half():
            s = [1 if self.maybe(0.2) else d for d in self.S]
            return tuple(s[self.n(0, len(s)) if self.maybe(0.3) else 0:])
        a, b = (self.S, half()) if self.maybe() else (half(), half())
        return (a, b) if self.maybe() else (b, a)

    # --- attributes ---------------------------------------------------------

    def make_types(self):
        allowed = {}
        for a in self.d.attr:
            if a.type in ("type", "list(type)"):
                some = list(a.allowed_values.list.type) or list(TYPES)
                allowed[a.name] = [t for t in some if t in TYPES]
        good = None
        if self.kernels:  # a missing kernel would spoil the whole session
            good = self.pick(self.kernels)
        for a in self.d.attr:
            if a.type == "type":
                some = allowed[a.name]
                if good and good.get(a.name):
                    some = [t for t in some if t in good[a.name]] or some
                if not some:
                    raise Broken("no type for " + a.name)
                usual = [t for t in USUAL if t in some]
                self.types[a.name] = (self.pick(usual)
                                      if usual and self.maybe(0.5)
                                      else self.pick(some))
            elif a.type == "list(type)":
                self.types[a.name] = [self.pick(allowed[a.name])
                                      for _ in range(self.n(1, 3))]

    def make_attr(self, a):
        """A value of an attribute, or None to leave it at its default."""
        optional = a.HasField("default_value")
        if optional and not a.name.startswith("seed") and self.maybe(0.35):
            return None
        name, some = a.name, a.allowed_values.list.s
        if a.type == "bool":
            return self.maybe()
        if a.type == "string":
            if some:
                return self.pick(list(some)).decode()
            return self.text_attr(name)
        if a.type == "float":
            return float(self.pick([0.0, 1.0, 0.5, -1.0, 2.0, 1e-3, 6.0]))
        if a.type == "int":
            if name.startswith("seed"):
                return self.n(1, 99)
            if name in self.lens:
                return self.lens[name]
            lo = a.minimum if a.has_minimum else -2
            if name.endswith("_mask"):
                return self.n(0, 7) if self.maybe(0.4) else 0
            if name == "num_bits":
                return self.pick([2, 8, 8, 16])
            if name in ("axis", "batch_dims", "batch_dim", "seq_dim"):
                r = len(self.S)
                return self.n(-r, max(r - 1, 0))
            return self.n(lo, max(lo, 4)) if self.maybe(0.9) else -1
        if a.type == "list(int)":
            return [self.n(0, 2) for _ in range(self.n(0, 3))]
        if a.type == "list(float)":
            return sorted(float(self.n(-4, 4)) for _ in range(self.n(0, 4)))
        if a.type == "shape":
            return list(self.S) if self.maybe(0.7) else list(self.shape())
        if a.type == "list(shape)" or a.type == "list(string)":
            return []
        raise Broken("attribute %s %s" % (name, a.type))

    def text_attr(self, name):
        if name in ("encoding", "input_encoding", "output_encoding"):
            return self.pick(["utf-8", "", "UTF-8"]) if name == "encoding" \
                else self.pick(["UTF-8", "UTF-16-BE", "UTF-32-BE"])
        if name == "compression_type":
            return self.pick(["", "ZLIB", "GZIP"])
        if name == "equation":
            return self.pick(EQUATIONS[self.lens["N"]])
        if name == "pattern":
            return self.pick([p for p in PATTERNS]).decode()
        if name == "fill":
            return self.pick(["", "0", " ", "-"])
        if name == "bad_indices_policy":
            return self.pick(["", "DEFAULT", "ERROR", "IGNORE"])
        if name == "template":
            return self.pick(["a{}b", "{} {}", "{}", "none"])
        if name == "placeholder":
            return self.pick(["{}", "%s"])
        if name == "rewrite":
            return self.pick(["x", "\\0\\0", "\\1", "", "\\9"])
        if name in ("message", "separator", "left_pad", "right_pad"):
            return self.pick(["", ",", "m"])
        return self.pick(["", "a"])

    # --- inputs -------------------------------------------------------------

    def make_input(self, a):
        if a.name in self.done:
            return self.done[a.name]
        if a.number_attr:
            k = self.lens[a.number_attr]
            return [self.by_name(a.name) for _ in range(k)]
        if a.type_list_attr:
            return [self.values(self.S if self.maybe(0.8) else self.shape(),
                                t) for t in self.types[a.type_list_attr]]
        return self.by_name(a.name)

    def by_name(self, name):
        kind, rank = self.kind(name), len(self.S)
        if kind not in TYPES:
            raise Broken("type of " + name)
        whole = kind in (3, 9, 5, 17, 6, 4, 22, 23)
        first = self.d.input_arg[0].name == name
        rule = INPUT.get(name)
        if rule and whole and not (first and name in ("indices", "size")):
            return self.ints(name, rule(self, rank))
        if name in ("pattern", "rewrite", "sep", "delimiter", "method"):
            v = self.pick(PATTERNS if name == "pattern" else
                          [b"x", b"", b"\\1", b",", b" "]
                          if name != "method" else [b"farmhash64", b"z"])
            return np.array(v, object)
        if name in SCALARS:
            return self.values((), kind, 0, 2)
        return self.values(self.S, kind)


def _axes(g, rank):
    if not rank:
        return g.pick([[], 0, -1, []])
    k = g.n(0, rank)
    axes = [int(i) - (rank if g.maybe(0.3) else 0)
            for i in g.rng.permutation(rank)[:k]]
    return axes[0] if axes and g.maybe(0.3) else axes


def _axis(g, rank):
    return g.n(-rank, rank - 1) if rank else g.pick([0, -1])


SCALARS = {"clip_value_min", "clip_value_max", "min", "max", "input_min",
           "input_max", "on_value", "off_value", "default_value",
           "constant_values", "padding_value", "l2_regularizer", "thresh",
           "num_lower", "basename", "start", "stop", "limit", "delta",
           "value" if False else "cond"}
INPUT = {
    "reduction_indices": _axes, "reduction_axes": _axes, "axis": _axis,
    "dimension": _axis, "dim": lambda g, r: g.n(-r - 1, r),
    "concat_dim": _axis, "split_dim": _axis,
    "perm": lambda g, r: [int(i) for i in g.rng.permutation(r)],
    "shape": lambda g, r: list(g.shape()),
    "dims": lambda g, r: list(g.shape()),
    "output_shape": lambda g, r: list(g.S),
    "multiples": lambda g, r: [g.n(0, 3) for _ in range(r)],
    "paddings": lambda g, r: [[g.n(0, 2), g.n(0, 2)] for _ in range(r)]
    if r else np.zeros((0, 2)),
    "begin": lambda g, r: [g.n(0, max(d - 1, 0)) for d in g.S],
    "indices": lambda g, r: g.rng.integers(
        0, max(1, g.S[0] if g.S else 1), g.shape(0, 2)),
    "segment_ids": lambda g, r: sorted(
        g.n(0, 3) for _ in range(g.S[0] if g.S else 1)),
    "num_segments": lambda g, r: g.n(1, 5),
    "output_dim0": lambda g, r: g.n(1, 5),
    "partitions": lambda g, r: g.rng.integers(0, 3, g.S),
    "k": lambda g, r: g.n(0, g.S[-1] if g.S else 1),
    "n": lambda g, r: g.n(0, max(g.S[-1] - 1, 0) if g.S else 0),
    "depth": lambda g, r: g.n(0, 5), "nbins": lambda g, r: g.n(1, 5),
    "num": lambda g, r: g.n(1, 6), "size": lambda g, r: g.n(0, 6),
    "num_lower": lambda g, r: g.n(-1, 3), "num_upper": lambda g, r: g.n(-1, 3),
    "num_rows": lambda g, r: g.n(-1, 4), "num_cols": lambda g, r: g.n(-1, 4),
    "num_bits": lambda g, r: g.pick([2, 8, 8]),
    "seed": lambda g, r: [g.n(0, 99), g.n(0, 99)],
    "key": lambda g, r: [g.n(0, 99)], "counter": lambda g, r: [g.n(0, 99), 0],
    "alg": lambda g, r: g.pick([1, 1, 1, 2, 3]),
    "shift": lambda g, r: g.n(-5, 5), "num_samples": lambda g, r: g.n(0, 4),
    "shard": lambda g, r: g.n(0, 4), "num_shards": lambda g, r: g.n(1, 9),
    "fixed_length": lambda g, r: g.pick([1, 4, 8, 16]),
    "num_buckets": lambda g, r: g.n(1, 100),
    "fft_length": lambda g, r: [g.n(1, 8)],
    "branch_index": lambda g, r: g.n(-1, 3),
    "input_sizes": lambda g, r: list(g.S),
}


# --- What some ops need beyond the names ------------------------------------

RULE = {}


def rule(*names):
    def keep(f):
        for name in names:
            RULE[name] = f
        return f
    return keep


@rule("MatMul", "SparseMatMul", "_FusedMatMul")
def _matmul(g):
    m, k, n = g.dim(), g.dim(), g.dim()
    ta, tb = g.maybe(), g.maybe()
    g.call.attrs.update(transpose_a=ta, transpose_b=tb)
    g.done["a"] = g.x("a", (k, m) if ta else (m, k))
    g.done["b"] = g.x("b", (n, k) if tb else (k, n))


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(g):
    m, k, n = g.dim(), g.dim(), g.dim()
    ax, ay = g.maybe(), g.maybe()
    g.call.attrs.update(adj_x=ax, adj_y=ay)
    g.S = g.shape(0, 2)
    a, b = g.broadcast() if g.d.name != "BatchMatMul" else (g.S, g.S)
    g.done["x"] = g.x("x", a + ((k, m) if ax else (m, k)))
    g.done["y"] = g.x("y", b + ((n, k) if ay else (k, n)))


@rule("Concat", "ConcatV2")
def _concat(g):
    g.S = g.shape(1)
    axis = g.n(0, len(g.S) - 1)
    parts = []
    for _ in range(g.lens["N"]):
        s = list(g.S)
        s[axis] = g.dim()
        parts.append(g.x("values", s))
    g.done["values"] = parts
    name = "axis" if g.d.name == "ConcatV2" else "concat_dim"
    g.done[name] = g.ints(name, axis - (len(g.S) if g.maybe(0.3) else 0))


@rule("ConcatOffset")
def _concat_offset(g):
    r = g.n(1, 4)
    axis = g.n(0, r - 1)
    base = [g.n(0, 5) for _ in range(r)]
    g.done["concat_dim"] = g.ints("concat_dim", axis)
    g.done["shape"] = [g.ints("shape", [g.n(0, 5) if i == axis else d
                                        for i, d in enumerate(base)])
                       for _ in range(g.lens["N"])]


@rule("Pack", "AddN", "AccumulateNV2", "ShapeN")
def _same(g):
    pass


@rule("Einsum")
def _einsum(g):
    n = g.lens["N"] = g.n(1, 2)
    eq = g.call.attrs["equation"] = g.pick(EQUATIONS[n])
    size = {c: g.n(1, 4) for c in "abcdefghijklmnopqrstuvwxyz"}
    g.done["inputs"] = [g.x("inputs", [2, 3][:g.n(0, 2)] * ("..." in term) +
                            [size[c] for c in term if c in size])
                        for term in eq.split("->")[0].split(",")]


@rule("GatherV2")
def _gather(g):
    g.S = g.shape(1)
    r = len(g.S)
    axis = g.n(0, r - 1)
    b = g.n(0, axis) if g.maybe(0.2) else 0
    g.call.attrs["batch_dims"] = b
    g.done["axis"] = g.ints("axis", axis - (r if g.maybe(0.3) else 0))
    g.done["indices"] = g.ints("indices", g.rng.integers(
        0, max(g.S[axis], 1), g.S[:b] + g.shape(0, 2)))
    if g.maybe(0.15):
        g.done["indices"] -= 1


@rule("GatherNd", "ScatterNd", "TensorScatterAdd", "TensorScatterSub",
      "TensorScatterMin", "TensorScatterMax", "TensorScatterUpdate",
      "ScatterNdNonAliasingAdd")
def _nd(g):
    g.S = g.shape(1)
    k, outer = g.n(0, len(g.S)), g.shape(0, 2)
    where = np.zeros(outer + (k,), np.int64)
    for i in range(k):
        where[..., i] = g.rng.integers(0, max(g.S[i], 1), outer)
    g.done["indices"] = g.ints("indices", where)
    names = [a.name for a in g.d.input_arg]
    if "updates" in names:
        g.done["updates"] = g.x("updates", outer + g.S[k:])
    if "shape" in names:
        g.done["shape"] = g.ints("shape", list(g.S))


@rule("StridedSlice", "StridedSliceGrad", "TensorStridedSliceUpdate")
def _strided(g):
    k = g.n(0, len(g.S)) if g.maybe(0.9) else len(g.S) + 1
    begin, end, step = [], [], []
    for i in range(k):
        d = g.S[i] if i < len(g.S) else 1
        step.append(g.pick([1, 1, 1, 2, 3, -1, -2, 100, -2**31, 2**31 - 1]))
        begin.append(g.n(-d - 1, d + 1))
        end.append(g.n(-d - 2, d + 2) if g.maybe(0.9) else
                   g.pick([2**31 - 1, -2**31]))
    for name, v in (("begin", begin), ("end", end), ("strides", step)):
        g.done[name] = g.ints(name, v)
    if g.maybe(0.3):
        g.call.attrs["ellipsis_mask"] = 0 if not k else 1 << g.n(0, k - 1)
    else:
        g.call.attrs["ellipsis_mask"] = 0
    fake = np.broadcast_to(np.int8(0), g.S)
    try:
        out = fake[tuple(slice(b, e, s)
                         for b, e, s in zip(begin, end, step))].shape
    except IndexError:
        out = g.S
    if g.d.name == "StridedSliceGrad":
        g.done["shape"] = g.ints("shape", list(g.S))
        g.done["dy"] = g.x("dy", out)
    elif g.d.name != "StridedSlice":
        g.done["value"] = g.x("value", out)
    if g.d.name != "StridedSlice" or g.maybe():
        for m in ("begin", "end", "new_axis", "shrink_axis"):
            g.call.attrs.setdefault(m + "_mask", 0)


@rule("Slice")
def _slice(g):
    begin = [g.n(0, d) for d in g.S]
    g.done["begin"] = g.ints("begin", begin)
    g.done["size"] = g.ints("size", [
        -1 if g.maybe(0.2) else g.n(0, d - b) for d, b in zip(g.S, begin)])


@rule("Reshape")
def _reshape(g):
    total = int(np.prod(g.S))
    dims = [total] if g.maybe() else [1, total]
    for f in (2, 3):
        if total and total % f == 0 and g.maybe():
            dims = [f, total // f]
    if g.maybe(0.4):
        dims[g.n(0, len(dims) - 1)] = -1
    g.done["shape"] = g.ints("shape", dims)


@rule("BroadcastTo")
def _broadcast_to(g):
    g.done["shape"] = g.ints("shape", list(g.S))
    g.done["input"] = g.x("input", g.broadcast()[0])


@rule("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def _segment(g):
    g.S = g.shape(1)


@rule("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin",
      "UnsortedSegmentMax", "UnsortedSegmentJoin")
def _unsorted(g):
    k = g.n(0, len(g.S))
    g.done["segment_ids"] = g.ints("segment_ids", g.rng.integers(
        -1 if g.maybe(0.3) else 0, 4, g.S[:k]))
    g.done["num_segments"] = g.ints("num_segments", 4)


@rule("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN",
      "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
      "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumGrad",
      "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def _sparse_segment(g):
    g.S = g.shape(1)
    n = g.n(0, 5)
    top = max(g.S[0], 1)
    ids = sorted(g.n(0, 3) for _ in range(n))
    g.done["segment_ids"] = g.ints("segment_ids", ids)
    g.done["indices"] = g.ints("indices", g.rng.integers(0, top, n))
    if "num_segments" in [a.name for a in g.d.input_arg]:
        g.done["num_segments"] = g.ints("num_segments", 5)
    if g.d.name.endswith("Grad"):
        g.done["grad"] = g.x("grad", (4,) + g.S[1:])
        g.done["output_dim0"] = g.ints("output_dim0", top)


@rule("Split", "SplitV")
def _split(g):
    g.S = g.shape(1)
    axis = g.n(0, len(g.S) - 1)
    k = g.call.attrs["num_split"] = g.n(1, 3)
    s = list(g.S)
    if g.d.name == "Split":
        s[axis] *= k
    else:
        parts = [g.n(0, 3) for _ in range(k)]
        s[axis] = sum(parts)
        if g.maybe(0.3):
            parts[g.n(0, k - 1)] = -1
        g.done["size_splits"] = g.ints("size_splits", parts)
    g.done["value"] = g.x("value", s)
    g.done["split_dim"] = g.ints("split_dim", axis)


@rule("Unpack")
def _unpack(g):
    g.S = g.shape(1)
    axis = g.n(0, len(g.S) - 1)
    g.call.attrs.update(num=g.S[axis], axis=axis)


@rule("Squeeze")
def _squeeze(g):
    g.S = tuple(1 if g.maybe() else d for d in g.S)
    g.call.attrs["squeeze_dims"] = [
        i - (len(g.S) if g.maybe(0.3) else 0)
        for i, d in enumerate(g.S) if d == 1 and g.maybe(0.6)]


@rule("SpaceToBatchND", "BatchToSpaceND")
def _space_nd(g):
    m = g.n(1, 2)
    block = [g.n(1, 3) for _ in range(m)]
    pad = [[g.n(0, 1), g.n(0, 1)] for _ in range(m)]
    g.done["block_shape"] = g.ints("block_shape", block)
    if g.d.name == "SpaceToBatchND":
        s = [g.dim()] + [b * g.n(1, 3) - sum(p) for b, p in zip(block, pad)]
        s = [max(d, 0) for d in s]
        g.done["paddings"] = g.ints("paddings", pad)
    else:
        s = [int(np.prod(block)) * g.n(1, 2)] + [g.n(1, 4) for _ in block]
        g.done["crops"] = g.ints("crops", pad)
    g.done["input"] = g.x("input", s + [g.dim()] * g.n(0, 2))


@rule("SpaceToDepth", "DepthToSpace")
def _space_depth(g):
    b = g.call.attrs["block_size"] = g.n(2, 3)
    k = g.n(1, 2)
    s = [g.n(1, 2), b * k, b, 3] if g.d.name == "SpaceToDepth" else \
        [g.n(1, 2), k, 2, b * b * g.n(1, 2)]
    g.call.attrs["data_format"] = "NHWC"
    g.done["input"] = g.x("input", s)


@rule("ReverseSequence")
def _reverse_sequence(g):
    g.S = tuple(max(d, 1) for d in g.shape(2))
    b, q = [int(i) for i in g.rng.permutation(len(g.S))[:2]]
    g.call.attrs.update(batch_dim=b, seq_dim=q)
    g.done["seq_lengths"] = g.ints("seq_lengths",
                                   g.rng.integers(0, g.S[q] + 1, g.S[b]))


@rule("Roll")
def _roll(g):
    g.S = g.shape(1)
    axes = g.n(1, 3)
    if axes == 1 and g.maybe():
        return
    g.done["axis"] = g.ints("axis", g.rng.integers(0, len(g.S), axes))
    g.done["shift"] = g.ints("shift", g.rng.integers(-9, 9, axes))


@rule("Reverse")
def _reverse(g):
    g.done["dims"] = g.rng.random(len(g.S)) < 0.5


@rule("ReverseV2")
def _reverse_v2(g):
    v = np.atleast_1d(_axes(g, len(g.S))).astype(np.int64)
    g.done["axis"] = g.ints("axis", v)


@rule("DynamicStitch", "ParallelDynamicStitch")
def _stitch(g):
    tail = g.shape(0, 2)
    where = [np.array(g.rng.integers(0, 5, g.shape(0, 2)))
             for _ in range(g.lens["N"])]
    g.done["indices"] = [g.ints("indices", w) for w in where]
    g.done["data"] = [g.x("data", w.shape + tail) for w in where]


@rule("DynamicPartition")
def _partition(g):
    k = g.call.attrs["num_partitions"] = g.n(1, 4)
    g.done["partitions"] = g.ints("partitions", g.rng.integers(
        0, k, g.S[:g.n(0, len(g.S))]))


@rule("Select", "SelectV2")
def _select(g):
    s = g.S
    if g.d.name == "SelectV2":
        c, s = g.broadcast()
    else:
        c = g.pick([s, s, s[:1], ()])
    g.done["condition"] = g.x("condition", c)
    g.done["t"] = g.x("t", s)
    g.done["e"] = g.x("e", s)


@rule("Bincount", "DenseBincount")
def _bincount(g):
    name = "arr" if g.d.name == "Bincount" else "input"
    s = g.shape(0, 2)
    g.done[name] = g.ints(name, g.rng.integers(0, 6, s))
    g.done["size"] = g.ints("size", g.n(0, 7))
    g.done["weights"] = g.x("weights", s if g.maybe() else (0,))


@rule("MatrixDiagV2", "MatrixDiagV3", "MatrixDiagPartV2", "MatrixDiagPartV3",
      "MatrixSetDiagV2", "MatrixSetDiagV3")
def _matrix_diag(g):
    g.S = g.shape(0, 2) + (g.n(1, 4), g.n(1, 4))
    lo = g.n(1 - g.S[-2], g.S[-1] - 1)
    hi = lo if g.maybe() else g.n(lo, g.S[-1] - 1)
    k = lo if lo == hi and g.maybe() else [lo, hi]
    g.done["k"] = g.ints("k", k)
    longest = min(g.S[-2] + min(hi, 0), g.S[-1] + min(-lo, 0))
    s = g.S[:-2] + ((hi - lo + 1,) if hi != lo else ()) + (longest,)
    names = [a.name for a in g.d.input_arg]
    if "diagonal" in names:
        g.done["diagonal"] = g.x("diagonal", s)
    for i, name in enumerate(("num_rows", "num_cols")):
        if name in names:
            g.done[name] = g.ints(name, g.pick([-1, g.S[i - 2]]))


@rule("MatrixSetDiag")
def _set_diag(g):
    g.S = g.shape(0, 2) + (g.n(1, 4), g.n(1, 4))
    g.done["diagonal"] = g.x("diagonal", g.S[:-2] + (min(g.S[-2:]),))


@rule("SoftmaxCrossEntropyWithLogits")
def _xent(g):
    g.S = g.shape(2, 2)


@rule("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_xent(g):
    g.S = g.shape(2, 2)
    g.done["labels"] = g.ints("labels", g.rng.integers(
        0, max(g.S[1], 1), g.S[0]))


@rule("InTopK", "InTopKV2")
def _in_top_k(g):
    g.S = g.shape(2, 2)
    g.done["targets"] = g.ints("targets", g.rng.integers(
        0, max(g.S[1], 1), g.S[0]))


@rule("Range")
def _range(g):
    a, b = g.n(-5, 5), g.n(-5, 9)
    for name, v in (("start", a), ("limit", b),
                    ("delta", g.pick([1, 1, 2, -1, 3, 0]))):
        g.done[name] = np.array(v).astype(TYPES[g.kind(name)])
    if g.kind("start") in FLOATS and g.maybe():
        g.done["delta"] = np.array(0.3).astype(TYPES[g.kind("delta")])


@rule("BiasAdd", "BiasAddV1", "BiasAddGrad")
def _bias(g):
    g.S = g.shape(2)
    last = -1
    if g.d.name != "BiasAddV1":
        g.call.attrs["data_format"] = g.pick(["NHWC", "NHWC", "NCHW"])
        last = 1 if g.call.attrs["data_format"] == "NCHW" else -1
    if g.d.name != "BiasAddGrad":
        g.done["bias"] = g.x("bias", (g.S[last],))


@rule("InvertPermutation")
def _invert(g):
    g.done["x"] = g.ints("x", g.rng.permutation(g.n(0, 6)))


@rule("LowerBound", "UpperBound")
def _bound(g):
    b = g.dim()
    name = "sorted_inputs"
    v = g.x(name, (b, g.dim()))
    g.done[name] = np.sort(v, axis=1) if g.kind(name) not in (8, 18) else v
    g.done["values"] = g.x("values", (b, g.dim()))


@rule("Empty")
def _empty(g):
    g.call.attrs["init"] = True  # without, the values are anything


@rule("Cross")
def _cross(g):
    g.S = g.shape(0, 3) + (3,)


@rule("NthElement", "TopK", "TopKV2", "MatrixDiag", "Softmax", "LogSoftmax")
def _vector(g):
    g.S = g.shape(1)
    if g.d.name == "TopK":
        g.call.attrs["k"] = g.n(0, g.S[-1])


@rule("HistogramFixedWidth")
def _histogram(g):
    g.done["value_range"] = g.x("value_range", (2,))
    g.done["value_range"].sort()


@rule("Substr")
def _substr(g):
    s = g.broadcast()[0] if g.maybe(0.3) else g.pick([(), g.S])
    g.done["pos"] = g.ints("pos", g.rng.integers(-3, 4, s))
    g.done["len"] = g.ints("len", g.rng.integers(0, 5, s))


@rule("StringSplit", "StringSplitV2")
def _string_split(g):
    g.S = g.shape(1, 1)


@rule("UnicodeEncode", "StringNGrams")
def _ragged(g):
    n = g.n(0, 6)
    cuts = [0] + sorted(g.n(0, n) for _ in range(g.n(0, 3))) + [n]
    a, b = [i.name for i in g.d.input_arg]
    g.done[a] = g.values((n,), 7) if a == "data" else \
        g.ints(a, g.rng.integers(0, 0x3000, n))
    g.done[b] = g.ints(b, cuts)
    if g.d.name == "StringNGrams":
        g.call.attrs["ngram_widths"] = [g.n(1, 3)]
        g.call.attrs["pad_width"] = g.n(-1, 2)


@rule("AsString")
def _as_string(g):
    g.call.attrs.update(precision=g.pick([-1, -1, 2, 9]),
                        width=g.pick([-1, 4, 10]))
    if g.maybe(0.8):
        both = g.maybe(), g.maybe()
        g.call.attrs.update(scientific=both[0], shortest=both[1] > both[0],
                            fill=g.pick(["", "0"]))


@rule("Cholesky", "BatchCholesky", "MatrixInverse", "BatchMatrixInverse",
      "MatrixDeterminant", "BatchMatrixDeterminant", "LogMatrixDeterminant",
      "Lu", "SelfAdjointEig", "BatchSelfAdjointEig", "SelfAdjointEigV2",
      "BatchSelfAdjointEigV2", "Eig", "MatrixSquareRoot", "MatrixLogarithm",
      "MatrixSolve", "BatchMatrixSolve", "MatrixTriangularSolve",
      "BatchMatrixTriangularSolve", "CholeskyGrad", "BatchCholeskyGrad",
      "MatrixExponential")
def _square(g):
    n = g.n(0, 4)
    g.S = (g.shape(0, 2) if g.maybe(0.3) else ()) + (n, n)
    for i, a in enumerate(g.d.input_arg):
        v = g.x(a.name, g.S)
        if i == 0 and g.maybe(0.9):
            g.specials = False
            w = g.x(a.name, g.S).astype(np.complex128)
            w = w @ np.conj(np.swapaxes(w, -1, -2)) + 2 * np.eye(n)
            t = TYPES[g.kind(a.name)]
            v = (w if g.kind(a.name) in COMPLEX else w.real).astype(t)
        g.done[a.name] = v


@rule("Qr", "Svd", "BatchSvd", "MatrixSolveLs", "BatchMatrixSolveLs")
def _tall(g):
    g.S = (g.shape(0, 1) if g.maybe(0.3) else ()) + (g.n(1, 4), g.n(1, 4))
    if "rhs" in [a.name for a in g.d.input_arg]:
        g.done["rhs"] = g.x("rhs", g.S[:-1] + (2,))


@rule("TridiagonalSolve", "TridiagonalMatMul")
def _tridiagonal(g):
    m, n = g.n(1, 4), g.n(1, 2)
    if g.d.name == "TridiagonalSolve":
        g.done["diagonals"] = g.x("diagonals", (3, m), 1, 3)
    else:
        for d, name in enumerate(("superdiag", "maindiag", "subdiag")):
            g.done[name] = g.x(name, (1, m))
    g.done["rhs"] = g.x("rhs", (m, n))


def _window(g, spatial):
    padding = g.call.attrs["padding"] = g.pick(["SAME", "VALID"])
    ch_last = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[spatial]
    have = [a.name for a in g.d.attr]
    if "data_format" in have:
        g.call.attrs["data_format"] = ch_last
    if "explicit_paddings" in have:
        g.call.attrs["explicit_paddings"] = []
        if g.maybe(0.15):
            g.call.attrs["padding"] = "EXPLICIT"
            g.call.attrs["explicit_paddings"] = [0, 0] + [
                g.n(0, 1) for _ in range(2 * spatial)] + [0, 0]
    if "include_batch_in_index" in have:
        g.call.attrs["include_batch_in_index"] = g.maybe()
    return padding


def _out(size, k, s, padding, d=1):
    k = (k - 1) * d + 1
    return -(-size // s) if padding == "SAME" else max(-(-(size - k + 1) // s),
                                                       0)


@rule("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolV2",
      "MaxPoolWithArgmax", "MaxPoolGrad", "AvgPoolGrad", "MaxPool3DGrad",
      "AvgPool3DGrad", "MaxPoolGradGrad", "MaxPool3DGradGrad",
      "MaxPoolGradV2", "MaxPoolGradGradV2", "ExtractImagePatches")
def _pool(g):
    spatial = 3 if "3D" in g.d.name else 2
    padding = _window(g, spatial)
    if g.call.attrs["padding"] == "EXPLICIT":
        g.call.attrs.update(padding="VALID", explicit_paddings=[])
        padding = "VALID"
    size = [g.n(1, 5) for _ in range(spatial)]
    k = [g.n(1, 3) for _ in range(spatial)]
    s = [g.n(1, 2) for _ in range(spatial)]
    names = [a.name for a in g.d.input_arg]
    for name, v in (("ksize", k), ("strides", s), ("ksizes", k)):
        if name in names:
            g.done[name] = g.ints(name, [1] + v + [1])
        elif name in [a.name for a in g.d.attr]:
            g.call.attrs[name] = [1] + v + [1]
    if g.d.name.startswith("Extract"):
        g.call.attrs["rates"] = [1] * 4
    b, c = g.n(0, 2), g.n(1, 3)
    whole = [b] + size + [c]
    small = [b] + [_out(a, i, j, padding)
                   for a, i, j in zip(size, k, s)] + [c]
    g.S = tuple(whole)
    if "orig_input_shape" in names:
        g.done["orig_input_shape"] = g.ints("orig_input_shape", whole)
    if "orig_output" in names:
        g.done["orig_output"] = g.x("orig_output", small)
    if "grad" in names:
        g.done["grad"] = g.x("grad", whole if "GradGrad" in g.d.name
                             else small)


@rule("Conv2D", "Conv3D", "Conv2DBackpropInput", "Conv2DBackpropFilter",
      "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2",
      "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
      "DepthwiseConv2dNativeBackpropFilter", "Dilation2D")
def _conv(g):
    spatial = 3 if "3D" in g.d.name else 2
    padding = _window(g, spatial)
    g.call.attrs["padding"] = padding
    if "explicit_paddings" in g.call.attrs:
        g.call.attrs["explicit_paddings"] = []
    size = [g.n(1, 5) for _ in range(spatial)]
    k = [g.n(1, 3) for _ in range(spatial)]
    s = [g.n(1, 2)] * spatial
    d = [g.pick([1, 1, 2]) if s[0] == 1 else 1] * spatial
    b, c, o = g.n(0, 2), g.n(1, 3), g.n(1, 3)
    depthwise = "Depthwise" in g.d.name
    g.call.attrs["strides"] = [1] + s + [1]
    g.call.attrs["rates" if "Dilation" in g.d.name else "dilations"] = \
        [1] + d + [1]
    if "Dilation" in g.d.name:
        g.call.attrs.pop("data_format", 0)
    whole = [b] + size + [c]
    filt = k + ([c] if "Dilation" in g.d.name else [c, o])
    out = [b] + [_out(*a, padding, e) for *a, e in zip(size, k, s, d)] + \
        [c * o if depthwise else o]
    for name, v in (("input", whole), ("filter", filt),
                    ("out_backprop", out)):
        if name in [a.name for a in g.d.input_arg]:
            g.done[name] = g.x(name, v)
    for name, v in (("input_sizes", whole), ("filter_sizes", filt)):
        if name in [a.name for a in g.d.input_arg]:
            g.done[name] = g.ints(name, v)


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(g):
    c = g.n(1, 3)
    g.S = (g.n(0, 2), g.n(1, 3), g.n(1, 3), c)
    train = g.call.attrs["is_training"] = g.maybe()
    g.call.attrs["data_format"] = "NHWC"
    g.call.attrs["exponential_avg_factor"] = 1.0
    for name in ("scale", "offset", "mean", "variance"):
        lo = 0.1 if name == "variance" else -4
        s = (0,) if train and name in ("mean", "variance") else (c,)
        g.done[name] = g.x(name, s, lo, 4)


@rule("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic",
      "ResizeArea")
def _resize(g):
    g.S = (g.n(0, 2), g.n(1, 4), g.n(1, 4), g.n(1, 3))
    g.done["size"] = g.ints("size", [g.n(1, 5), g.n(1, 5)])


@rule("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
      "QuantizeAndDequantizeV4", "FakeQuantWithMinMaxVars")
def _quantize(g):
    g.call.attrs["axis"] = -1
    if g.d.name.startswith("Fake"):
        del g.call.attrs["axis"]


def _sparse(g, names):
    """Fill in each triple of indices, values and shape."""
    for name in names:
        if not name.endswith("indices"):
            continue
        p = name[:-len("indices")]
        values = p + "values"
        shape = next((s for s in (p + "shape", p + "dense_shape")
                      if s in names), None)
        if values not in names or not shape or name in g.done:
            continue
        s = [max(d, 1) for d in g.S] or [3]
        g.S = tuple(s)
        total = int(np.prod(s))
        nnz = g.n(0, min(5, total))
        at = np.sort(g.rng.permutation(total)[:nnz])
        where = np.stack(np.unravel_index(at, s), 1) if nnz else \
            np.zeros((0, len(s)))
        g.done[name] = g.ints(name, where)
        g.done[values] = g.x(values, (nnz,))
        g.done[shape] = g.ints(shape, s)
    for name in ("start", "size"):
        if name in names and "Sparse" in g.d.name:
            g.done[name] = g.ints(name, [g.n(0, 2) for _ in g.S])
    if "new_shape" in names:
        g.done["input_shape"] = g.ints("input_shape", list(g.S) or [1])
        s = list(g.S) or [1]
        g.done["input_indices"] = g.ints("input_indices", [[0] * len(s)])
        g.done["new_shape"] = g.ints("new_shape", [-1] if g.maybe() else
                                     s[::-1])


BINARY = ("x", "y"), ("a", "x"), ("y", "dy"), ("x1", "x2"), ("real", "imag")


# --- One call ---------------------------------------------------------------


SIZES = {"dims", "shape", "size", "multiples", "num", "depth", "k", "nbins",
         "num_segments", "output_dim0", "num_rows", "num_cols", "paddings",
         "output_shape", "orig_input_shape", "input_sizes", "filter_sizes",
         "limit", "num_samples", "fft_length", "new_shape", "indices",
         "fixed_length", "starts", "limits", "deltas", "start", "stop",
         "delta"}


def spoil(g):
    """Break one input; say what was done."""
    names = [n for n, v in g.call.inputs.items() if not isinstance(v, list)
             or v]
    if not names:
        return None
    name = g.pick(names)
    v = g.call.inputs[name]
    i = None
    if isinstance(v, list):
        i = g.n(0, len(v) - 1)
        v = v[i]
    how = g.pick(["rank", "squeeze", "grow", "shrink", "empty", "value",
                  "value", "value", "neg"])
    if how in ("value", "neg") and v.size and v.dtype.kind in "iu":
        f = np.iinfo(v.dtype)
        v = v.copy()
        w = g.pick([-1, -2, -100, f.min, f.max, 7, 1000] if how == "value"
                   else [-1, -3])
        if abs(w) >= 2**31 - 1 and name in SIZES:
            w = 300  # of a few gigabytes nothing is learned
        v.reshape(-1)[g.n(0, v.size - 1)] = min(max(w, f.min), f.max)
    elif how == "rank":
        v = v[None] if g.maybe() else v[..., None]
    elif how == "squeeze" and v.ndim and v.shape[0]:
        v = v[0]
    elif how == "grow" and v.ndim:
        v = np.concatenate([v, v[:1]])
    elif how == "shrink" and v.ndim:
        v = v[..., :-1]
    elif how == "empty":
        v = v.reshape(-1)[:0] if g.maybe() else np.empty(
            g.S[:1] + (0,), v.dtype)
    else:
        return None
    v = np.asarray(v)
    if i is None:
        g.call.inputs[name] = v
    else:
        g.call.inputs[name][i] = v
    return "%s of %s" % (how, name)


def call(d, seed, kernels=None):
    """A Call of the op that `d` defines; raises Broken if there is none."""
    g = Gen(d, seed, kernels)
    g.make_types()
    for a in d.attr:
        if a.type == "int" and (any(i.number_attr == a.name
                                    for i in d.input_arg)):
            g.lens[a.name] = g.n(max(1, a.minimum), 3)
    if d.name in RULE:
        RULE[d.name](g)
    names = [a.name for a in d.input_arg]
    _sparse(g, names)
    if tuple(names[:2]) in BINARY and names[0] not in g.done and \
            d.name not in ("ListDiff",):
        a, b = g.broadcast()
        if g.maybe(0.05):
            b = g.shape()
        g.done[names[0]] = g.x(names[0], a)
        g.done[names[1]] = g.x(names[1], b)
    attrs = {}
    for a in d.attr:
        if a.type in ("type", "list(type)"):
            attrs[a.name] = g.types[a.name]
        elif a.name in g.call.attrs:
            attrs[a.name] = g.call.attrs[a.name]
        elif a.name not in g.lens:
            v = g.make_attr(a)
            if v is not None:
                attrs[a.name] = v
    g.call.attrs, g.call.types = attrs, g.types
    for a in d.input_arg:
        if not a.number_attr and not a.type_list_attr and \
                g.kind(a.name) not in TYPES:
            raise Broken("input %s" % a.name)
        g.call.inputs[a.name] = g.make_input(a)
    if g.maybe(0.25):
        g.call.bad = spoil(g)
    return g.call
