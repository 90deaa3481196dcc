"""Patches, morphology, local normalisation, boxes, glimpses."""
import numpy as np

from cases import X, each, f32, i32

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

for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
    for centered in (False, True):
        for normalized in (False, True):
            scale = 1 if normalized else 4
            at = np.array([[0, 0], [0.3, -0.4], [-0.9, 0.9], [2, 0.1]],
                          np.float32) * scale
            each(op, "centered %s normalized %s" % (centered, normalized),
                 input=X(4, 7, 6, 3, dtype="float32"), size=i32([3, 4]),
                 offsets=at, centered=centered, normalized=normalized,
                 uniform_noise=False, noise="zero")
    each(op, "larger than the image", input=X(1, 3, 4, 2, dtype="float32"),
         size=i32([7, 8]), offsets=f32([[0, 0]]), uniform_noise=False,
         noise="zero")
    each(op, "offsets", input=X(2, 3, 4, 2, dtype="float32"),
         size=i32([2, 2]), offsets=f32([[0, 0]]), fails=True)
BOXES = f32([[[0, 0, 1, 1], [0.2, 0.3, 0.6, 0.9]],
             [[-0.3, 0.5, 0.5, 1.7], [0.9, 0.2, 0.1, 0.3]]])
for depth in (1, 3, 4):
    each("DrawBoundingBoxes", images=X(2, 9, 11, depth), boxes=BOXES)
    each("DrawBoundingBoxesV2", images=X(2, 9, 11, depth), boxes=BOXES,
         colors=X(2, 4, dtype="float32"))
each("DrawBoundingBoxes", "depth", images=X(2, 9, 11, 2), boxes=BOXES,
     fails=True, types=["float32"])
