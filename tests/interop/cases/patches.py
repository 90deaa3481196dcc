"""Patches, morphology, local normalisation, boxes, glimpses."""
from cases import X, each

TOL = {"float16": 0.02, "bfloat16": 0.1, "float32": 2e-4}

for pad in ("SAME", "VALID"):
    for k, s, r in (((2, 3), (1, 2), (1, 1)), ((3, 2), (2, 1), (2, 2)),
                    ((1, 1), (3, 3), (1, 1))):
        label = "%s %s %s %s" % (pad, k, s, r)
        each("ExtractImagePatches", label, images=X(2, 7, 6, 3),
             ksizes=[1, *k, 1], strides=[1, *s, 1], rates=[1, *r, 1],
             padding=pad)
        win = dict(strides=[1, *s, 1], rates=[1, *r, 1], padding=pad)
        y = [-(-n // s[i]) if pad == "SAME" else
             (n - (k[i] - 1) * r[i] - 1) // s[i] + 1
             for i, n in enumerate((7, 6))]
        each("Dilation2D", label, input=X(2, 7, 6, 3), filter=X(*k, 3),
             tol=TOL, **win)
        for op in ("Input", "Filter"):
            each("Dilation2DBackprop" + op, label, input=X(2, 7, 6, 3),
                 filter=X(*k, 3), out_backprop=X(2, *y, 3), tol=TOL,
                 types=["float32", "float64", "int32"], **win)
    each("ExtractVolumePatches", pad, input=X(2, 5, 4, 6, 3),
         ksizes=[1, 2, 3, 2, 1], strides=[1, 1, 2, 3, 1], padding=pad)
each("ExtractImagePatches", "rank", images=X(7, 6, 3), ksizes=[1, 2, 2, 1],
     strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME",
     types=["float32"], fails=True)
for radius, beta in ((1, 0.5), (2, 1.0), (5, 0.75)):
    args = dict(depth_radius=radius, bias=1.5, alpha=0.7, beta=beta, tol=TOL)
    each("LRN", "%d %g" % (radius, beta), input=X(2, 3, 4, 7), **args)
    each("LRNGrad", "%d %g" % (radius, beta), input_grads=X(2, 3, 4, 7),
         input_image=X(2, 3, 4, 7), output_image=X(2, 3, 4, 7), **args)
each("LRN", "rank", input=X(2, 3, 4), types=["float32"], fails=True)
