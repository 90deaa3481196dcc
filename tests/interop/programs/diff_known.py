"""Differences that are known: each is written down in docs/compatibility.md.

A line says which op (a pattern), which kind of difference ("value", "shape",
"dtype", or "TensorFlow's error/ours"), what must stand in the call or in the
answers (a pattern, or nothing), and the paragraph of the document.
"""
import re

UNINITIALISED = "memory that TensorFlow leaves uninitialised is zeros of ours"
UNCHECKED = "shapes that TensorFlow does not check"
INFINITE = "NaN and infinities that meet zeros of padding"
ONEDNN = "failures inside TensorFlow's oneDNN kernels"
EMPTY = "empty tensors in TensorFlow's oneDNN kernels"
MORE = "types that TensorFlow's CPU lacks"
BROKEN = "kernels that are wrong in TensorFlow"
NUL = "text that ends at a NUL for TensorFlow"
OVERFLOW = "complex numbers that overflow"
HALF = "sums and products of half that overflow on the way"
RANK = "tensors of more than 12 dimensions"
DENORMAL = "denormal numbers"
MEAN = "means of integers whose sum overflows"
CAST = "casts of numbers that their type has no room for"
NARROW = "bfloat16 that is rounded after each operation"
DEAD = "fetches of dead values, whose error its own server has as ours"
EXTREME = "special functions and quantization of extreme numbers"

