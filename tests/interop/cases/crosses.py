"""Crosses of features, sums and other combinations of sparse tensors."""
from cases import V, X, b, each, graph, i32, i64, n0, s, s0

AT = i64([[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]])
OTHER = i64([[0, 0], [1, 0], [1, 1], [3, 0]])
SHAPE = i64([4, 2])
WORDS = s("a", "bc", "", "d\x00e", "fff")
MORE = s("x", "yy", "z", "w")
NUMBERS = i64([5, -1, 0, 1 << 40])
DENSE = s("p", "q", "r", "s").reshape(4, 1)
DENSE64 = i64([[1, 2], [3, 4], [5, 6], [-7, 8]])

COLUMNS = {
    "words": dict(indices=[AT, OTHER], values=[WORDS, MORE],
                  shapes=[SHAPE, SHAPE], dense_inputs=[DENSE]),
    "numbers": dict(indices=[AT, OTHER], values=[WORDS, NUMBERS],
                    shapes=[SHAPE, SHAPE], dense_inputs=[DENSE64]),
    "one": dict(indices=[OTHER], values=[NUMBERS], shapes=[SHAPE],
                dense_inputs=[]),
    "dense": dict(indices=[], values=[], shapes=[],
                  dense_inputs=[DENSE, DENSE64]),
}
for label, columns in COLUMNS.items():
    columns = {key: [v for v in value] for key, value in columns.items()}
    for sep in ("_X_", "", " & "):
        each("SparseCrossV2", "%s %r" % (label, sep), **columns, sep=s0(sep))
    for buckets, strong, salt in ((0, False, (1, 2)), (100, False, (1, 2)),
                                  (1000, True, (137, 173))):
        if label == "dense" or strong and label == "numbers":
            continue  # TensorFlow dies
        each("SparseCrossHashed", "%s %d" % (label, buckets), **columns,
             num_buckets=n0(buckets, "int64"), strong_hash=n0(strong, "bool"),
             salt=i64(list(salt)))
    for buckets in (0, 100):
        each("SparseCross", "%s hashed %d" % (label, buckets), **columns,
             hashed_output=True, num_buckets=buckets, hash_key=0xDECAFCAFFE,
             out_type="int64", internal_type="int64")
each("SparseCross", "text", **COLUMNS["words"], hashed_output=False,
     num_buckets=0, hash_key=1, out_type="string", internal_type="string")


def wrong(label, **kw):
    columns = {**COLUMNS["words"], **kw}
    each("SparseCrossV2", label, **columns, sep=s0("_"), fails=True)


wrong("other batch", shapes=[SHAPE, i64([3, 2])])
wrong("dense of another batch", dense_inputs=[DENSE[:2]])
wrong("too few values", values=[WORDS[:2], MORE])
wrong("a vector of dense values", dense_inputs=[DENSE[:, 0]])
wrong("a shape of three", shapes=[i64([4, 2, 1]), SHAPE])
wrong("indices of three", indices=[i64([[0, 0, 0]] * 5), OTHER])

# --- Two sparse tensors, or a sparse and a dense one -------------------------

A = dict(a_indices=AT, a_values=X(5), a_shape=SHAPE)
B = dict(b_indices=OTHER, b_values=X(4, seed=1), b_shape=SHAPE)
REAL = {"complex64": "float32", "complex128": "float64"}

for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
    each(op, **A, **B)
    each(op, "nothing", a_indices=AT[:0], a_values=X(0), a_shape=SHAPE, **B,
         types=["float32"])
    each(op, "other shape", **A, **{**B, "b_shape": i64([4, 3])},
         types=["float32"], fails=True)
    each(op, "other rank", **A, **{**B, "b_shape": i64([4, 3, 2])},
         types=["float32"], fails=True)
    each(op, "too few values", **A, **{**B, "b_values": X(3)},
         types=["float32"], fails=True)


@graph("SparseAdd", types="kernel")
def sparse_add(k, dtype):
    def t(name, at, v):
        return {name + "_indices": k.x(at), name + "_values": k.x(v, dtype),
                name + "_shape": k.x(SHAPE)}
    return [list(k.raw.SparseAdd(
        **t("a", AT, X(5)), **t("b", OTHER, X(4, seed=1)),
        thresh=k.x(V(limit, dtype=REAL.get(dtype, dtype))))) for limit in
        (0, 2)]


