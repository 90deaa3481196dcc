"""Element-wise ops, reductions, matrix products, casts."""
from cases import (COMPLEX, FLOATS, PLAIN, SIGNED, UNSIGNED, V, X, b, binary,
                   each, f32, graph, i32, i64, n0, reduction, s, unary)

# --- Element-wise, one input ------------------------------------------------

unary("Abs Neg Sign Square Floor Ceil Rint")
unary("Round", types=FLOATS)  # TensorFlow rounds integers to 0
unary("Exp Expm1 Sin Cos Tanh Sigmoid Erfc Sinh Cosh Atan Asinh Tan")
unary("Erf", special=False)  # TensorFlow's erf(inf) is NaN for double
unary("Sqrt Rsqrt Log Log1p Lgamma", lo=0.01, hi=9)
unary("Digamma", lo=0.3, hi=9, special=False)
unary("Reciprocal Inv", lo=1, hi=9)
unary("Acosh", lo=1, hi=9)
unary("Asin Acos Atanh", lo=-0.99, hi=0.99)
unary("IsNan IsInf IsFinite")
unary("Conj", arg="input")
unary("LogicalNot Invert PopulationCount", special=False)
unary("Relu Relu6 Elu Selu Softplus Softsign", arg="features")
unary("BesselI0e BesselI1e", special=False)
each("ComplexAbs", x=X(3, 5, dtype="complex64"))
each("ComplexAbs", x=X(3, 5, dtype="complex128"), Tout="float64")
for t, out in (("complex64", "float32"), ("complex128", "float64")):
    for op in ("Real", "Imag", "Angle"):
        each(op, input=X(3, 5, dtype=t), Tout=out)
    each("Complex", real=X(2, 3, dtype=out), imag=X(3, dtype=out), Tout=t)

# --- Element-wise, two inputs -----------------------------------------------

binary("Add AddV2 Sub Mul Maximum Minimum SquaredDifference")
binary("MulNoNan")
binary("RealDiv DivNoNan Xdivy", ylo=1, yhi=5)
each("DivNoNan", "by zero", x=X(6), y=V([0, 1, 0, 2, 0, 0]))
each("MulNoNan", "by zero", x=X(6, special=True), y=V([0, 0, 0, 0, 1, 2]))
binary("Div FloorDiv TruncateDiv", lo=-9, hi=9, ylo=1, yhi=5)
binary("FloorMod TruncateMod Mod", lo=-9, hi=9, ylo=1, yhi=5)
for op in ("Div", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod"):
    each(op, "negative", x=V([7, -7, 7, -7, 0]), y=V([3, 3, -3, -3, 2]),
         types=["int8", "int16", "int32", "int64", "float32", "float64"]
         if op not in ("TruncateDiv", "TruncateMod") else ["int32", "int64"])
    if not op.startswith("Truncate"):  # TensorFlow's error is a slip there
        each(op, "by zero", x=V([1, 2]), y=V([1, 0]),
             types=["int32", "int64"], fails=True)
binary("Pow", lo=0.1, hi=3, ylo=0, yhi=3)
each("Pow", "negative exponent", x=V([2, 3]), y=V([1, -1]),
     types=["int32", "int64"], fails=True)
binary("Xlogy Xlog1py", lo=0.1, hi=5, special=False)
binary("Atan2", special=False, x="y", y="x")
binary("Equal NotEqual", mismatch=False)
for op in ("Equal", "NotEqual"):
    each(op, "shapes do not fit", x=X(2, 3), y=X(2, 4), types=["float32"],
         fails=True)
    each(op, "shapes do not fit, no error", x=X(2, 3), y=X(2, 4),
         types=["float32"], incompatible_shape_error=False)
binary("Less LessEqual Greater GreaterEqual")
binary("LogicalAnd LogicalOr", types=["bool"], special=False)
binary("BitwiseAnd BitwiseOr BitwiseXor", special=False, lo=-100, hi=100)
binary("LeftShift RightShift", special=False, lo=-100, hi=100, ylo=0, yhi=7)
binary("NextAfter", x="x1", y="x2")
each("ApproximateEqual", x=V([1, 2, 3]), y=V([1, 2.5, 3]), tolerance=0.1)
each("ApproximateEqual", "shapes differ", x=X(2), y=X(), types=["float32"],
     fails=True)
binary("Zeta", x="x", y="q", lo=1.5, hi=4, ylo=0.5, yhi=4, special=False)
binary("Polygamma", x="a", y="x", lo=1, hi=1, ylo=1, yhi=4, special=False)
binary("Igamma Igammac", x="a", y="x", lo=0.5, hi=4, special=False)
each("AddN", inputs=[X(2, 3), X(2, 3), X(2, 3)])
each("AddN", inputs=[X()])
each("AddN", "nothing", inputs=[X(0, 2), X(0, 2)])
each("ClipByValue", t=X(3, 4), clip_value_min=V(-1), clip_value_max=V(2))
each("ClipByValue", "by tensors", t=X(3, 4), clip_value_min=X(3, 4, hi=0),
     clip_value_max=X(3, 4, lo=1))
each("CheckNumerics", tensor=X(3, 4), message="m")
each("CheckNumerics", "NaN", tensor=V([1.0, float("nan")]), message="m",
     types=["float32", "float64"], fails=True)
each("CheckNumerics", "infinity", tensor=V([1.0, float("inf")]),
     message="m", types=["float32"], fails=True)
each("CheckNumericsV2", tensor=X(3, 4), message="m")

# Gradients of element-wise ops.
for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad",
           "ReciprocalGrad", "InvGrad"):
    each(op, y=X(3, 5, lo=0.1, hi=4), dy=X(3, 5))
    each(op, y=X(lo=1), dy=X())
