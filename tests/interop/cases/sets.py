"""Sets along the last dimension, sparse tensors as strings, variants and
numbers, and staging maps."""
from cases import X, V, each, f32, graph, i32, i64, n0, s

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "string"]
OPERATIONS = ["a-b", "b-a", "intersection", "union", "UNION"]
AT = i64([[0, 0], [0, 2], [1, 1], [3, 0]])  # of a [4, 3]
MIXED = i64([[3, 0], [0, 2], [0, 0], [1, 1]])
AT2 = i64([[0, 0], [0, 1], [1, 1], [2, 0], [3, 0]])
DEEP = i64([[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]])  # of a [2, 2, 3]
SHAPE = i64([4, 3])


def sparse(name, at, values, shape):
    return {name + "_indices": at, name + "_values": values,
            name + "_shape": shape}


for op in OPERATIONS:
    each("DenseToDenseSetOperation", op, set1=X(4, 5), set2=X(4, 3, seed=1),
         set_operation=op, types=TYPES)
    each("DenseToDenseSetOperation", op + " deep", set1=X(2, 3, 4),
         set2=X(2, 3, 2, seed=1), set_operation=op, types=TYPES[2:3])
    each("DenseToDenseSetOperation", op + " nothing", set1=X(3, 0),
         set2=X(3, 2), set_operation=op, types=TYPES[2:])
    each("DenseToSparseSetOperation", op, set1=X(4, 5),
         **sparse("set2", AT, X(4, seed=1), SHAPE), set_operation=op,
         types=TYPES)
    each("DenseToSparseSetOperation", op + " deep", set1=X(2, 2, 5),
         **sparse("set2", DEEP, X(4, seed=1), i64([2, 2, 3])),
         set_operation=op, types=TYPES[2:3])
    each("SparseToSparseSetOperation", op, **sparse("set1", AT, X(4), SHAPE),
         **sparse("set2", AT2, X(5, seed=1), i64([4, 2])), set_operation=op,
         types=TYPES)
    each("SparseToSparseSetOperation", op + " nothing",
         **sparse("set1", AT, X(4), SHAPE),
         **sparse("set2", AT2[:0], X(0), i64([4, 2])), set_operation=op,
         types=TYPES[:1])
    each("SparseToSparseSetOperation", op + " deep",
         **sparse("set1", DEEP, X(4), i64([2, 2, 3])),
         **sparse("set2", DEEP[1:], X(3, seed=1), i64([2, 2, 4])),
         set_operation=op, types=TYPES[2:3])

each("DenseToDenseSetOperation", "other groups", set1=X(4, 5), set2=X(3, 3),
     set_operation="union", types=["int32"], fails=True)
each("DenseToDenseSetOperation", "other rank", set1=X(4, 5), set2=X(4, 5, 1),
     set_operation="union", types=["int32"], fails=True)
each("DenseToDenseSetOperation", "a vector", set1=X(4), set2=X(4),
     set_operation="union", types=["int32"], fails=True)
each("DenseToSparseSetOperation", "other groups", set1=X(3, 5),
     **sparse("set2", AT, X(4, seed=1), SHAPE), set_operation="union",
     types=["int32"], fails=True)
for label, at in (("order", MIXED), ("twice", i64([[0, 0]] * 4)),
                  ("outside", AT + i64([[0, 0]] * 3 + [[1, 0]])),
                  ("negative", AT - i64([[1, 0]] + [[0, 0]] * 3))):
    each("DenseToSparseSetOperation", label, set1=X(4, 5),
         **sparse("set2", at, X(4, seed=1), SHAPE), set_operation="union",
         types=["int32"], fails=True)
    each("SetSize", label, **sparse("set", at, X(4), SHAPE),
         types=["int32"], fails=True)
    each("SerializeManySparse", label, **sparse("sparse", at, X(4), SHAPE),
         types=["int32"], fails=True)
    each("AddManySparseToTensorsMap", label,
         **sparse("sparse", at, X(4), SHAPE), types=["int32"], fails=True)
each("DenseToSparseSetOperation", "too few values", set1=X(4, 5),
     **sparse("set2", AT, X(3, seed=1), SHAPE), set_operation="union",
     types=["int32"], fails=True)

each("SetSize", **sparse("set", AT2, V(1, 1, 2, 3, 3), i64([4, 2])),
     types=TYPES)
each("SetSize", "deep", **sparse("set", DEEP, X(4), i64([2, 2, 3])),
     types=TYPES)
each("SetSize", "nothing", **sparse("set", AT[:0], X(0), SHAPE), types=TYPES)
each("SetSize", "a vector", **sparse("set", AT[:, :1], X(4), i64([4])),
     types=["int32"], fails=True)