KNOWN = [
    (r"SparseSegment.*Grad", "value", None, UNINITIALISED),
    (r"FusedBatchNorm.*", "value|shape", r"^output [345]", UNINITIALISED),
    (r"MaxPool.*Grad.*|Conv.*Backprop.*|Depthwise.*Backprop.*", "value",
     r"e-3\d\d|e-4\d|nan|\[0, |, 0[,\]]", UNINITIALISED),
    (r"ArgMax|ArgMin", ".*", r"int16\[\]", BROKEN),
    (r"Round", "value", r"int(32|64)\[", BROKEN),
    (r"Where", "UnimplementedError/.*", r"float16", MORE),
    (r"SparseAdd", "OK/InvalidArgumentError", r"takes a threshold of",
     UNCHECKED),
    (r"(Avg|Max)Pool.*", "OK/InvalidArgumentError", None, UNCHECKED),
    (r".*(Conv|Dilation).*", "OK/InvalidArgumentError|InvalidArgumentError/OK",
     r"Computed output size|doesn't match computed|, 0[,\]]|\[0, ",
     UNCHECKED),
    (r".*Conv.*", "value", r"nan|inf", INFINITE),
    (r".*", "AbortedError/.*", r"oneDNN|primitive|Input dims must be", ONEDNN),
    (r"ArgM.*", "InvalidArgumentError/OK", r"only support up to 7", MORE),
    (r".*Conv.*", "shape", r"\[0, |, 0[,\]]", EMPTY),
    (r"Depthwise.*Backprop.*", "value", r"dilations=\[1, [^1]", BROKEN),
    (r".*Conv.*", "OK/InvalidArgumentError", r"must be \d-dimensional",
     UNCHECKED),
    (r"Depthwise.*|Conv.*", "(Unimplemented|InvalidArgument)Error/.*",
     r"(dilations, |dilat(ed|ion) rates)", MORE),
    (r"Substr", "UnimplementedError/OK", None, MORE),
    (r".*", ".*/UnimplementedError", r"only up to 12", RANK),
    (r"StringFormat", "dtype|value", r"complex", BROKEN),
    (r"HistogramFixedWidth", "OK/InvalidArgumentError", r"inf|e\+38", EXTREME),
    (r"Erf|Erfc", "value", r"inf|e\+", EXTREME),
    (r"Sqrt|Log|Asin|Acos|Atan|Asinh|Acosh|Atanh|Pow", "value", r"[+-]0j",
     OVERFLOW),
    (r"AccumulateNV2", "NotFoundError/.*", None, MORE),
    (r"SparseBincount|SparseSoftmax|SparseDenseCwise.*",
     "OK/InvalidArgumentError", None, UNCHECKED),
    (r".*Pool.*", "UnimplementedError/InvalidArgumentError", None, UNCHECKED),
    (r"ArgM.*", "OK/InvalidArgumentError", r"922337203685477580[78]", BROKEN),
    (r"FusedBatchNorm.*", "value", r"e\+38|inf|nan", EXTREME),
    (r"NonMaxSuppression.*", "OK/.*", r"must be in \[0, 1\]", UNCHECKED),
    (r"SparseFillEmptyRows", "OK/InvalidArgumentError", None, UNCHECKED),
    (r"(Conjugate)?Transpose", "OK/InvalidArgumentError",
     r"922337203685477580[78]", BROKEN),
    (r"Resize.*|EncodePng", ".*/InvalidArgumentError",
     r"half_pixel_centers|image must not be empty", UNCHECKED),
    (r"(Max|Avg)Pool.*|MatrixSolveLs|Log.*Determinant|.*Entropy.*|"
     r"SparseSparseM.*", "value", r"inf|nan|e\+38", INFINITE),
    (r"EuclideanNorm|L2Loss|SigmoidGrad|SoftmaxCross.*", "value",
     r"float16\[", HALF),
    (r"Unique.*", "shape|value", r"-0\.0", BROKEN),
    (r"Substr", "UnimplementedError/.*", None, MORE),
    (r"I?RFFT.*", "value", r"\[0\]|, 0[,\]]|\[0, ", UNINITIALISED),
    (r"Stateless.*V2", "InvalidArgumentError/OK", r"counter must be",
     UNCHECKED),
    (r"SegmentMean", "value", r"int(32|64)\[.*\d{9}", MEAN),
    (r"SegmentM(in|ax)|MatrixSolve", "value", r"inf|nan|e\+308", INFINITE),
    (r"ResizeBilinearGrad", "OK/InvalidArgumentError", r"same batch size",
     UNCHECKED),
    (r"SetSize|.*SetOperation", "(InternalError|OK)/InvalidArgumentError",
     r"out of bounds", UNCHECKED),
    (r"SparseReduceMax.*|Softmax|AdjustHue|SigmoidGrad", "value",
     r"inf|nan|e\+38", INFINITE),
    (r"MaxPool.*", "InvalidArgumentError/UnimplementedError", None, UNCHECKED),
    (r"LRNGrad", "value", r"float16\[", HALF),
    (r"TopKV2", "OK/InvalidArgumentError", r"Need k >= 0", BROKEN),
    (r"SparseReduce.*", "(InternalError|OK)/InvalidArgumentError",
     r"write index|out of bounds", UNCHECKED),
    (r"SparseMatMul|LRN|LRNGrad", "value", r"inf|nan", INFINITE),
    (r"CumulativeLogsumexp", "value", r"nan", EXTREME),
    (r"Tile", "UnimplementedError/OK", None, MORE),
    (r"SparseSegment.*", "value", r"inf|e\+38|nan", EXTREME),
    (r"Slice", "InternalError/InvalidArgumentError", r"ndarray", BROKEN),
    (r"ShardedFile.*|AsString|.*Regex.*", "value|dtype", r"x00", NUL),
    (r"Zeta|Spence|Expint|Polygamma|Betainc|Igamma.*|Digamma|Lgamma|Bessel.*|"
     r"Erfinv|Ndtri|Fresnel.*|Dawsn", "value", None, EXTREME),
    (r".*", "value", r"complex\d+\[[^x]*(inf|nan)", OVERFLOW),
    (r".*", "value|shape", r"e-(3\d\d|4\d|39|3[89])", DENORMAL),
    (r"EncodeJpeg", "InternalError/InvalidArgumentError", r"encoding failed",
     BROKEN),
    (r"Einsum", "InvalidArgumentError/OK",
     r"mismatch rhs shape|compatible batch dimensions", UNCHECKED),
    (r"Cast", "value",
     r"(?s)(nan|inf|e\+|\d{3,}\.).*DstT=(u?int|\d)", CAST),
    (r"HSVToRGB|RGBToHSV", "value", r"bfloat16\[", NARROW),
    (r".*", "InvalidArgumentError/InternalError", r"does not have value", DEAD),
    (r"MatrixLogarithm", "value", None, "ill-conditioned matrices"),
    (r"FakeQuant.*|QuantizeAnd.*", "value", r"inf|nan|e\+38", EXTREME),
]


def known(call, kind, text, how):
    """The reason why this difference is there, or None."""
    both = call.text() + "\n" + text
    for op, kinds, needs, why in KNOWN:
        if re.fullmatch(op, call.op) and re.fullmatch(kinds, kind) and (
                needs is None or re.search(
                    needs, text if needs.startswith("^") else both)):
            return why
    return None
