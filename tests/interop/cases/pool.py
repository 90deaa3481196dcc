"""Pooling and its gradients."""
import numpy as np

from cases import FLOATS, X, each, graph, i32, i64

WIDE = ["float32", "float64"]
ODD = [("SAME", (3, 2), (2, 2)), ("VALID", (2, 2), (2, 2)),
       ("SAME", (3, 3), (1, 1)), ("VALID", (3, 2), (1, 3)),
       ("SAME", (1, 5), (3, 1)), ("SAME", (9, 9), (4, 3)),
       ("SAME", (2, 2), (3, 3))]
TOL = {"float16": 0.01, "bfloat16": 0.05}


def size(n, k, s, pad):
    return -(-n // s) if pad == "SAME" else (n - k) // s + 1


for pad, k, st in ODD:
    label = "%s %s %s" % (pad, k, st)
    y = [size(7, k[0], st[0], pad), size(6, k[1], st[1], pad)]
    win = dict(ksize=[1, *k, 1], strides=[1, *st, 1], padding=pad)
    vec = dict(ksize=i32([1, *k, 1]), strides=i32([1, *st, 1]), padding=pad)
    each("MaxPool", label, input=X(2, 7, 6, 5), **win)
    each("MaxPoolV2", label, input=X(2, 7, 6, 5), **vec)
    each("AvgPool", label, value=X(2, 7, 6, 5), tol=TOL, **win)
    if k != (9, 9):  # TensorFlow's counts are wrong beyond the image
        each("AvgPoolGrad", label, orig_input_shape=i32([2, 7, 6, 5]),
             grad=X(2, *y, 5), tol=TOL, **win)
    each("MaxPoolWithArgmax", label, input=X(2, 7, 6, 5), **win)
    each("MaxPoolWithArgmax", label + " with batch", input=X(2, 7, 6, 5),
         include_batch_in_index=True, Targmax="int32", types=WIDE, **win)
    # Few values: the same one is often there twice.
    for op, args in (("MaxPoolGrad", win), ("MaxPoolGradV2", vec)):
        each(op, label, orig_input=X(2, 7, 6, 5, lo=0, hi=3),
             orig_output=X(2, *y, 5), grad=X(2, *y, 5), tol=TOL, **args)
    for op, args in (("MaxPoolGradGrad", win), ("MaxPoolGradGradV2", vec)):
        each(op, label, orig_input=X(2, 7, 6, 5, lo=0, hi=3),
             orig_output=X(2, *y, 5, lo=1, hi=3), grad=X(2, 7, 6, 5),
             types=["float32", "float64", "int32", "uint8", "float16"],
             **args)
# Enough channels for whole vectors, and some left over.
for pad, k, st in ODD:
    label = "wide %s %s %s" % (pad, k, st)
    win = dict(ksize=[1, *k, 1], strides=[1, *st, 1], padding=pad, types=WIDE)
    each("MaxPool", label, input=X(2, 7, 17, 37), **win)
    each("AvgPool", label, value=X(2, 7, 17, 37), tol=TOL, **win)
each("MaxPool", "explicit", input=X(2, 6, 7, 3), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="EXPLICIT",
     explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0])
each("MaxPoolGrad", "explicit", orig_input=X(2, 6, 7, 3),
     orig_output=X(2, 4, 4, 3), grad=X(2, 4, 4, 3), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="EXPLICIT",
     explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0], tol=TOL)
each("MaxPool", "depth", input=X(2, 3, 4, 6), ksize=[1, 1, 1, 3],
     strides=[1, 1, 1, 3], padding="SAME")
each("MaxPool", "depth and width", input=X(2, 3, 4, 6), ksize=[1, 2, 1, 3],
     strides=[1, 1, 1, 3], padding="SAME", types=["float64"], fails=True)