# --- As strings and variants -------------------------------------------------

PLAIN = ["float32", "float64", "int32", "int64", "int8", "bool", "string",
         "complex64", "float16", "bfloat16"]


def back(k, serialized, dtype, form):
    return list(k.raw.DeserializeSparse(serialized_sparse=serialized,
                                        dtype=dtype))


def one(k, dtype, form, at=AT, values=X(4), shape=SHAPE):
    return k.raw.SerializeSparse(
        sparse_indices=k.x(at), sparse_values=k.x(values, dtype),
        sparse_shape=k.x(shape), out_type=form)


for form in ("string", "variant"):
    @graph("SerializeSparse DeserializeSparse", form, types=PLAIN)
    def _(k, dtype, form=form):
        a, b = one(k, dtype, form), one(k, dtype, form, AT2, X(5),
                                        i64([4, 2]))
        pair = k.raw.Pack(values=[a, b])
        return back(k, a, dtype, form), back(k, pair, dtype, form), back(
            k, k.raw.Pack(values=[pair, pair, pair]), dtype, form)

    @graph("SerializeManySparse DeserializeSparse", form + " many",
           types=PLAIN)
    def _(k, dtype, form=form):
        a = k.raw.SerializeManySparse(
            sparse_indices=k.x(AT), sparse_values=k.x(X(4), dtype),
            sparse_shape=k.x(SHAPE), out_type=form)
        return back(k, a, dtype, form), k.raw.Shape(input=a)

    @graph("DeserializeSparse", form + " other rank", fails=True)
    def _(k, form=form):
        a = one(k, "int32", form)
        b = one(k, "int32", form, DEEP, X(4), i64([2, 2, 3]))
        return back(k, k.raw.Pack(values=[a, b]), "int32", form)

    @graph("DeserializeSparse", form + " other type", fails=True)
    def _(k, form=form):
        return back(k, one(k, "int32", form), "float32", form)

    @graph("DeserializeSparse", form + " mixed up", fails=True)
    def _(k, form=form):
        a = k.raw.Unpack(value=one(k, "int64", form), num=3)
        return back(k, k.raw.Pack(values=[a[1], a[0], a[2]]), "int64", form)


@graph("DeserializeManySparse", types=PLAIN)
def many(k, dtype):
    a = k.raw.SerializeManySparse(
        sparse_indices=k.x(AT), sparse_values=k.x(X(4), dtype),
        sparse_shape=k.x(SHAPE))
    return list(k.raw.DeserializeManySparse(serialized_sparse=a, dtype=dtype))


each("SerializeSparse", "a scalar of indices", sparse_indices=n0(1, "int64"),
     sparse_values=X(1), sparse_shape=i64([1]), types=["int32"], fails=True)
each("SerializeSparse", "a matrix of values", sparse_indices=AT,
     sparse_values=X(4, 1), sparse_shape=SHAPE, types=["int32"], fails=True)
each("SerializeManySparse", "rank 1", sparse_indices=AT[:, :1],
     sparse_values=X(4), sparse_shape=i64([4]), types=["int32"], fails=True)
each("SerializeManySparse", "too few values", sparse_indices=AT,
     sparse_values=X(3), sparse_shape=SHAPE, types=["int32"], fails=True)
each("AddManySparseToTensorsMap", "too few values", sparse_indices=AT,
     sparse_values=X(3), sparse_shape=SHAPE, types=["int32"], fails=True)
each("AddSparseToTensorsMap", "too few values", sparse_indices=AT,
     sparse_values=X(3), sparse_shape=SHAPE, types=["int32"], fails=True)
each("AddSparseToTensorsMap", "other rank", sparse_indices=AT,
     sparse_values=X(4), sparse_shape=i64([4, 3, 2]), types=["int32"],
     fails=True)
each("SerializeManySparse", "other rank", sparse_indices=AT,
     sparse_values=X(4), sparse_shape=i64([4, 3, 2]), types=["int32"],
     fails=True)
each("DeserializeSparse", "no protos", serialized_sparse=s("a", "b", "c"),
     dtype="int32", fails=True)
each("DeserializeManySparse", "no protos",
     serialized_sparse=s("a", "b", "c").reshape(1, 3), dtype="int32",
     fails=True)
each("DeserializeSparse", "nothing",
     serialized_sparse=s("a", "b", "c").reshape(1, 3)[:0], dtype="int32",
     fails=True)

# --- As numbers --------------------------------------------------------------


@graph("AddSparseToTensorsMap AddManySparseToTensorsMap "
       "TakeManySparseFromTensorsMap", types=PLAIN)
