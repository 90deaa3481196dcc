"""Sparse tensors: indices, values and the dense shape as three tensors."""
from cases import X, each, i32, i64, n0

AT = i64([[0, 0], [0, 2], [1, 1], [3, 0]])  # of a [4, 3]
MIXED = i64([[3, 0], [0, 2], [0, 0], [1, 1]])
SHAPE = i64([4, 3])
FEW = ["float32", "int64", "string", "bool"]

each("SparseToDense", sparse_indices=AT, output_shape=SHAPE,
     sparse_values=X(4), default_value=X())
each("SparseToDense", "one value", sparse_indices=i32([1, 3]),
     output_shape=i32([5]), sparse_values=X(), default_value=X(), types=FEW)
each("SparseToDense", "a scalar index", sparse_indices=n0(2, "int32"),
     output_shape=i32([5]), sparse_values=X(), default_value=X(), types=FEW)
each("SparseToDense", "nothing", sparse_indices=i64([[0, 0]])[:0],
     output_shape=SHAPE, sparse_values=X(0), default_value=X(), types=FEW)
each("SparseToDense", "unchecked", sparse_indices=MIXED, output_shape=SHAPE,
     sparse_values=X(4), default_value=X(), validate_indices=False,
     types=FEW)
for label, at in (("out of order", MIXED), ("twice", i64([[0, 0]] * 4)),
                  ("outside", AT + i64([[0, 0]] * 3 + [[1, 0]])),
                  ("negative", AT - i64([[1, 0]] + [[0, 0]] * 3))):
    each("SparseToDense", label, sparse_indices=at, output_shape=SHAPE,
         sparse_values=X(4), default_value=X(), types=["float32"],
         fails=True)
each("SparseToDense", "unchecked and outside", sparse_indices=AT,
     output_shape=i64([3, 3]), sparse_values=X(4), default_value=X(),
     validate_indices=False, types=["float32"], fails=True)
each("SparseToDense", "too few values", sparse_indices=AT,
     output_shape=SHAPE, sparse_values=X(3), default_value=X(),
     types=["float32"], fails=True)

NUMBERS = ["float32", "float64", "int32", "complex64", "complex128",
           "float16", "bfloat16"]
for a, b in ((False, False), (True, False), (False, True), (True, True)):
    each("SparseTensorDenseMatMul", "adjoint %d %d" % (a, b), a_indices=AT,
         a_values=X(4), a_shape=SHAPE,
         b=X(*((5, 4) if b else (4, 5)) if a else ((5, 3) if b else (3, 5))),
         adjoint_a=a, adjoint_b=b, types=NUMBERS)
each("SparseTensorDenseMatMul", "int32 indices", a_indices=AT.astype("int32"),
     a_values=X(4), a_shape=SHAPE, b=X(3, 40), types=["float32"])
each("SparseTensorDenseMatMul", "outside", a_indices=AT, a_values=X(4),
     a_shape=i64([3, 3]), b=X(3, 2), types=["float32"], fails=True)
each("SparseTensorDenseMatMul", "sizes do not fit", a_indices=AT,
     a_values=X(4), a_shape=SHAPE, b=X(4, 2), types=["float32"], fails=True)

each("SparseReorder", input_indices=MIXED, input_values=X(4),
     input_shape=SHAPE)
each("SparseReorder", "nothing", input_indices=MIXED[:0], input_values=X(0),
     input_shape=SHAPE, types=FEW)
each("SparseReorder", "too few values", input_indices=MIXED,
     input_values=X(3), input_shape=SHAPE, types=["float32"], fails=True)

for want in ([12], [2, 6], [-1, 2], [2, -1, 3], [4, 3], [1, 12, 1]):
    each("SparseReshape", "to %s" % want, input_indices=AT,
         input_shape=SHAPE, new_shape=i64(want))
each("SparseReshape", "of nothing", input_indices=AT[:0],
     input_shape=i64([0, 3]), new_shape=i64([5, 0]))
for want in ([11], [-1, -1], [-1, 5], [-2, 6], [0, -1]):
    each("SparseReshape", "to %s" % want, input_indices=AT,
         input_shape=SHAPE, new_shape=i64(want), fails=True)

each("SparseFillEmptyRows", indices=AT, values=X(4), dense_shape=SHAPE,
     default_value=X())
each("SparseFillEmptyRows", "out of order", indices=MIXED, values=X(4),
     dense_shape=i64([6, 3]), default_value=X(), types=FEW)
each("SparseFillEmptyRows", "all empty", indices=AT[:0], values=X(0),
     dense_shape=SHAPE, default_value=X(), types=FEW)
each("SparseFillEmptyRows", "no rows", indices=AT[:0], values=X(0),
     dense_shape=i64([0, 3]), default_value=X(), types=FEW)
each("SparseFillEmptyRows", "outside", indices=AT, values=X(4),
     dense_shape=i64([2, 3]), default_value=X(), types=["float32"],
     fails=True)
each("SparseFillEmptyRowsGrad", reverse_index_map=i64([0, 1, 4]),
     grad_values=X(6))
each("SparseFillEmptyRowsGrad", "outside", reverse_index_map=i64([0, 6]),
     grad_values=X(6), types=["float32"], fails=True)

each("SparseSlice", indices=AT, values=X(4), shape=SHAPE,
     start=i64([0, 1]), size=i64([2, 2]))
each("SparseSlice", "past the end", indices=AT, values=X(4), shape=SHAPE,
     start=i64([1, 0]), size=i64([9, 9]), types=FEW)
each("SparseSlice", "beside it", indices=AT, values=X(4), shape=SHAPE,
     start=i64([7, 0]), size=i64([1, 1]), types=FEW)
each("SparseSlice", "too short", indices=AT, values=X(4), shape=SHAPE,
     start=i64([0]), size=i64([1, 1]), types=["float32"], fails=True)

for axis in (0, 1, -1):
    each("SparseConcat", "axis %d" % axis, indices=[AT, MIXED],
         values=[X(4), X(4)], shapes=[SHAPE, SHAPE], concat_dim=axis)
each("SparseConcat", "no such axis", indices=[AT, AT], values=[X(4), X(4)],
     shapes=[SHAPE, SHAPE], concat_dim=2, types=["float32"], fails=True)
each("SparseConcat", "shapes do not fit", indices=[AT, AT],
     values=[X(4), X(4)], shapes=[SHAPE, i64([4, 4])], concat_dim=0,
     types=["float32"], fails=True)

for axis, n in ((0, 2), (0, 3), (1, 2), (1, 3), (0, 1)):
    each("SparseSplit", "%d of axis %d" % (n, axis),
         split_dim=n0(axis, "int64"), indices=AT, values=X(4), shape=SHAPE, num_split=n,
         types=FEW if axis else None)
each("SparseSplit", "too many", split_dim=n0(1, "int64"), indices=AT,
     values=X(4), shape=SHAPE, num_split=4, types=["float32"], fails=True)
each("SparseSplit", "outside", split_dim=n0(0, "int64"), indices=AT, values=X(4),
     shape=i64([3, 3]), num_split=2, types=["float32"], fails=True)
