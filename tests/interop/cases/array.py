"""Ops that move, shape, pick and make elements."""
from cases import (FLOATS, PLAIN, V, X, b, each, f32, graph, i32, i64, n0, s,
                   s0)

# --- As it is ---------------------------------------------------------------

for op in ("Identity", "Snapshot", "StopGradient", "PreventGradient",
           "ZerosLike", "OnesLike", "DeepCopy", "GuaranteeConst"):
    arg = "x" if op in ("ZerosLike", "OnesLike", "DeepCopy") else "input"
    for shape in ((3, 5), (), (0, 2)):
        each(op, **{arg: X(*shape)})
each("IdentityN", input=[X(2), X(3, dtype="int64"), X(dtype="string")],
     types=["float32", "string"])
each("EnsureShape", input=X(2, 3), shape=[2, None])
each("EnsureShape", "another", input=X(2, 3), shape=[3, 3],
     types=["float32"], fails=True)
for t in PLAIN:
    @graph("Const", types=[t])
    def small(k, dtype):
        _, v = V([[0, 1, 1], [2, 3, 4]]).make(dtype, 0)
        return k.tf.constant(v, dtype=dtype)

    @graph("Const", types=[t])
    def long(k, dtype):
        _, v = X(40, 5).make(dtype, 0)
        return k.tf.constant(v.astype(k.tf.as_dtype(dtype).as_numpy_dtype),
                             dtype=dtype)

    @graph("Const", types=[t])
    def same(k, dtype):
        _, v = V([[1, 1], [1, 1]]).make(dtype, 0)
        return k.tf.constant(v, dtype=dtype), k.tf.constant(
            v[:0], dtype=dtype), k.tf.constant(v[0, 0], dtype=dtype)


@graph("NoOp")
def nothing(k):
    with k.after(k.raw.NoOp()):
        return k.x(f32(1)) + 1


# --- Shapes -----------------------------------------------------------------

for shape in ((), (3,), (2, 0, 4), (2, 3, 4)):
    for out in ("int32", "int64"):
        each("Shape", input=X(*shape), out_type=out,
             types=["float32", "bool", "string", "int8", "complex64"])
        each("Size", input=X(*shape), out_type=out,
             types=["float32", "string"])
    each("Rank", input=X(*shape), types=["float32", "string"])
    each("ShapeN", input=[X(*shape), X(1), X()], out_type="int64",
         types=["float32", "string"])
for want in ([6, 4], [-1], [2, -1, 2], [24], [1, 24, 1]):
    each("Reshape", "to %s" % want, tensor=X(2, 3, 4), shape=i32(want))
each("Reshape", "to int64 shape", tensor=X(2, 3), shape=i64([3, 2]),
     types=["float32"])
each("Reshape", "to scalar", tensor=X(1, 1), shape=i32([]))
each("Reshape", "of nothing", tensor=X(0, 3), shape=i32([3, 0]))
for want in ([5], [-1, -1], [-2, 3], [-1, 5], [-1, 0]):
    each("Reshape", "to %s" % want, tensor=X(2, 3), shape=i32(want),
         types=["float32"], fails=True)
each("Reshape", "shape is no vector", tensor=X(2, 3), shape=i32([[6]]),
     types=["float32"], fails=True)
for dim in (0, 1, -1, -3):
    each("ExpandDims", "at %d" % dim, input=X(2, 3), axis=n0(dim, "int32"))
each("ExpandDims", "too far", input=X(2), axis=n0(2, "int64"),
     types=["float32"], fails=True)
each("Squeeze", input=X(1, 2, 1, 3))
each("Squeeze", "one", input=X(1, 2, 1, 3), axis=[2])
each("Squeeze", "negative", input=X(1, 2, 1), axis=[-1, 0])
each("Squeeze", "not 1", input=X(1, 2, 1), axis=[1], types=["float32"],
     fails=True)
each("Transpose", x=X(2, 3, 4), perm=i32([2, 0, 1]))
each("Transpose", "1 0", x=X(5, 7), perm=i64([1, 0]))
each("Transpose", "0 1", x=X(5, 7), perm=i32([0, 1]))
each("Transpose", "large", x=X(65, 67), perm=i32([1, 0]),
     types=["float32", "uint8"])