def table(k, dtype):
    name = k.name()
    a = k.raw.AddSparseToTensorsMap(
        sparse_indices=k.x(i64([[0], [2]])), sparse_values=k.x(X(2), dtype),
        sparse_shape=k.x(i64([7])), shared_name=name)
    with k.after(a):
        b = k.raw.AddManySparseToTensorsMap(
            sparse_indices=k.x(AT), sparse_values=k.x(X(4), dtype),
            sparse_shape=k.x(SHAPE), shared_name=name)
    keys = k.raw.ConcatV2(values=[b, k.raw.ExpandDims(
        input=a, axis=k.x(n0(0, "int32")))], axis=k.x(n0(0, "int32")))
    return list(k.raw.TakeManySparseFromTensorsMap(
        sparse_handles=keys, dtype=dtype, shared_name=name))


@graph("TakeManySparseFromTensorsMap", "not there", fails=True)
def not_there(k):
    return list(k.raw.TakeManySparseFromTensorsMap(
        sparse_handles=k.x(i64([3])), dtype="int32",
        shared_name="not_there"))


each("TakeManySparseFromTensorsMap", "a scalar",
     sparse_handles=n0(3, "int64"), dtype="int32", fails=True)
each("TakeManySparseFromTensorsMap", "none", sparse_handles=i64([]),
     dtype="int32", fails=True)

# --- Staging maps ------------------------------------------------------------

BOTH = ["float32", "string"]
OPS = "%sStage %sPeek %sUnstage %sUnstageNoKey %sSize %sIncompleteSize %sClear"


def put(k, m, name, key, *values, at=(0, 1), **kw):
    return getattr(k.raw, m + "Stage")(
        key=k.x(n0(key, "int64")), indices=k.x(i32(list(at))),
        values=[k.x(v) for v in values], dtypes=BOTH, shared_name=name, **kw)


def size(k, m, name, **kw):
    return [getattr(k.raw, m + op)(dtypes=BOTH, shared_name=name, **kw)
            for op in ("Size", "IncompleteSize")]


def get(k, m, op, name, *key, at=(0, 1), **kw):
    key = {"key": k.x(n0(key[0], "int64"))} if key else {}
    got = list(getattr(k.raw, m + op)(
        indices=k.x(i32(list(at))), dtypes=[BOTH[i] for i in at],
        shared_name=name, **key, **kw))
    return got if key else [got[0], *got[1]]


for m in ("Map", "OrderedMap"):
    @graph(OPS.replace("%s", m))
    def _(k, m=m):
        name = k.name()
        out = []
        with k.after(put(k, m, name, 7, f32(1), s("a"))):
            one = put(k, m, name, 3, f32(2), at=[0])
        with k.after(one):
            out += size(k, m, name)
        with k.after(*out):
            two = put(k, m, name, 3, s("b"), at=[1])
        with k.after(two):
            out += size(k, m, name)
            out += get(k, m, "Peek", name, 3)
        with k.after(*out):
            out += get(k, m, "Unstage", name, 3, at=[0])
        with k.after(*out):
            out += get(k, m, "Unstage", name, 3, at=[1])
        with k.after(*out):
            out += get(k, m, "UnstageNoKey", name)
        with k.after(*out):
            three = put(k, m, name, 8, f32(1), s("a"))
        with k.after(three):
            clear = getattr(k.raw, m + "Clear")(dtypes=BOTH, shared_name=name)
        with k.after(clear):
            return out + size(k, m, name)

    @graph("%sStage" % m, "too many bytes", fails=True)
    def _(k, m=m):
        name = k.name()
        with k.after(put(k, m, name, 1, X(99, dtype="float32"), at=[0],
                         memory_limit=100)):
            return size(k, m, name, memory_limit=100)

    @graph("%sStage" % m, "twice", fails=True)
    def _(k, m=m):
        name = k.name()
        with k.after(put(k, m, name, 1, f32(1), at=[0])):
            two = put(k, m, name, 1, f32(1), at=[0])
        with k.after(two):
            return size(k, m, name)

    for label, at in (("order", [1, 0]), ("twice", [1, 1]),
                      ("one outside", [5])):
        @graph("%sStage" % m, label, fails=True)
        def _(k, m=m, at=at):
            name = k.name()
            with k.after(put(k, m, name, 1, *[f32(1) for _ in at], at=at)):
                return size(k, m, name)

    @graph("%sUnstage" % m, "taken already", fails=True)
    def _(k, m=m):
        name = k.name()
        with k.after(put(k, m, name, 1, f32(1), s("a"))):
            one = get(k, m, "Unstage", name, 1, at=[0])
        with k.after(*one):
            return get(k, m, "Unstage", name, 1, at=[0])
