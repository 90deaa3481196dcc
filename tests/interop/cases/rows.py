"""Rows and elements that indices name: the corners of scatter and gather."""
from cases import ONE, X, each, graph, i32, i64, n0

TWICE = i32([[2, 0], [1, 1], [2, 0]])

# --- Gather -----------------------------------------------------------------

for axis, batch in ((1, 1), (2, 1), (2, 2), (3, 2), (3, -1)):
    each("GatherV2", "axis %d, batch %d" % (axis, batch),
         params=X(2, 3, 4, 5), indices=i64([[0, 2, 1], [2, 2, 0]]),
         axis=n0(axis, "int32"), batch_dims=batch, attr="Tparams")
each("GatherV2", "one element each", params=X(7), attr="Tparams",
     indices=i32([6, 0, 0, 3]), axis=n0(0, "int32"))
each("GatherV2", "empty rows", params=X(4, 0), indices=i32([9]),
     axis=n0(0, "int32"), attr="Tparams", types=ONE)
for label, args in {
        "batches differ": dict(indices=i32([[0]]), axis=n0(1, "int32"),
                               batch_dims=1),
        "batch above axis": dict(indices=i32([[0], [1]]),
                                 axis=n0(0, "int32"), batch_dims=1),
        "too many batches": dict(indices=i32([0]), axis=n0(1, "int32"),
                                 batch_dims=2),
        "out of range, deep": dict(indices=i32([[[0, 1]], [[1, 2]]]),
                                   axis=n0(0, "int32")),
        "axis is a vector": dict(indices=i32([0]), axis=i32([0])),
}.items():
    each("GatherV2", label, params=X(2, 3), attr="Tparams", types=ONE,
         fails=True, **args)

each("GatherNd", "everything", params=X(2, 3), indices=i32([]),
     attr="Tparams", types=ONE)
each("GatherNd", "one element", params=X(2, 3), indices=i32([1, 2]),
     attr="Tparams")
for label, args in {
        "too deep": dict(params=X(2, 3), indices=i32([[0, 0, 0]])),
        "nothing to take from": dict(params=X(0, 3), indices=i32([[0]])),
        "out of range, deep": dict(params=X(2, 3),
                                   indices=i32([[[0, 1]], [[2, 0]]])),
}.items():
    each("GatherNd", label, attr="Tparams", types=ONE, fails=True, **args)


@graph("ResourceGather", "batch", types="kernel", attr="dtype")
def gather_batch(k, dtype):
    return k.raw.ResourceGather(
        resource=k.var(X(2, 4, 3), dtype), dtype=dtype, batch_dims=1,
        indices=k.x(i32([[0, 3], [2, 2]])))


# --- Scatter ----------------------------------------------------------------

for op in ("Update", "Add", "Sub", "Min", "Max"):
    each("TensorScatter" + op, "twice", tensor=X(3, 2), indices=TWICE,
         updates=X(3), types=None)
    for label, args in {
            "outer": dict(indices=i32([[0]]), updates=X(2, 2)),
            "inner": dict(indices=i32([[0]]), updates=X(1, 3)),
            "rank": dict(indices=i32([[0]]), updates=X(1)),
            "too deep": dict(indices=i32([[0, 0, 0]]), updates=X(1)),
            "scalar index": dict(indices=n0(0, "int32"), updates=X(2)),
            "out of range": dict(indices=i32([[0, 1], [1, -1]]),
                                 updates=X(2)),
    }.items():
        each("TensorScatter" + op, label, tensor=X(3, 2), types=ONE,
             fails=True, **args)

each("ScatterNdNonAliasingAdd", input=X(3, 2), indices=TWICE, updates=X(3))
each("ScatterNdNonAliasingAdd", "rows", input=X(3, 2),
     indices=i64([[2], [0], [2]]), updates=X(3, 2))
each("ScatterNdNonAliasingAdd", "out of range", input=X(3, 2), types=ONE,
     indices=i32([[0], [3]]), updates=X(2, 2), fails=True)
each("ScatterNd", "twice", indices=TWICE, updates=X(3), shape=i32([3, 2]))
for label, args in {
        "too small": dict(indices=i32([[0]]), updates=X(1, 2),
                          shape=i32([0, 2])),
        "shape is a matrix": dict(indices=i32([[0]]), updates=X(1, 2),
                                  shape=i32([[3, 2]])),
        "negative": dict(indices=i32([[0]]), updates=X(1, 2),
                         shape=i32([-3, 2])),
        "inner": dict(indices=i32([[0]]), updates=X(1, 3),
                      shape=i32([3, 2])),
}.items():
    each("ScatterNd", label, types=ONE, fails=True, **args)