each("Transpose", "6 dimensions", x=X(2, 1, 3, 2, 2, 2),
     perm=i32([5, 3, 1, 0, 2, 4]), types=["float32"])
each("Transpose", "no permutation", x=X(2, 3), perm=i32([0, 0]),
     types=["float32"], fails=True)
each("Transpose", "too short", x=X(2, 3), perm=i32([0]), types=["float32"],
     fails=True)
each("ConjugateTranspose", x=X(2, 3, 4), perm=i32([2, 0, 1]))
each("InvertPermutation", x=V([2, 0, 1, 3]))
each("InvertPermutation", "no permutation", x=V([2, 0, 2]), fails=True)
for want in ([2, 3], [4, 2, 3], [2, 2, 3]):
    each("BroadcastTo", "to %s" % want, input=X(1, 3) if want != [2, 3]
         else X(3), shape=i32(want))
each("BroadcastTo", "cannot", input=X(2, 3), shape=i32([2, 4]),
     types=["float32"], fails=True)
each("BroadcastArgs", s0=i32([2, 1, 3]), s1=i32([4, 1]))
each("BroadcastArgs", s0=i64([2, 1]), s1=i64([]))
each("BroadcastArgs", "cannot", s0=i32([2]), s1=i32([3]), fails=True)
for x, y in (([2, 3], [3]), ([2, 1], [1, 3]), ([], [2]), ([2, 3], [2, 3]),
             ([1], [1]), ([2, 1, 4], [1, 3, 1])):
    each("BroadcastGradientArgs", "%s %s" % (x, y), s0=i32(x), s1=i32(y))
    each("BroadcastGradientArgs", "64 %s %s" % (x, y), s0=i64(x), s1=i64(y))
each("BroadcastGradientArgs", "cannot", s0=i32([2]), s1=i32([3]),
     fails=True)

# --- Joining and cutting ----------------------------------------------------

for axis in (0, 1, -1):
    shapes = {0: ((2, 3), (1, 3), (0, 3)), 1: ((2, 3), (2, 1), (2, 2)),
              -1: ((2, 3), (2, 1), (2, 0))}[axis]
    each("ConcatV2", "axis %d" % axis, values=[X(*c) for c in shapes],
         axis=n0(axis, "int32"))
    if axis >= 0:
        each("Concat", "axis %d" % axis, concat_dim=n0(axis, "int32"),
             values=[X(*c) for c in shapes])
each("ConcatV2", "no such axis", values=[X(2), X(3)], axis=n0(1, "int64"),
     types=["float32"], fails=True)
each("ConcatV2", "sizes do not fit", values=[X(2, 3), X(3, 2)],
     axis=n0(0, "int32"), types=["float32"], fails=True)
each("ConcatV2", "scalars", values=[X(), X()], axis=n0(0, "int32"),
     types=["float32"], fails=True)
each("ConcatOffset", concat_dim=n0(1, "int32"),
     shape=[i32([2, 3]), i32([2, 5]), i32([2, 1])])
each("ConcatOffset", "64", concat_dim=n0(0, "int32"),
     shape=[i64([2, 3]), i64([4, 3])])
for axis in (0, 1, 2, -1):
    each("Pack", "axis %d" % axis, values=[X(2, 3), X(2, 3), X(2, 3)],
         axis=axis)
each("Pack", "scalars", values=[X(), X()])
each("Pack", "one", values=[X(2)])
each("Pack", "shapes differ", values=[X(2), X(3)], types=["float32"],
     fails=True)
for axis, n in ((0, 2), (1, 3), (-1, 4)):
    each("Unpack", "axis %d" % axis, value=X(2, 3, 4), num=n, axis=axis)
each("Unpack", "wrong number", value=X(2, 3), num=3, axis=0,
     types=["float32"], fails=True)
for axis in (0, 1, -1):
    each("Split", "axis %d" % axis, axis=n0(axis, "int32"), value=X(4, 6),
         num_split=2)
each("Split", "not even", axis=n0(0, "int32"), value=X(5, 2), num_split=2,
     types=["float32"], fails=True)
each("SplitV", value=X(6, 4), size_splits=i32([1, 2, 3]),
     axis=n0(0, "int32"), num_split=3)
each("SplitV", "rest", value=X(6, 4), size_splits=i64([1, -1]),
     axis=n0(1, "int32"), num_split=2)
