"""Images: resizing; vectors and axes of data formats; blocks."""
from cases import V, X, each, i32, n0

TOL = {"float16": 0.02, "bfloat16": 0.1, "float32": 2e-4}
for align, half in ((False, False), (True, False), (False, True)):
    label = "align %s half %s" % (align, half)
    kw = dict(align_corners=align, half_pixel_centers=half, tol=TOL)
    for size in ((8, 10), (3, 2), (5, 6), (1, 1)):
        name = "%s %s" % (label, size)
        each("ResizeBilinear", name, images=X(2, 5, 6, 3),
             size=i32(list(size)), **kw)
        each("ResizeNearestNeighbor", name, images=X(2, 5, 6, 3),
             size=i32(list(size)), **kw)
        each("ResizeBilinearGrad", name,
             grads=X(2, *size, 3, dtype="float32"),
             original_image=X(2, 5, 6, 3), **kw)
        each("ResizeNearestNeighborGrad", name, grads=X(2, *size, 3),
             size=i32([5, 6]), types=["float32", "float64", "int32", "uint8"],
             **kw)
for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
    each(op, "rank", images=X(5, 6, 3), size=i32([3, 3]), fails=True,
         types=["float32"])
    each(op, "no size", images=X(2, 5, 6, 3), size=i32([0, 3]), fails=True,
         types=["float32"])
for a, b in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"),
             ("NDHWC", "NCDHW")):
    n = len(a)
    kw = dict(src_format=a, dst_format=b)
    label = "%s to %s" % (a, b)
    each("DataFormatDimMap", label, x=X(7, lo=-n, hi=n - 1), **kw)
    each("DataFormatDimMap", label + " scalar", x=n0(2, "int32"), **kw)
    each("DataFormatVecPermute", label, x=X(n), **kw)
    each("DataFormatVecPermute", label + " pairs", x=X(n, 2), **kw)
    each("DataFormatVecPermute", label + " space", x=X(n - 2), **kw)
each("DataFormatVecPermute", "size", x=X(3), fails=True, types=["int32"])
each("SpaceToBatch", input=X(2, 4, 6, 3), paddings=i32([[1, 1], [0, 2]]),
     block_size=2)
each("BatchToSpace", input=X(8, 2, 3, 3), crops=i32([[1, 0], [0, 2]]),
     block_size=2)
each("SpaceToBatch", "does not divide", input=X(2, 5, 6, 3),
     paddings=i32([[0, 0], [0, 0]]), block_size=2, fails=True,
     types=["float32"])
for op in ("RGBToHSV", "HSVToRGB"):
    each(op, images=X(2, 4, 5, 3, lo=0, hi=1), tol=TOL)
    each(op, "row", images=X(3, lo=0, hi=1), tol=TOL)
    each(op, "channels", images=X(2, 4), fails=True, types=["float32"])
PICTURE = X(2, 4, 5, 3, lo=0, hi=1, dtype="float32")
for f in (-0.3, 0.0, 0.4, 1.7):
    each("AdjustSaturation", "by %g" % f, images=PICTURE,
         scale=n0(abs(f), "float32"), tol=TOL)
    each("AdjustHue", "by %g" % f, images=PICTURE, delta=n0(f / 2, "float32"),
         tol=1e-3)
    each("AdjustHue", "below zero, by %g" % f, tol=1e-3,
         images=X(2, 4, 5, 3, lo=-40, hi=10, dtype="float32"),
         delta=n0(f, "float32"))
    each("AdjustContrastv2", "by %g" % f, images=PICTURE,
         contrast_factor=n0(f, "float32"), tol=1e-3)
BOXES = X(30, 4, lo=0, hi=1)
SCORES = X(30, lo=0, hi=1)
for most in (3, 40):
    kw = dict(boxes=BOXES, scores=SCORES, max_output_size=n0(most, "int32"))
    each("NonMaxSuppression", "%d" % most, **dict(
        kw, boxes=X(30, 4, lo=0, hi=1, dtype="float32"),
        scores=X(30, lo=0, hi=1, dtype="float32")), iou_threshold=0.3)
    iou = V(0.25, dtype="float32")
    each("NonMaxSuppressionV2", "%d" % most, iou_threshold=iou, **kw)
    each("NonMaxSuppressionV3", "%d" % most, iou_threshold=iou,
         score_threshold=V(0.5, dtype="float32"), **kw)
    for pad in (False, True):
        each("NonMaxSuppressionV4", "%d %s" % (most, pad), iou_threshold=iou,
             score_threshold=V(0.5, dtype="float32"),
             pad_to_max_output_size=pad, **kw)
        for sigma in (0.0, 0.5):
            each("NonMaxSuppressionV5", "%d %s %g" % (most, pad, sigma),
                 iou_threshold=V(0.25), score_threshold=V(0.25),
                 soft_nms_sigma=V(sigma), pad_to_max_output_size=pad,
                 tol=TOL, types=["float32"], **kw)
    each("NonMaxSuppressionWithOverlaps", "%d" % most,
         overlaps=X(9, 9, lo=0, hi=1, dtype="float32"),
         scores=X(9, lo=0, hi=1, dtype="float32"),
         max_output_size=n0(most, "int32"),
         overlap_threshold=n0(0.4, "float32"),
         score_threshold=n0(0.2, "float32"))
each("NonMaxSuppressionV2", "columns", boxes=X(5, 3), scores=X(5),
     max_output_size=n0(3, "int32"), iou_threshold=V(0.5), fails=True,
     types=["float32"])
