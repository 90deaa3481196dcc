"""Images by their parts: bicubic and area resizing, crops, random boxes."""
from cases import V, X, each, f32, i32, i64, n0

TOL = {"float16": 0.02, "float32": 2e-4}
for align, half in ((False, False), (True, False), (False, True)):
    for size in ((8, 10), (3, 2), (5, 6), (1, 1)):
        name = "align %s half %s %s" % (align, half, size)
        kw = dict(align_corners=align, half_pixel_centers=half, tol=TOL)
        each("ResizeBicubic", name, images=X(2, 5, 6, 3),
             size=i32(list(size)), **kw)
        each("ResizeBicubicGrad", name,
             grads=X(2, *size, 3, dtype="float32"),
             original_image=X(2, 5, 6, 3), **kw)
        if not half:
            each("ResizeArea", name, images=X(2, 5, 6, 3),
                 size=i32(list(size)), align_corners=align, tol=TOL)
for size in ((1, 4), (3, 1), (4, 4)):
    each("ResizeArea", "of a pixel %s" % (size,), images=X(2, 1, 1, 3),
         size=i32(list(size)), align_corners=True, tol=TOL)
    each("ResizeArea", "of a line %s" % (size,), images=X(2, 1, 3, 2),
         size=i32(list(size)), align_corners=True, tol=TOL)
for op in ("ResizeBicubic", "ResizeArea"):
    each(op, "rank", images=X(5, 6, 3), size=i32([3, 3]), fails=True,
         types=["float32"])

BOXES = f32([0, 0, 1, 1], [.1, .2, .8, .9], [.9, .8, .1, .2],
            [-.5, -.2, 1.5, 1.2], [.3, .3, .3, .3])
WHICH = i32([0, 1, 1, 0, 1])
for size in ((4, 6), (1, 1), (1, 5)):
    for method in ("bilinear", "nearest"):
        name = "%s %s" % (method, size)
        each("CropAndResize", name, image=X(2, 7, 5, 3), boxes=BOXES,
             box_ind=WHICH, crop_size=i32(list(size)), method=method,
             extrapolation_value=2.5, tol=TOL)
        for dtype in ("float16", "float32", "float64"):
            each("CropAndResizeGradImage", "%s %s" % (name, dtype),
                 grads=X(5, *size, 3, dtype="float32"), boxes=BOXES,
                 box_ind=WHICH, image_size=i32([2, 7, 5, 3]), method=method,
                 T=dtype, tol=0.02 if dtype == "float16" else 2e-4)
    each("CropAndResizeGradBoxes", str(size),
         grads=X(5, *size, 3, dtype="float32"), image=X(2, 7, 5, 3),
         boxes=BOXES, box_ind=WHICH, tol=2e-3)
for name, kw in {"which": dict(box_ind=i32([0, 1, 2, 0, 0])),
                 "count": dict(box_ind=i32([0, 1])),
                 "size": dict(crop_size=i32([0, 2])),
                 "columns": dict(boxes=BOXES[:, :3])}.items():
    each("CropAndResize", name, types=["float32"], fails=True,
         **{"image": X(2, 7, 5, 3), "boxes": BOXES, "box_ind": WHICH,
            "crop_size": i32([2, 2]), **kw})

OBJECTS = f32([[[.1, .2, .5, .7], [.6, .6, .9, .95]]])
for seed in range(4):
    for least in (.1, .6):
        kw = dict(image_size=V([40, 50, 3]), bounding_boxes=OBJECTS,
                  area_range=[.05, .6], max_attempts=20)
        name = "%d %g" % (seed, least)
        each("SampleDistortedBoundingBoxV2", name, runs=3, seed=seed + 1,
             seed2=2, min_object_covered=n0(least, "float32"), **kw)
        each("StatelessSampleDistortedBoundingBox", name,
             seed=i64([seed, 7]), min_object_covered=n0(least, "float32"), **kw)
each("SampleDistortedBoundingBoxV2", "outside", image_size=V([40, 50, 3]),
     bounding_boxes=OBJECTS * 2, min_object_covered=n0(.1, "float32"),
     types=["int32"], fails=True)
each("SampleDistortedBoundingBoxV2", "none", image_size=V([40, 50, 3]),
     bounding_boxes=OBJECTS[:, :0], min_object_covered=n0(.1, "float32"),
     types=["int32"], fails=True)

for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box",
               "triangle", "keyscubic", "mitchellcubic"):
    for soft in (True, False):
        kw = dict(scale=f32([.6, 1.7]), translation=f32([.5, -1]),
                  kernel_type=kernel, antialias=soft, tol=2e-3)
        name = "%s %s" % (kernel, soft)
        each("ScaleAndTranslate", name, images=X(2, 7, 5, 3),
             size=i32([4, 9]), types=["float32", "uint8"], **kw)
        each("ScaleAndTranslateGrad", name, grads=X(2, 4, 9, 3),
             original_image=X(2, 7, 5, 3), **kw)
each("ScaleAndTranslate", "scale", images=X(2, 7, 5, 3), size=i32([4, 9]),
     scale=f32([-1, 1]), translation=f32([0, 0]), types=["float32"],
     fails=True)