each("SplitV", "too much", value=X(6), size_splits=i32([1, 7]),
     axis=n0(0, "int32"), num_split=2, types=["float32"], fails=True)
each("Slice", input=X(4, 5, 3), begin=i32([1, 0, 2]), size=i32([2, 5, 1]))
each("Slice", "rest", input=X(4, 5), begin=i64([1, 2]), size=i64([-1, -1]))
each("Slice", "nothing", input=X(4, 5), begin=i32([4, 0]), size=i32([0, 5]))
each("Slice", "too far", input=X(4, 5), begin=i32([2, 0]),
     size=i32([3, 5]), types=["float32"], fails=True)
each("Slice", "wrong rank", input=X(4, 5), begin=i32([2]), size=i32([1]),
     types=["float32"], fails=True)

STRIDES = [
    ("range", [1, 2], [3, 5], [1, 1], {}),
    ("steps", [0, 4], [4, 0], [2, -1], {}),
    ("backwards", [3, 4], [-5, -6], [-1, -2], {}),
    ("masks", [1, 1], [2, 2], [1, 1], {"begin_mask": 1, "end_mask": 2}),
    ("shrink", [1, 2], [2, 3], [1, 1], {"shrink_axis_mask": 2}),
    ("shrink all", [-1, 2], [0, 3], [1, 1], {"shrink_axis_mask": 3}),
    ("ellipsis", [0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}),
    ("new axis", [0, 1, 0], [0, 3, 4], [1, 1, 1], {"new_axis_mask": 1}),
    ("out of range", [-9, 2], [9, 99], [1, 1], {}),
    ("nothing", [2, 2], [2, 4], [1, 1], {}),
]
for label, begin, end, strides, masks in STRIDES:
    each("StridedSlice", label, input=X(4, 5), begin=i32(begin),
         end=i32(end), strides=i32(strides), **masks)
each("StridedSlice", "vector, one", input=X(7), begin=i64([2]),
     end=i64([3]), strides=i64([1]), shrink_axis_mask=1)
each("StridedSlice", "index out of range", input=X(4), begin=i32([4]),
     end=i32([5]), strides=i32([1]), shrink_axis_mask=1, types=["float32"],
     fails=True)
each("StridedSlice", "stride 0", input=X(4), begin=i32([0]), end=i32([2]),
     strides=i32([0]), types=["float32"], fails=True)
each("StridedSlice", "too many", input=X(4), begin=i32([0, 0]),
     end=i32([2, 2]), strides=i32([1, 1]), types=["float32"], fails=True)
each("StridedSliceGrad", shape=i32([4, 5]), begin=i32([1, 0]),
     end=i32([3, 5]), strides=i32([1, 2]), dy=X(2, 3))
each("StridedSliceGrad", "shrink", shape=i32([4, 5]), begin=i32([1, 0]),
     end=i32([2, 5]), strides=i32([1, 1]), dy=X(5), shrink_axis_mask=1)
each("TensorStridedSliceUpdate", input=X(4, 5), begin=i32([1, 0]),
     end=i32([3, 5]), strides=i32([1, 2]), value=X(2, 3))
TILED = [t for t in PLAIN if t != "uint16"]
each("Tile", input=X(2, 3), multiples=i32([2, 3]), types=TILED)
each("Tile", "64", input=X(2), multiples=i64([4]), types=TILED)
each("Tile", "none", input=X(2, 3), multiples=i32([0, 1]), types=TILED)
each("Tile", "wrong rank", input=X(2, 3), multiples=i32([2]),
     types=["float32"], fails=True)
each("Reverse", tensor=X(2, 3, 4), dims=b(True, False, True))
each("ReverseV2", tensor=X(2, 3, 4), axis=i32([0, -1]))
each("ReverseV2", "nothing", tensor=X(2, 3), axis=i32([]))
each("ReverseV2", "twice", tensor=X(2, 3), axis=i32([0, -2]),
     types=["float32"], fails=True)
each("ReverseSequence", input=X(3, 4, 2), seq_lengths=i64([1, 4, 2]),
     seq_dim=1, batch_dim=0)
