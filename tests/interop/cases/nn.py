"""Neural network ops that a graph may leave on a ps."""
from cases import FLOATS, V, X, each, i32, i64, n0

each("BiasAdd", value=X(3, 5), bias=X(5))
each("BiasAdd", "images", value=X(2, 3, 3, 4), bias=X(4))
each("BiasAdd", "channels first", value=X(2, 4, 3, 3), bias=X(4),
     data_format="NCHW", types=FLOATS)
each("BiasAdd", "sizes differ", value=X(3, 5), bias=X(4), types=["float32"],
     fails=True)
each("BiasAddV1", value=X(3, 5), bias=X(5))
# TensorFlow sums in the type itself, and loses digits in 16 bits.
each("BiasAddGrad", out_backprop=X(2, 3, 3, 4, lo=0.5), tol=0.02)
each("BiasAddGrad", "channels first", out_backprop=X(2, 4, 3, 3),
     data_format="NCHW", types=["float32", "float64"])
each("Softmax", logits=X(3, 5))
each("LogSoftmax", logits=X(3, 5))
each("SoftmaxCrossEntropyWithLogits", features=X(3, 5),
     labels=X(3, 5, lo=0, hi=1))
each("SparseSoftmaxCrossEntropyWithLogits", features=X(3, 5),
     labels=i32([0, 4, 2]))
each("SparseSoftmaxCrossEntropyWithLogits", "64", features=X(3, 5),
     labels=i64([0, 4, 2]))
for pad in ("SAME", "VALID"):
    for stride in (1, 2):
        each("Conv2D", "%s %d" % (pad, stride), input=X(2, 7, 6, 3),
             filter=X(3, 3, 3, 4), strides=[1, stride, stride, 1],
             padding=pad, types=["float32", "float64"])
        each("Conv2DBackpropInput", "%s %d" % (pad, stride),
             input_sizes=i32([2, 8, 8, 3]), filter=X(3, 3, 3, 4),
             out_backprop=X(2, *{("SAME", 1): (8, 8), ("SAME", 2): (4, 4),
                                 ("VALID", 1): (6, 6),
                                 ("VALID", 2): (3, 3)}[pad, stride], 4),
             strides=[1, stride, stride, 1], padding=pad,
             types=["float32", "float64"])
        each("Conv2DBackpropFilter", "%s %d" % (pad, stride),
             input=X(2, 8, 8, 3), filter_sizes=i32([3, 3, 3, 4]),
             out_backprop=X(2, *{("SAME", 1): (8, 8), ("SAME", 2): (4, 4),
                                 ("VALID", 1): (6, 6),
                                 ("VALID", 2): (3, 3)}[pad, stride], 4),
             strides=[1, stride, stride, 1], padding=pad,
             types=["float32", "float64"])
        for op, arg in (("MaxPool", "input"), ("AvgPool", "value")):
            each(op, "%s %d" % (pad, stride), **{arg: X(2, 7, 6, 3)},
                 ksize=[1, 2, 2, 1], strides=[1, stride, stride, 1],
                 padding=pad, types=["float32", "float64"])
each("MaxPoolGrad", orig_input=X(2, 6, 6, 3),
     orig_output=X(2, 3, 3, 3), grad=X(2, 3, 3, 3), ksize=[1, 2, 2, 1],
     strides=[1, 2, 2, 1], padding="VALID", types=["float32"],
     compare="shapes")
each("AvgPoolGrad", orig_input_shape=i32([2, 6, 6, 3]), grad=X(2, 3, 3, 3),
     ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID",
     types=["float32", "float64"])

assert V and n0
