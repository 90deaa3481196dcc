"""Counts of ragged and sparse rows."""
from cases import X, each, i32, i64, n0

AT = i64([[0, 0], [0, 2], [1, 1], [3, 0]])
for kind in (i32, i64):
    size = kind(4)[0].reshape(())
    for binary in (False, True):
        for weights in (X(4), X(0)):
            label = "%s %s %d" % (kind([0]).dtype, binary, weights.shape[0])
            each("RaggedBincount", label, splits=i64([0, 2, 2, 4]),
                 values=kind([1, 1, 3, 7]), size=size, weights=weights,
                 binary_output=binary)
            each("SparseBincount", label, indices=AT,
                 values=kind([1, 1, 3, 7]), dense_shape=i64([4, 3]),
                 size=size, weights=weights, binary_output=binary)
            each("SparseBincount", label + " flat", indices=AT[:, :1],
                 values=kind([1, 1, 3, 7]), dense_shape=i64([4]),
                 size=size, weights=weights, binary_output=binary)
each("RaggedBincount", "below 0", splits=i64([0, 2, 2, 4]),
     values=i32([1, -1, 3, 7]), size=n0(4, "int32"), weights=X(0),
     types=["float32"], fails=True)
each("RaggedBincount", "first", splits=i64([1, 2, 2, 4]),
     values=i32([1, 1, 3, 7]), size=n0(4, "int32"), weights=X(0),
     types=["float32"], fails=True)
each("RaggedBincount", "last", splits=i64([0, 2, 2, 5]),
     values=i32([1, 1, 3, 7]), size=n0(4, "int32"), weights=X(0),
     types=["float32"], fails=True)