each("Roll", input=X(3, 4), shift=i32([1, -2]), axis=i32([0, 1]))
each("Pad", input=X(2, 3), paddings=i32([[1, 0], [2, 1]]))
each("PadV2", input=X(2, 3), paddings=i64([[1, 0], [2, 1]]),
     constant_values=V(3))
each("Pad", "negative", input=X(2, 3), paddings=i32([[-1, 0], [2, 1]]),
     types=["float32"], fails=True)
for mode in ("REFLECT", "SYMMETRIC"):
    each("MirrorPad", mode, input=X(3, 4), paddings=i32([[1, 2], [2, 1]]),
         mode=mode)
    each("MirrorPadGrad", mode, input=X(6, 7),
         paddings=i32([[1, 2], [2, 1]]), mode=mode)
    each("MirrorPadGrad", mode + " of nothing", input=X(3, 0),
         paddings=i32([[1, 0], [0, 0]]), mode=mode, types=["float32"],
         fails=True)

# --- Picking ----------------------------------------------------------------

each("Gather", params=X(5, 3), indices=i32([4, 0, 0]), attr="Tparams")
for axis in (0, 1, -1):
    each("GatherV2", "axis %d" % axis, params=X(4, 5, 3),
         indices=i32([[2, 0], [1, 1]]), axis=n0(axis, "int32"),
         attr="Tparams")
each("GatherV2", "scalar", params=X(4, 5), indices=n0(3, "int64"),
     axis=n0(0, "int64"), attr="Tparams")
each("GatherV2", "nothing", params=X(4, 5), indices=i32([]),
     axis=n0(0, "int32"), attr="Tparams")
each("GatherV2", "batch", params=X(2, 4, 3), indices=i32([[0, 3], [2, 2]]),
     axis=n0(1, "int32"), batch_dims=1, attr="Tparams")
each("GatherV2", "out of range", params=X(4, 5), indices=i32([0, 4]),
     axis=n0(0, "int32"), types=["float32"], fails=True)
each("GatherV2", "negative", params=X(4, 5), indices=i32([0, -1]),
     axis=n0(0, "int32"), types=["float32"], fails=True)
each("GatherNd", params=X(4, 5, 3), indices=i32([[1, 2], [3, 4]]),
     attr="Tparams")
each("GatherNd", "whole", params=X(4, 5), indices=i64([[1, 2], [3, 4]]),
     attr="Tparams")
each("GatherNd", "out of range", params=X(4, 5), indices=i32([[1, 5]]),
     types=["float32"], fails=True)
each("ScatterNd", indices=i32([[1], [3], [1]]), updates=X(3, 2),
     shape=i32([5, 2]), types=FLOATS + ["int32", "int64", "uint8"])
each("ScatterNd", "points", indices=i64([[1, 0], [3, 1]]), updates=X(2),
     shape=i64([5, 2]), types=["float32", "int32"])
each("ScatterNd", "out of range", indices=i32([[5]]), updates=X(1, 2),
     shape=i32([5, 2]), types=["float32"], fails=True)
for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub",
           "TensorScatterMin", "TensorScatterMax"):
    each(op, tensor=X(5, 2), indices=i32([[1], [3]]), updates=X(2, 2))
    each(op, "out of range", tensor=X(5, 2), indices=i32([[5]]),
         updates=X(1, 2), types=["float32"], fails=True)
WHERE = [t for t in PLAIN if t not in ("float16", "bfloat16", "string")]
each("Where", condition=X(3, 4, zeros=0.5), types=WHERE)
each("Where", "nothing", condition=X(0, 4), types=WHERE)
each("Select", condition=b([[True, False], [False, True]]), x=X(2, 2),
     y=X(2, 2))
each("Select", "rows", condition=b(True, False), x=X(2, 3), y=X(2, 3))
each("Select", "scalar", condition=n0(False, "bool"), x=X(2, 3), y=X(2, 3))
each("Select", "shapes differ", condition=b(True), x=X(2, 3), y=X(3, 2),
     types=["float32"], fails=True)
each("SelectV2", condition=b([[True], [False]]), t=X(2, 3), e=X())
each("SelectV2", condition=n0(True, "bool"), t=X(2, 3), e=X(3))
each("OneHot", indices=i64([0, 3, -1, 2]), depth=n0(4, "int32"),
     on_value=V(1), off_value=V(0))