each("MaxPool", "no image", input=X(0, 3, 4, 6), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME")
each("AvgPool", "no image", value=X(0, 3, 4, 6), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME")
each("MaxPool", "rank", input=X(3, 4, 6), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME", types=["float64"], fails=True)
each("AvgPool", "rank", value=X(3, 4, 6), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME", types=["float64"], fails=True)
each("MaxPool", "batch", input=X(2, 3, 4, 6), ksize=[2, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME", types=["float64"], fails=True)
each("MaxPool", "too large", input=X(2, 3, 4, 6), ksize=[1, 9, 9, 1],
     strides=[1, 2, 2, 1], padding="VALID", types=["float64"], fails=True)
each("MaxPoolGrad", "grad differs", orig_input=X(2, 6, 6, 3),
     orig_output=X(2, 3, 3, 3), grad=X(2, 3, 4, 3), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME", types=["float64"], fails=True)
each("MaxPoolGrad", "output differs", orig_input=X(2, 6, 6, 3),
     orig_output=X(2, 4, 3, 3), grad=X(2, 3, 3, 3), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="SAME", types=["float64"], fails=True)
for batch in (False, True):
    at = np.array([3, 7, 20, 1, 40, 41, 2, 23]).reshape(2, 2, 1, 2)
    at = at if batch else at % 24
    each("MaxPoolGradWithArgmax", "batch %s" % batch, input=X(2, 4, 3, 2),
         grad=X(2, 2, 1, 2), argmax=i64(at), ksize=[1, 2, 2, 1],
         strides=[1, 2, 3, 1], padding="VALID", include_batch_in_index=batch)

for pad, k, st in (("SAME", (2, 3, 2), (2, 2, 2)),
                   ("VALID", (2, 2, 2), (1, 2, 1)),
                   ("SAME", (3, 1, 3), (1, 1, 1)),
                   ("SAME", (5, 5, 5), (3, 3, 2))):
    label = "%s %s %s" % (pad, k, st)
    x = (2, 5, 6, 4, 3)
    y = [size(x[1 + i], k[i], st[i], pad) for i in range(3)]
    win = dict(ksize=[1, *k, 1], strides=[1, *st, 1], padding=pad)
    each("MaxPool3D", label, input=X(*x), **win)
    each("AvgPool3D", label, input=X(*x), tol=TOL, **win)
    each("MaxPool3DGrad", label, orig_input=X(*x, lo=0, hi=3, dtype="float32"),
         orig_output=X(2, *y, 3, lo=1, hi=3, dtype="float32"),
         grad=X(2, *y, 3, dtype="float32"), **win)
    each("MaxPool3DGradGrad", label, orig_input=X(*x, lo=0, hi=3),
         orig_output=X(2, *y, 3, lo=1, hi=3), grad=X(*x), **win)
    each("AvgPool3DGrad", label, orig_input_shape=i32(list(x)),
         grad=X(2, *y, 3), tol=TOL, **win)

for pseudo in (False, True):
    for over in (False, True):
        label = "pseudo %s overlapping %s" % (pseudo, over)
        for op in ("FractionalMaxPool", "FractionalAvgPool"):
            each(op, label, value=X(2, 11, 13, 3),
                 pooling_ratio=[1.0, 1.44, 1.73, 1.0], pseudo_random=pseudo,
                 overlapping=over, deterministic=True, seed=17, seed2=4)
        cuts = dict(row_pooling_sequence=i64([0, 1, 3, 5, 6]),
                    col_pooling_sequence=i64([0, 2, 3, 5]))
        each("FractionalAvgPoolGrad", label,
             orig_input_tensor_shape=i64([2, 6, 5, 3]),
             out_backprop=X(2, 4, 3, 3), overlapping=over,
             types=["float32", "float64", "int32"], **cuts)
each("FractionalMaxPoolGrad", "not its output", orig_input=X(2, 6, 5, 3),
     orig_output=X(2, 4, 3, 3), out_backprop=X(2, 4, 3, 3), fails=True,
     types=["float32"], **cuts)


@graph("FractionalMaxPoolGrad", types="kernel")
def grad(k, dtype):
    x = k.feed(X(2, 11, 13, 3, lo=0, hi=5), dtype, 0)
    y = k.raw.FractionalMaxPool(value=x, pooling_ratio=[1.0, 1.44, 1.73, 1.0],
                                overlapping=True, deterministic=True, seed=3)
    return k.raw.FractionalMaxPoolGrad(
        orig_input=x, orig_output=y[0],
        out_backprop=k.feed(X(2, 7, 7, 3), dtype, 1),
        row_pooling_sequence=y[1], col_pooling_sequence=y[2],
        overlapping=True)


assert FLOATS