for op, second in (("ReluGrad", "features"), ("Relu6Grad", "features"),
                   ("SoftplusGrad", "features"),
                   ("SoftsignGrad", "features"), ("EluGrad", "outputs"),
                   ("SeluGrad", "outputs")):
    each(op, **{"gradients": X(3, 5), second: X(3, 5, zeros=0.2)})
each("LeakyRelu", features=X(3, 5), alpha=0.1)
each("LeakyReluGrad", gradients=X(3, 5), features=X(3, 5))

# --- Reductions -------------------------------------------------------------

reduction("Sum Max Min Mean EuclideanNorm")
reduction("Prod", lo=-1, hi=1)
reduction("All Any", types=["bool"])
for op in ("Max", "Min"):
    each(op, "NaN", input=X(2, 8, special=True), axis=i32(1), types=FLOATS)
each("Mean", "of nothing", input=X(0, 3), axis=i32(0), types=FLOATS)
each("Sum", "twice the same axis", input=X(2, 3), axis=i32([0, 0]),
     types=["float32"], fails=True)
for op in ("ArgMax", "ArgMin"):
    for axis in (0, 1, -1):
        each(op, "axis %d" % axis, input=X(3, 4, 2),
             dimension=n0(axis, "int32"))
    each(op, "int32", input=X(3, 4), dimension=n0(1, "int64"),
         output_type="int32")
    each(op, "no such axis", input=X(3, 4), dimension=n0(2, "int32"),
         types=["float32"], fails=True)
    each(op, "of nothing", input=X(3, 0), dimension=n0(1, "int32"),
         types=["float32"], fails=True)
for op in ("Cumsum", "Cumprod"):
    for axis in (0, 1, -1):
        for exclusive in (False, True):
            for reverse in (False, True):
                each(op, "axis %d%s%s" % (axis, " exclusive" * exclusive,
                                          " reverse" * reverse),
                     x=X(3, 4, lo=-2, hi=2), axis=n0(axis, "int32"),
                     exclusive=exclusive, reverse=reverse)
    each(op, "no such axis", x=X(3), axis=n0(1, "int32"), types=["float32"],
         fails=True)
each("L2Loss", t=X(3, 5))
each("L2Loss", t=X(0))
each("Bincount", arr=i32([1, 2, 2, 5]), size=n0(7, "int32"), weights=X(0))
each("Bincount", "weights", arr=i32([1, 2, 2, 5]), size=n0(4, "int32"),
     weights=X(4))
each("HistogramFixedWidth", values=X(20), value_range=V([-2, 2]),
     nbins=n0(5, "int32"))
for bins in (3, 7, 10, 49):
    each("HistogramFixedWidth", "on the edges of %d" % bins,
         values=V([0.1 + i / bins for i in range(-1, bins + 2)]),
         value_range=V([0.1, 1.1]), nbins=n0(bins, "int32"),
         types=["float32", "float64"])
each("HistogramFixedWidth", "far apart", values=V([-(1 << 31), 0, 2147483647]),
     value_range=V([-(1 << 30), 1 << 30]), nbins=n0(4, "int32"),
     types=["int32", "int64"])

# --- Segments ---------------------------------------------------------------

for op in ("SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin",
           "SegmentMean"):
    each(op, data=X(5, 3), segment_ids=i32([0, 0, 2, 3, 3]))
    each(op, data=X(4), segment_ids=i64([0, 1, 1, 1]))
    each(op, "not sorted", data=X(3), segment_ids=i32([0, 2, 1]),
         types=["float32"], fails=True)
for op in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax",
           "UnsortedSegmentMin"):
    each(op, data=X(5, 3), segment_ids=i32([2, 0, 2, 3, 0]),
         num_segments=n0(5, "int32"))
    each(op, "matrix of ids", data=X(2, 3, 2),
         segment_ids=i64([[0, 1, 0], [1, 1, 3]]),
         num_segments=n0(4, "int64"))
    each(op, "negative ids are dropped", data=X(3, 2),
         segment_ids=i32([-1, 0, 0]), num_segments=n0(1, "int32"))
    each(op, "id out of range", data=X(3, 2), segment_ids=i32([0, 1, 2]),
         num_segments=n0(2, "int32"), types=["float32"], fails=True)
    each(op, "nothing", data=X(0, 2), segment_ids=i32([]),
         num_segments=n0(2, "int32"))
