"""Shapes that are long enough for the loops over whole vectors, and odd."""
from cases import X, each, i32

WIDE = ["float32", "float64"]

for n in (10, 63, 64, 100, 1000):
    for op in ("Softmax", "LogSoftmax"):
        each(op, "wide %d" % n, logits=X(70, n, lo=-9, hi=9), types=WIDE)
    each("SoftmaxCrossEntropyWithLogits", "wide %d" % n,
         features=X(7, n, lo=-9, hi=9), labels=X(7, n, lo=0, hi=1),
         types=WIDE, tol={"float32": 1e-4})
for op in ("Max", "Min"):
    each(op, "wide", input=X(5, 333), axis=i32([1]), types=WIDE)
for rows, cols in ((16, 16), (17, 40), (64, 33), (3, 100)):
    each("Transpose", "wide %d %d" % (rows, cols), x=X(2, rows, cols),
         perm=i32([0, 2, 1]), types=[*WIDE, "int32", "int64"])
each("MatMul", "wide", a=X(70, 700, lo=-1, hi=1), b=X(700, 300, lo=-1, hi=1),
     types=WIDE, tol={"float32": 1e-3})
each("MatMul", "wide, tall", a=X(600, 40, lo=-1, hi=1),
     b=X(290, 40, lo=-1, hi=1), transpose_b=True, types=WIDE,
     tol={"float32": 1e-3})
each("Tanh", "wide", x=X(1000, lo=-12, hi=12), types=WIDE)
