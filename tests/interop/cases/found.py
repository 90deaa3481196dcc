"""What random graphs (diff.py) found to differ once."""
import numpy as np

from cases import each, f32, i32, i64, s, scalar

INF = np.inf

each("TruncateDiv", "shapes before zeros", fails=True,
     x=np.zeros((2, 1), np.uint32), y=np.array([[1], [0], [1]], np.uint32))
each("ScatterNd", "one vector of indices", fails=True,
     indices=i64(0), updates=i64(3, 1, 4), shape=i64(3, 3))
each("TensorScatterUpdate", "indices of no depth", fails=True,
     tensor=f32(1, 2, 3), indices=np.zeros((0, 0), np.int32),
     updates=np.zeros((0, 3), np.float32))
each("StringLower", "encoding in capitals", fails=True, input=s("A"),
     encoding="UTF-8")
each("StringUpper", "a NUL ends it", input=s(b"a\0b", b"c"),
     encoding="utf-8")
each("StatelessRandomUniformV2", "nothing by an unknown algorithm",
     shape=i32([0]), key=np.array([1], np.uint64),
     counter=np.array([1, 2], np.uint64), alg=scalar(2, np.int32))
each("ReverseV2", "empty, any axis", tensor=np.zeros((0, 2), np.float32),
     axis=i32([-4]))
each("ReverseV2", "no axes in a matrix", fails=True, tensor=f32(1, 2),
     axis=np.zeros((2, 0), np.int32))
each("Igamma", "at zero", a=f32(-1, 0, 2), x=f32(0, 0, 0))
each("QuantizeAndDequantizeV3", "scalar", fails=True,
     input=scalar(1, np.float32), input_min=scalar(0, np.float32),
     input_max=scalar(2, np.float32), num_bits=scalar(8, np.int32))
each("SparseSparseMinimum", "index outside", fails=True,
     a_indices=np.array([[7]]), a_values=f32([1]), a_shape=i64([2]),
     b_indices=np.array([[0]]), b_values=f32([1]), b_shape=i64([2]))
each("SparseSparseMinimum", "nan and nothing",
     a_indices=np.array([[0]]), a_values=f32([np.nan]), a_shape=i64([2]),
     b_indices=np.array([[1]]), b_values=f32([np.nan]), b_shape=i64([2]))
each("SparseReshape", "elements of nothing", fails=True,
     input_indices=np.array([[0, 0]]), input_shape=i64(0, 1),
     new_shape=i64([-1]))
each("SparseReshape", "to the same shape", input_indices=np.array([[0]]),
     input_shape=i64([0]), new_shape=i64([-1]))
each("MaxPoolWithArgmax", "empty", fails=True,
     input=np.zeros((0, 1, 1, 2), np.float32), ksize=[1, 1, 1, 1],
     strides=[1, 1, 1, 1], padding="SAME")
each("LinSpace", "overflow", start=scalar(3e38, np.float32),
     stop=scalar(-3e38, np.float32), num=scalar(6, np.int32))
for op in ("InvGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad"):
    each(op, "no gradient of infinity", y=f32(INF, 0, 1), dy=f32(0, 0, 0))
each("AsString", "notation of text", input=s("abc"), shortest=True)
each("AsString", "part of a text", input=s("abcdef", "a", ""), precision=3,
     width=5)
each("UnsortedSegmentJoin", "an empty beginning", inputs=s("", "b", "c", ""),
     segment_ids=i32(0, 0, 1, 1), num_segments=scalar(2, np.int32),
     separator=",")
each("StringFormat", "no truth values", inputs=[np.zeros((0,), np.bool_)],
     template="a{}b", placeholder="{}")
each("TensorStridedSliceUpdate", "of nothing", input=f32(1, 2, 3),
     begin=i32([2]), end=i32([1]), strides=i32([1]), value=f32(1, 2))
each("TensorScatterUpdate", "nothing by indices of no depth",
     indices=np.zeros((0,), "int64"),
     tensor=np.zeros((0, 1), np.float32), updates=np.zeros((0, 1), np.float32))
each("RsqrtGrad", "what overflows last",
     y=np.array([-65504, 65504, 300], np.float16),
     dy=np.array([6e-8, 6e-8, 1.2e-7], np.float16))
