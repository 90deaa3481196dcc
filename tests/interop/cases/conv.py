"""Convolutions and their gradients: every padding, stride, dilation, format.

TensorFlow's 16-bit sums lose digits along the way; ours are kept in float.
"""
from cases import FLOATS, X, covered, each, i32, i64

WIDE = ["float32", "float64"]
TOL = {"float16": 0.05, "bfloat16": 0.2, "float32": 1e-4}


def out_size(n, k, s, d, pad, i=0):
    reach = (k - 1) * d + 1
    if pad == "SAME":
        return -(-n // s)
    if pad == "VALID":
        return (n - reach) // s + 1
    return (n + sum(pad[i]) - reach) // s + 1


def conv2(label, x, w, stride=(1, 1), dilation=(1, 1), pad="SAME",
          types=None):
    """The op and both gradients."""
    y = [x[0]] + [out_size(x[1 + i], w[i], stride[i], dilation[i], pad, i)
               for i in range(2)] + [w[3]]

    attrs = dict(strides=[1, *stride, 1], dilations=[1, *dilation, 1],
                 padding=pad if isinstance(pad, str) else "EXPLICIT", tol=TOL)
    if not isinstance(pad, str):
        attrs["explicit_paddings"] = [0, 0, *pad[0], *pad[1], 0, 0]
    kw = dict(attrs, types=types or FLOATS)
    each("Conv2D", label, input=X(*x, lo=-1, hi=1),
         filter=X(*w, lo=-1, hi=1), **kw)
    if dilation != (1, 1) or w[2] != x[3]:
        return  # TensorFlow has it with oneDNN only; see conv_test.c
    each("Conv2DBackpropInput", label, input_sizes=i32(list(x)),
         filter=X(*w, lo=-1, hi=1), out_backprop=X(*y, lo=-1, hi=1),
         **kw)
    each("Conv2DBackpropFilter", label, input=X(*x, lo=-1, hi=1),
         filter_sizes=i32(list(w)), out_backprop=X(*y, lo=-1, hi=1),
         **kw)


for pad in ("SAME", "VALID", ((1, 2), (0, 1))):
    name = pad if isinstance(pad, str) else "EXPLICIT"
    for stride in ((1, 1), (2, 2), (1, 3), (3, 2)):
        conv2("%s %s" % (name, stride), (2, 7, 9, 3), (3, 3, 3, 5), stride,
              pad=pad, types=WIDE if stride != (2, 2) else None)
    conv2("%s dilated" % name, (2, 9, 8, 3), (3, 2, 3, 4), (1, 1), (2, 3),
          pad=pad, types=WIDE)
    conv2("%s one wide" % name, (1, 6, 1, 2), (3, 1, 2, 3), (1, 1), pad=pad,
          types=WIDE)
conv2("1x1", (2, 5, 4, 6), (1, 1, 6, 7))
conv2("1x1 strided", (2, 5, 4, 6), (1, 1, 6, 7), (2, 2), types=WIDE)
conv2("whole image", (5, 4, 4, 3), (4, 4, 3, 6), pad="VALID", types=WIDE)
conv2("stride beyond the filter", (2, 9, 9, 2), (2, 2, 2, 3), (3, 4),
      types=WIDE)
conv2("groups", (2, 5, 6, 6), (3, 3, 2, 9), types=["float32"])
conv2("many channels", (1, 5, 5, 70), (3, 3, 70, 40), types=WIDE)
conv2("one channel", (3, 12, 12, 1), (5, 5, 1, 33), types=WIDE)
conv2("wide", (2, 40, 50, 16), (3, 3, 16, 32), types=["float32"])
conv2("a filter in parts", (2, 5, 5, 257), (3, 3, 257, 60), types=["float32"])
conv2("many images", (19, 5, 17, 24), (3, 3, 24, 20), types=["float32"])
conv2("no image", (0, 5, 6, 3), (3, 3, 3, 4), types=WIDE)
conv2("even filter", (2, 6, 6, 3), (4, 2, 3, 4), (2, 2), types=WIDE)
for stride in (1, 2):
    each("Conv2D", "int32 %d" % stride, input=X(2, 5, 6, 3),
         filter=X(2, 3, 3, 4), strides=[1, stride, stride, 1],
         padding="SAME", types=["int32"])
each("Conv2DBackpropInput", "two sizes", input_sizes=i32([7, 8]),
     filter=X(3, 3, 3, 4), out_backprop=X(2, 7, 8, 4), strides=[1, 1, 1, 1],
     padding="SAME", types=WIDE, tol=TOL)
each("Conv2D", "depths differ", input=X(2, 5, 5, 4), filter=X(3, 3, 3, 4),
     strides=[1, 1, 1, 1], padding="SAME", types=["float64"], fails=True)
each("Conv2D", "rank", input=X(2, 5, 5), filter=X(3, 3, 5, 4),
     strides=[1, 1, 1, 1], padding="SAME", types=["float64"], fails=True)
each("Conv2D", "filter too large", input=X(2, 2, 2, 3), filter=X(5, 5, 3, 4),
     strides=[1, 1, 1, 1], padding="VALID", types=["float64"], fails=True)
each("Conv2DBackpropInput", "sizes differ", input_sizes=i32([2, 8, 8, 3]),
     filter=X(3, 3, 3, 4), out_backprop=X(2, 7, 8, 4), strides=[1, 1, 1, 1],
     padding="SAME", types=["float64"], fails=True)
each("Conv2DBackpropInput", "sizes of rank 2",
     input_sizes=i32([[2, 8, 8, 3]]), filter=X(3, 3, 3, 4),
     out_backprop=X(2, 8, 8, 4), strides=[1, 1, 1, 1], padding="SAME",
     types=["float64"], fails=True)
each("Conv2DBackpropFilter", "batches differ", input=X(3, 8, 8, 3),
     filter_sizes=i32([3, 3, 3, 4]), out_backprop=X(2, 8, 8, 4),
     strides=[1, 1, 1, 1], padding="SAME", types=["float64"], fails=True)


def conv3(label, x, w, stride=(1, 1, 1), pad="SAME", types=None):
    y = [x[0]] + [out_size(x[1 + i], w[i], stride[i], 1, pad)
                  for i in range(3)] + [w[4]]

    kw = dict(strides=[1, *stride, 1], padding=pad, tol=TOL,
              types=types or FLOATS)
    each("Conv3D", label, input=X(*x, lo=-1, hi=1),
         filter=X(*w, lo=-1, hi=1), **kw)
    each("Conv3DBackpropInputV2", label, input_sizes=i32(list(x)),
         filter=X(*w, lo=-1, hi=1), out_backprop=X(*y, lo=-1, hi=1),
         **kw)
    each("Conv3DBackpropFilterV2", label, input=X(*x, lo=-1, hi=1),
         filter_sizes=i32(list(w)), out_backprop=X(*y, lo=-1, hi=1),
         **kw)


for pad in ("SAME", "VALID"):
    for stride in ((1, 1, 1), (2, 2, 2), (1, 2, 3)):
        conv3("%s %s" % (pad, stride), (2, 5, 7, 6, 3), (3, 2, 3, 3, 4),
              stride, pad=pad,
              types=WIDE if stride != (2, 2, 2) else None)
conv3("1x1x1", (2, 3, 4, 5, 3), (1, 1, 1, 3, 4), types=WIDE)
each("Conv3DBackpropInputV2", "int64", input_sizes=i64([1, 4, 4, 4, 2]),
     filter=X(2, 2, 2, 2, 3), out_backprop=X(1, 4, 4, 4, 3),
     strides=[1] * 5, padding="SAME", types=WIDE, tol=TOL)
each("Conv3D", "depths differ", input=X(1, 5, 5, 5, 4),
     filter=X(3, 3, 3, 3, 4), strides=[1] * 5, padding="SAME",
     types=["float64"], fails=True)

# Only graphs from before 2016 have them.
covered("Conv3DBackpropInput Conv3DBackpropFilter", "the second form")


def depthwise(label, x, w, stride=1, dilation=1, pad="SAME", types=None):
    y = [x[0]] + [out_size(x[1 + i], w[i], stride, dilation, pad, i)
                  for i in range(2)] + [w[2] * w[3]]
    kw = dict(strides=[1, stride, stride, 1], tol=TOL, types=types or FLOATS,
              padding=pad if isinstance(pad, str) else "EXPLICIT")
    if dilation != 1:
        kw["dilations"] = [1, dilation, dilation, 1]
    if not isinstance(pad, str):
        kw["explicit_paddings"] = [0, 0, *pad[0], *pad[1], 0, 0]
    each("DepthwiseConv2dNative", label, input=X(*x, lo=-1, hi=1),
         filter=X(*w, lo=-1, hi=1), **kw)
    each("DepthwiseConv2dNativeBackpropInput", label,
         input_sizes=i32(list(x)), filter=X(*w, lo=-1, hi=1),
         out_backprop=X(*y, lo=-1, hi=1), **kw)
    each("DepthwiseConv2dNativeBackpropFilter", label,
         input=X(*x, lo=-1, hi=1), filter_sizes=i32(list(w)),
         out_backprop=X(*y, lo=-1, hi=1), **kw)


for pad in ("SAME", "VALID", ((1, 2), (0, 1))):
    for stride in (1, 2):
        depthwise("%s %d" % (pad, stride), (2, 7, 6, 5), (3, 2, 5, 1), stride,
                  pad=pad, types=WIDE if stride == 1 else None)
        depthwise("%s %d multiplied" % (pad, stride), (2, 7, 6, 3),
                  (2, 3, 3, 4), stride, pad=pad, types=WIDE)
# Enough channels and columns for whole vectors, and some left over.
for stride in (1, 2):
    depthwise("wide %d" % stride, (9, 5, 19, 83), (3, 4, 83, 1), stride,
              types=WIDE)
    depthwise("wide valid %d" % stride, (2, 6, 21, 70), (2, 3, 70, 1), stride,
              pad="VALID", types=WIDE)
each("DepthwiseConv2dNative", "depths differ", input=X(2, 5, 5, 4),
     filter=X(3, 3, 3, 2), strides=[1, 1, 1, 1], padding="SAME",
     types=["float64"], fails=True)