for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    each(op, data=X(5, 3), indices=i32([4, 0, 0, 2]),
         segment_ids=i32([0, 0, 1, 2]))
    each(op + "WithNumSegments", data=X(5, 3), indices=i32([4, 0, 0, 2]),
         segment_ids=i32([0, 0, 1, 3]), num_segments=n0(6, "int32"))
    each(op, "index out of range", data=X(5, 3), indices=i32([4, 5]),
         segment_ids=i32([0, 0]), types=["float32"], fails=True)
for op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad",
           "SparseSegmentSumGrad"):
    each(op, grad=X(3, 2), indices=i32([4, 0, 0, 2]),
         segment_ids=i32([0, 0, 1, 2]), output_dim0=n0(5, "int32"))

# --- Matrices ---------------------------------------------------------------

for ta in (False, True):
    for tb in (False, True):
        flags = {"transpose_a": ta, "transpose_b": tb}
        each("MatMul", a=X(*((7, 5) if ta else (5, 7))),
             b=X(*((3, 7) if tb else (7, 3))), **flags)
        adj = {"adj_x": ta, "adj_y": tb}
        for op in ("BatchMatMul", "BatchMatMulV2"):
            each(op, x=X(*((2, 3, 4) if ta else (2, 4, 3))),
                 y=X(*((2, 5, 3) if tb else (2, 3, 5))), **adj)
        each("BatchMatMulV2", x=X(4, 1, *((3, 4) if ta else (4, 3))),
             y=X(2, *((5, 3) if tb else (3, 5))), **adj)
each("MatMul", "large", a=X(67, 129), b=X(129, 43),
     types=["float32", "float64"])
each("MatMul", "nothing to sum", a=X(2, 0), b=X(0, 3))
each("MatMul", "nothing", a=X(0, 2), b=X(2, 3))
each("MatMul", "sizes do not fit", a=X(2, 3), b=X(4, 3), types=["float32"],
     fails=True)
each("BatchMatMulV2", "sizes do not fit", x=X(2, 2, 3), y=X(3, 3, 2),
     types=["float32"], fails=True)
for ta in (False, True):
    each("SparseMatMul", a=X(*((3, 4) if ta else (4, 3)), zeros=0.7,
                             dtype="float32"),
         b=X(3, 5, dtype="float32"), transpose_a=ta, a_is_sparse=True)
each("Cross", a=X(4, 3), b=X(4, 3))

# --- Types ------------------------------------------------------------------

NUMBERS = FLOATS + SIGNED + UNSIGNED + COMPLEX + ["bool"]
for source in NUMBERS:
    for target in NUMBERS:
        each("Cast", "%s to %s" % (source, target),
             x=X(3, 4, dtype=source, lo=0 if target in UNSIGNED else -4),
             DstT=target)
each("Cast", "truncating", x=V([1.0000001, 3.14159, -2.71828, 65519.0]),
     DstT="bfloat16", Truncate=True, types=["float32"])
each("Cast", "large floats", x=V([3e9, -3e9, 1e20, 255.9, -1.5, 0.0]),
     DstT="int64", types=["float32", "float64"])
for source, target, n in (
        ("float32", "int32", 4), ("float64", "int32", 4),
        ("int32", "float32", 4), ("uint8", "int32", 4),
        ("float32", "uint8", 3), ("int64", "complex64", 3)):
    each("Bitcast", "%s as %s" % (source, target),
         input=X(3, n, dtype=source, lo=1, hi=9), type=target)
each("Bitcast", "does not fit", input=X(3, 3, dtype="uint8"), type="int32",
     fails=True)
for adj in (False, True):
    each("BatchMatMulV3", x=X(2, 4, 3), y=X(3, 5) if not adj else X(5, 3),
         adj_y=adj, attr="Ta", Tout="T", types=["float32", "float64",
                                                "int32"])
each("Range", start=V(2), limit=V(11), delta=V(3),
     types=["float32", "float64", "int32", "int64", "float16", "bfloat16"],
     attr="Tidx")
each("Range", "down", start=V(7), limit=V(1), delta=V(-2),
     types=["float32", "int32"])
each("Range", "nothing", start=V(7), limit=V(7), delta=V(1),
     types=["float32", "int32"])
each("Range", "step 0", start=V(7), limit=V(9), delta=V(0), types=["int32"],
     fails=True)
each("Range", "wrong way", start=V(9), limit=V(7), delta=V(1),
     types=["int32"], fails=True)
each("LinSpace", start=V(1), stop=V(5), num=n0(7, "int32"))
each("LinSpace", start=V(1), stop=V(5), num=n0(1, "int32"))
each("LinSpace", "num 0", start=V(1), stop=V(5), num=n0(0, "int32"),
     types=["float32"], fails=True)


@graph("Sum", "of bool indices int64", types=["int64"])
def _(k, dtype):
    return k.raw.Sum(input=k.x(X(4, 5), dtype), axis=k.x(i64([0, 1])))


assert b and f32 and s and PLAIN
