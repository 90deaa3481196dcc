"""Normalisation."""
import numpy as np

from cases import X, each, f32, graph

TOL = {"float16": 0.02, "bfloat16": 0.1, "float32": 2e-4}


def norm(op, label, shape, n, keep=slice(None), fail=False, sizes=None,
         **attrs):
    sizes = sizes or [n] * 4

    @graph(op, label, types="kernel", tol=TOL, fails=fail)
    def build(k, dtype):
        args = [k.feed(X(m, lo=0.5, hi=2, dtype="float32"), dtype, i)
                for i, m in enumerate(sizes)]
        out = getattr(k.raw, op)(
            x=k.feed(X(*shape), dtype, 9), scale=args[0], offset=args[1],
            mean=args[2], variance=args[3], epsilon=0.01, **attrs)
        return list(out)[keep]


def grad(op, label, shape, n, **attrs):
    @graph(op, label, types="kernel", tol=TOL)
    def build(k, dtype):
        args = [k.feed(X(n, lo=0.5, hi=2, dtype="float32"), dtype, i)
                for i in range(3)]
        more = {"reserve_space_3": args[0]} if op.endswith("V3") else {}
        out = getattr(k.raw, op)(
            y_backprop=k.feed(X(*shape), dtype, 8),
            x=k.feed(X(*shape), dtype, 9), scale=args[0],
            reserve_space_1=args[1], reserve_space_2=args[2], epsilon=0.01,
            **more, **attrs)
        return list(out)[:3]


for v in ("", "V2", "V3"):
    op = "FusedBatchNorm" + v
    for train in (True, False):
        for first in (False, True):
            label = "%s %s" % ("training" if train else "inference",
                               "NCHW" if first else "NHWC")
            shape = (3, 5, 6, 7) if first else (3, 6, 7, 5)
            kw = dict(is_training=train,
                      data_format="NCHW" if first else "NHWC")
            norm(op, label, shape, 5, slice(0, 5 if train else 3), **kw)
            if train or not first:  # TensorFlow: NHWC only
                grad("FusedBatchNormGrad" + v, label, shape, 5, **kw)
    norm(op, "averages", (2, 3, 4, 6), 6, slice(0, 5),
         exponential_avg_factor=0.25)
    norm(op, "one row", (1, 1, 1, 6), 6, slice(0, 5))
    norm(op, "many rows", (9, 40, 40, 3), 3, slice(0, 5))
    norm(op, "scale differs", (2, 3, 4, 6), 6, fail=True,
         sizes=[5, 6, 6, 6])
    norm(op, "mean differs", (2, 3, 4, 6), 6, fail=True,
         sizes=[6, 6, 5, 6], is_training=False)
norm("FusedBatchNormV3", "volumes", (2, 3, 4, 2, 6), 6, slice(0, 5),
     data_format="NDHWC")
norm("FusedBatchNormV3", "volumes first", (2, 6, 4, 2, 3), 6, slice(0, 5),
     data_format="NCDHW")
grad("FusedBatchNormGradV3", "volumes", (2, 3, 4, 2, 6), 6,
     data_format="NDHWC")

assert np is not None and each and f32