for label, kw in {"other shape": {"b_shape": i64([4, 3])},
                  "other rank": {"b_shape": i64([4, 3, 2])},
                  "too few values": {"b_values": X(3)},
                  "a vector of limits": {"thresh": X(2)}}.items():
    each("SparseAdd", label, **{**A, **B, "thresh": X(), **kw},
         types=["float32"], fails=True)

each("SparseAddGrad", backprop_val_grad=X(6), a_indices=AT, b_indices=OTHER,
     sum_indices=i64([[0, 0], [0, 1], [1, 0], [1, 1], [3, 0], [3, 1]]),
     types=["float32", "int64", "complex64"])
each("SparseAddGrad", "some are gone", backprop_val_grad=X(3), a_indices=AT,
     b_indices=OTHER, sum_indices=i64([[0, 1], [1, 1], [3, 1]]),
     types=["float32"])
each("SparseAddGrad", "too few", backprop_val_grad=X(3), a_indices=AT,
     b_indices=OTHER, sum_indices=AT, types=["float32"], fails=True)
each("SparseSliceGrad", backprop_val_grad=X(2), input_indices=AT,
     input_start=i64([1, 0]), output_indices=i64([[0, 0], [2, 1]]),
     types=["float32", "int64", "complex64"])
each("SparseSliceGrad", "not there", backprop_val_grad=X(2),
     input_indices=AT, input_start=i64([1, 0]),
     output_indices=i64([[0, 0], [2, 3]]), types=["float32"], fails=True)

each("SparseTensorDenseAdd", **A, b=X(4, 2))
each("SparseTensorDenseAdd", "int32 indices", a_indices=AT.astype("int32"),
     a_values=X(5), a_shape=i32([4, 2]), b=X(4, 2), types=["float32"])
for label, kw in {"other shape": {"b": X(4, 3)}, "other rank": {"b": X(4)},
                  "outside": {"a_indices": AT + 2},
                  "too few values": {"a_values": X(3)}}.items():
    each("SparseTensorDenseAdd", label, **{**A, "b": X(4, 2), **kw},
         types=["float32"], fails=True)

for op in ("Add", "Mul", "Div"):
    op, S = "SparseDenseCwise" + op, dict(sp_indices=AT, sp_values=X(5),
                                          sp_shape=SHAPE)
    for dims in ((4, 2), (2,), (4, 1), (), (1, 1), (1,)):
        each(op, "by %s" % (dims,), **S, dense=X(*dims, lo=1))
    for label, kw in {"other shape": {"dense": X(4, 3)},
                      "more": {"dense": X(3, 4, 2)},
                      "outside": {"sp_indices": AT + 2},
                      "too few values": {"sp_values": X(3)}}.items():
        each(op, label, **{**S, "dense": X(4, 2, lo=1), **kw},
             types=["float32"], fails=True)
each("SparseDenseCwiseDiv", "by zero", sp_indices=AT, sp_values=X(5),
     sp_shape=SHAPE, dense=V(0), types=["float32", "int32"], fails=True)

# --- One ---------------------------------------------------------------------

DEEP = i64([[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]])
MIXED = DEEP[[3, 1, 0, 4, 2]]
for op in ("Sum", "Max"):
    for form in ("", "Sparse"):
        name = "SparseReduce" + op + form
        for keep in (False, True):
            for axes in ([0], [1, -1], [0, 1, 2], [], [1, 1]):
                each(name, "%s %s" % (axes, keep), input_indices=DEEP,
                     input_values=X(5), input_shape=i64([2, 2, 3]),
                     reduction_axes=i32(axes), keep_dims=keep)
        each(name, "mixed", input_indices=MIXED, input_values=X(5),
             input_shape=i64([2, 2, 3]), reduction_axes=i32([1]))
        each(name, "nothing", input_indices=DEEP[:0], input_values=X(0),
             input_shape=i64([2, 2, 3]), reduction_axes=n0(1, "int32"),
             types=["float32"])
        each(name, "no such axis", input_indices=DEEP, input_values=X(5),
             input_shape=i64([2, 2, 3]), reduction_axes=i32([3]),
             types=["float32"], fails=True)
each("SparseSoftmax", sp_indices=DEEP, sp_values=X(5),
     sp_shape=i64([2, 2, 3]))
each("SparseSoftmax", "mixed", sp_indices=MIXED, sp_values=X(5),
     sp_shape=i64([2, 2, 3]))
each("SparseSoftmax", "a vector", sp_indices=DEEP[:, :1], sp_values=X(5),
     sp_shape=i64([2]), types=["float32"], fails=True)