each("OneHot", "axis 0", indices=i32([[0, 3], [1, 2]]),
     depth=n0(4, "int32"), on_value=V(1), off_value=V(0), axis=0)
for op, extra in (("Unique", {}), ("UniqueWithCounts", {}),
                  ("UniqueV2", {"axis": i32([])}),
                  ("UniqueWithCountsV2", {"axis": i64([])})):
    arg = {"x": X(30, lo=0, hi=5, seed=3)}
    each(op, **arg, **extra)
    each(op, "64", out_idx="int64", **arg, **extra)
    each(op, "nothing", x=X(0), **extra)
each("UniqueV2", "rows", x=V([[1, 2], [3, 4], [1, 2]]), axis=i32([0]),
     types=["int32", "int64"])
each("Unique", "no vector", x=X(2, 3), types=["float32"], fails=True)
each("ListDiff", x=X(20, lo=0, hi=9, seed=5), y=X(4, lo=0, hi=9),
     types=["float32", "int32", "int64", "string", "uint8"])
for sorted_ in (True, False):
    each("TopKV2", "sorted" if sorted_ else "any order", input=X(3, 9),
         k=n0(4, "int32"), sorted=True)
each("TopKV2", "ties", input=V([1, 3, 3, 1, 3]), k=n0(2, "int32"))
each("TopKV2", "too many", input=X(3), k=n0(4, "int32"),
     types=["float32"], fails=True)
each("InTopK", predictions=X(3, 5, dtype="float32"),
     targets=i32([0, 4, 2]), k=2)
each("InTopKV2", predictions=X(3, 5, dtype="float32"),
     targets=i64([0, 4, 2]), k=n0(3, "int64"))
each("DynamicPartition", data=X(5, 2), partitions=i32([0, 2, 0, 1, 2]),
     num_partitions=4)
each("DynamicPartition", "scalars", data=X(2, 2),
     partitions=i32([[0, 1], [1, 1]]), num_partitions=2)
each("DynamicPartition", "out of range", data=X(2), partitions=i32([0, 2]),
     num_partitions=2, types=["float32"], fails=True)
for op in ("DynamicStitch", "ParallelDynamicStitch"):
    each(op, indices=[i32([0, 3]), i32([[1], [2]])],
         data=[X(2, 2), X(2, 1, 2)])
    each(op, "one", indices=[i32([1, 0])], data=[X(2)])
each("DynamicStitch", "the last wins", indices=[i32([0, 1]), i32([1])],
     data=[X(2), X(1)])

# --- Making -----------------------------------------------------------------

each("Fill", dims=i32([2, 3]), value=X())
each("Fill", "64", dims=i64([0, 3]), value=X())
each("Fill", "scalar", dims=i32([]), value=X())
each("Fill", "negative", dims=i32([-1]), value=X(), types=["float32"],
     fails=True)
each("Fill", "no scalar", dims=i32([2]), value=X(2), types=["float32"],
     fails=True)
for t in PLAIN:
    each("Empty", t, shape=i32([2, 3]), dtype=t, init=True)
each("Diag", diagonal=X(3))
each("Diag", "matrix", diagonal=X(2, 3))
each("DiagPart", input=X(3, 3))
each("MatrixDiag", diagonal=X(2, 3))
each("MatrixDiagPart", input=X(2, 3, 3))
each("MatrixSetDiag", input=X(2, 3, 4), diagonal=X(2, 3))
each("MatrixDiagV2", diagonal=X(2, 3), k=n0(0, "int32"),
     num_rows=n0(-1, "int32"), num_cols=n0(-1, "int32"), padding_value=V(0))
each("MatrixDiagV3", diagonal=X(2, 3), k=n0(1, "int32"),
     num_rows=n0(-1, "int32"), num_cols=n0(-1, "int32"), padding_value=V(0))
each("MatrixDiagPartV2", input=X(2, 3, 4), k=n0(1, "int32"),
     padding_value=V(0))
each("MatrixDiagPartV3", input=X(2, 3, 4), k=i32([-1, 1]),
     padding_value=V(0))
each("MatrixSetDiagV2", input=X(2, 3, 4), diagonal=X(2, 3),
     k=n0(0, "int32"))
each("MatrixSetDiagV3", input=X(2, 3, 4), diagonal=X(2, 3),
     k=n0(1, "int32"))
