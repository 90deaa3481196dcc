"""Images: resizing; vectors and axes of data formats; blocks."""
from cases import X, each, i32, n0

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
