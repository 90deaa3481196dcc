"""More arithmetic: what sits between math.py and nn.py."""
from cases import FLOATS, V, X, each, f32, i32, i64, n0

# --- Rows: the greatest, the n-th ---------------------------------------------

for k in (0, 1, 3, 7):
    each("TopKV2", "k %d" % k, input=X(4, 7), k=n0(k, "int32"))
each("TopKV2", "int64 places", input=X(2, 3, 9), k=n0(4, "int64"),
     index_type="int64", types=["float32"])
each("TopKV2", "ties", input=V([1, 3, 3, 2, 3, 1]), k=n0(5, "int32"))
each("TopKV2", "k too large", input=X(2, 3), k=n0(4, "int32"),
     types=["float32"], fails=True)
each("TopKV2", "k negative", input=X(2, 3), k=n0(-1, "int32"),
     types=["float32"], fails=True)
each("TopKV2", "of a scalar", input=X(), k=n0(0, "int32"),
     types=["float32"], fails=True)
for reverse in (False, True):
    each("NthElement", input=X(4, 7), n=n0(2, "int32"), reverse=reverse)
each("NthElement", "n too large", input=X(4, 7), n=n0(7, "int32"),
     types=["float32"], fails=True)
PREDICTIONS = f32([[0.1, 0.3, 0.2, 0.4], [0.1, 0.2, 0.3, float("inf")],
                   [0.1, 0.2, 0.2, 0.2], [0.4, 0.3, 0.2, 0.1]])
for k in (1, 2, 4):
    each("InTopK", "k %d" % k, predictions=PREDICTIONS,
         targets=i32([1, 2, 3, 0]), k=k)
    each("InTopKV2", "k %d" % k, predictions=PREDICTIONS,
         targets=i64([1, 2, 3, 9]), k=n0(k, "int64"))
each("InTopK", "sizes differ", predictions=PREDICTIONS, targets=i32([1]),
     k=1, fails=True)

# --- Running sums, counts -----------------------------------------------------

for exclusive in (False, True):
    for reverse in (False, True):
        each("CumulativeLogsumexp", x=X(3, 4), axis=n0(1, "int32"),
             exclusive=exclusive, reverse=reverse)
for binary in (False, True):
    each("DenseBincount", "matrix", input=i32([[1, 2, 2], [5, 0, 0]]),
         size=n0(4, "int32"), weights=X(0), binary_output=binary,
         types=["float32", "float64", "int32", "int64"])
each("DenseBincount", "weights", input=i64([1, 2, 2, 5]),
     size=n0(7, "int64"), weights=X(4),
     types=["float32", "float64", "int32", "int64"])
each("Bincount", "negative", arr=i32([1, -2]), size=n0(4, "int32"),
     weights=X(0), types=["float32"], fails=True)

# --- Products -----------------------------------------------------------------

for t in ("float32", "float64", "int32", "complex64"):
    each("BatchMatMulV3", "of %s" % t, x=X(2, 3, 4, dtype=t),
         y=X(4, 5, dtype=t), Tout=t)
each("BatchMatMulV3", "of bytes", x=X(2, 3, 4, dtype="int8", lo=-99, hi=99),
     y=X(2, 4, 5, dtype="uint8", hi=99), Tout="int32")
each("MatMul", "several blocks", a=X(300, 70), b=X(70, 530),
     types=["float32"])
each("MatMul", "many steps", a=X(9, 900), b=X(900, 33),
     types=["float32", "float64"])
each("MatMul", "one row", a=X(1, 300), b=X(300, 400),
     types=["float32", "float64"])
each("BatchMatMulV2", "batches broadcast", x=X(2, 1, 3, 4), y=X(3, 4, 2),
     types=["float32", "complex64", "int64"])

# --- Softmax ------------------------------------------------------------------

for op in ("Softmax", "LogSoftmax"):
    each(op, "long", logits=X(3, 1031), types=["float32", "float64"])
    each(op, "three dimensions", logits=X(2, 3, 5), types=FLOATS)
    each(op, "nothing", logits=X(0, 5), types=["float32"])
    each(op, "far apart", logits=V([[1000, 0, -1000], [-3e4, 3e4, 0]]),
         types=["float32", "float64"])
for logits, labels in (((3, 5), (1, 5)), ((1, 5), (3, 5)), ((3, 1), (3, 5))):
    each("SoftmaxCrossEntropyWithLogits", features=X(*logits),
         labels=X(*labels, lo=0, hi=1), types=["float32", "float64"])
each("SoftmaxCrossEntropyWithLogits", "sizes differ", features=X(3, 5),
     labels=X(3, 4), types=["float32"], fails=True)
each("SparseSoftmaxCrossEntropyWithLogits", "no such class",
     features=X(2, 3), labels=i32([0, 3]), types=["float32"], fails=True)

# --- Ends of the element-wise ones --------------------------------------------

each("LeakyRelu", "special", features=X(9, special=True))
each("CheckNumericsV2", "both", tensor=V([float("inf"), float("-inf")]),
     message="m", types=["float32"], fails=True)
each("AddN", "many", inputs=[X(3, 5) for _ in range(19)])
each("AddN", "shapes differ", inputs=[X(2), X(3)], types=["float32"],
     fails=True)
each("BiasAdd", "of a vector", value=X(5), bias=X(5), types=["float32"],
     fails=True)
each("ClipByValue", "bounds cross", t=X(5), clip_value_min=V(2),
     clip_value_max=V(-2), types=FLOATS)
each("ClipByValue", "shapes differ", t=X(2, 3), clip_value_min=X(3),
     clip_value_max=V(1), types=["float32"], fails=True)
for op in ("UnsortedSegmentSum", "UnsortedSegmentMax"):
    each(op, "wide", data=X(9, 1500), segment_ids=i32([0, 1] * 4 + [3]),
         num_segments=n0(5, "int32"), types=["float32"])
for op in ("SegmentSum", "SegmentMean", "SegmentMax"):
    each(op, "wide", data=X(9, 1500),
         segment_ids=i32([0, 0, 0, 2, 2, 3, 3, 3, 3]), types=["float32"])
    each(op, "sizes differ", data=X(3), segment_ids=i32([0, 1]),
         types=["float32"], fails=True)
each("SparseSegmentSumGrad", "id out of range", grad=X(2, 2),
     indices=i32([0, 1]), segment_ids=i32([0, 2]), output_dim0=n0(3, "int32"),
     types=["float32"], fails=True)
each("Cross", "of two", a=X(4, 2), b=X(4, 2), types=["float32"], fails=True)
for limit in (5, 40):
    each("Range", "fractions to %d" % limit, start=V(0.5), limit=V(limit),
         delta=V(0.37), types=FLOATS, attr="Tidx")

# --- Denormals: zero on TensorFlow's threads and on ours ------------------------

TINY = V([1e-40, -1e-40, 0.0, 1.0], dtype="float32")
for op in ("Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp",
           "Ceil", "Floor"):
    each(op, "denormal", x=TINY)
for op in ("AddV2", "Mul", "RealDiv", "Maximum", "Equal", "Less", "DivNoNan",
           "Pow", "FloorMod"):
    each(op, "denormal", x=TINY, y=V([[1.0], [1e-40], [0.0]],
                                     dtype="float32"))
each("Cast", "small halfs", DstT="float32",
     x=V([6e-8, -6e-8, 5e-5, 6.1e-5], dtype="float16"))