each("MatrixBandPart", input=X(2, 4, 4), num_lower=n0(1, "int64"),
     num_upper=n0(-1, "int64"))
each("PlaceholderWithDefault", input=X(2, 3), shape=[None, 3],
     attr="dtype")


@graph("Placeholder", fails=True)
def unfed(k):
    return k.raw.Placeholder(dtype="float32", shape=[])


@graph("Assert")
def holds(k):
    with k.after(k.raw.Assert(condition=k.x(n0(True, "bool")),
                              data=[k.x(f32(1))])):
        return k.x(f32(1)) + 1


@graph("Assert", fails=True)
def fails(k):
    with k.after(k.raw.Assert(
            condition=k.x(n0(False, "bool")),
            data=[k.x(f32(1, 2, 3, 4, 5)), k.x(s0("why")), k.x(i32([]))])):
        return k.x(f32(1)) + 1


assert s

# --- Space, batch and depth -------------------------------------------------



def block_op(op, label, shape, block, margin, **kw):
    """Graphs of these two are built with the number of blocks known."""
    @graph(op, label, **kw)
    def _(k, dtype):
        block_shape, name = k.x(block), "paddings" if op[0] == "S" else "crops"
        block_shape.set_shape([len(block)])
        return getattr(k.raw, op)(input=k.feed(X(*shape), dtype),
                                  block_shape=block_shape,
                                  **{name: k.x(margin)})


NONE = [[0, 0], [0, 0]]
block_op("SpaceToBatchND", "2 x 3", (2, 4, 6, 3), i32([2, 3]), i32(NONE),
         types="kernel")
block_op("SpaceToBatchND", "padded", (1, 3, 4), i64([2, 3]),
         i64([[0, 1], [1, 1]]), types=["float32", "uint8"])
block_op("SpaceToBatchND", "does not divide", (1, 3, 4), i32([2, 2]),
         i32(NONE), types=["float32"], fails=True)
block_op("BatchToSpaceND", "2 x 3", (12, 2, 2, 3), i32([2, 3]), i32(NONE),
         types="kernel")
block_op("BatchToSpaceND", "cropped", (12, 2, 2), i64([2, 3]),
         i64([[1, 0], [2, 1]]), types=["float32", "uint8"])
block_op("BatchToSpaceND", "does not divide", (5, 2, 2), i32([2, 1]),
         i32(NONE), types=["float32"], fails=True)
each("SpaceToDepth", input=X(2, 4, 6, 3), block_size=2)
each("SpaceToDepth", "does not divide", input=X(1, 3, 4, 1), block_size=2,
     types=["float32"], fails=True)
each("DepthToSpace", input=X(2, 2, 3, 8), block_size=2)
each("DepthToSpace", "does not divide", input=X(1, 3, 4, 3), block_size=2,
     types=["float32"], fails=True)

# --- Rows in place, sorted rows ---------------------------------------------


@graph("InplaceUpdate InplaceAdd InplaceSub", types=FLOATS + ["int32"])
def in_place(k, dtype):
    rows = k.x(i32([0, 2]))
    v = k.feed(X(2, 3), dtype, 1)
    # TensorFlow's write to their input: each has one of its own.
    return [op(x=k.feed(X(4, 3), dtype, 0) + v[0], i=rows, v=v)
            for op in (k.raw.InplaceUpdate, k.raw.InplaceAdd,
                       k.raw.InplaceSub)]


for op in ("LowerBound", "UpperBound"):
    each(op, sorted_inputs=V([[0, 1, 1, 3], [2, 2, 2, 2]]),
         values=V([[0, 1, 2], [1, 2, 3]]),
         types=["float32", "float64", "int32", "int64", "uint8"])
    each(op, "of nothing", sorted_inputs=X(2, 0), values=X(2, 3),
         out_type="int64", types=["float32"])
    each(op, "rows do not match", sorted_inputs=X(3, 1), values=X(2, 3),
         types=["float32"], fails=True)


@graph("Pack", "in parallel", types=["float32", "int64", "bool"])
def in_parallel(k, dtype):
    rows = [k.feed(X(1, 4), dtype, i) for i in range(3)]
    for row in rows:
        row.set_shape([1, 4])
    return k.raw.ParallelConcat(values=rows, shape=[3, 4])
