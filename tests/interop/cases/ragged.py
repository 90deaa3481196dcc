"""Ragged tensors, and distances of sequences."""
import numpy as np

from cases import V, X, each, f32, graph, i32, i64, n0

SPLITS = [i64([0, 2, 3]), i64([0, 1, 1, 4])]
FEW = ["float32", "string", "int64", "bool"]

each("RaggedTensorToSparse", rt_nested_splits=[i64([0, 2, 2, 4])],
     rt_dense_values=X(4), types=FEW)
each("RaggedTensorToSparse", "deep", rt_nested_splits=SPLITS,
     rt_dense_values=X(4), types=FEW)
each("RaggedTensorToSparse", "matrices",
     rt_nested_splits=[s.astype("int32") for s in SPLITS],
     rt_dense_values=X(4, 2), types=FEW)
each("RaggedTensorToSparse", "nothing", rt_nested_splits=[i64([0])],
     rt_dense_values=X(0), types=FEW)
for label, splits in {"first": [1, 2, 4], "last": [0, 2, 5],
                      "decreasing": [0, 5, 4], "none": []}.items():
    each("RaggedTensorToSparse", label, rt_nested_splits=[i64(splits)],
         rt_dense_values=X(4), types=["int32"], fails=True)

for starts, limits, deltas in (([0, 5, 8], [3, 5, 2], 1),
                               ([0, 5, 8], [3, 5, 2], [2, 1, -2]),
                               (0, 5, 2), (5, [7, 8, 0], 1)):
    each("RaggedRange", "%s %s %s" % (starts, limits, deltas),
         starts=V(starts), limits=V(limits), deltas=V(deltas))
each("RaggedRange", "fractions", starts=V(0), limits=V(1), deltas=V(0.1),
     types=["float32", "float64"])
each("RaggedRange", "int32 splits", starts=V(0), limits=V(3), deltas=V(1),
     Tsplits="int32", types=["int32"])
each("RaggedRange", "no step", starts=V([0]), limits=V([1]), deltas=V([0]),
     types=["int32", "float32"], fails=True)
each("RaggedRange", "other lengths", starts=V([0, 1]), limits=V([1]),
     deltas=V(1), types=["int32"], fails=True)

for label, indices in {"rows": i64([1, 0, 1]), "matrix": i32([[1, 0], [1, 1]]),
                       "one": n0(1, "int64"), "none": i64([])}.items():
    for deep in (1, 2):
        each("RaggedGather", "%s %d" % (label, deep),
             params_nested_splits=SPLITS[:deep],
             params_dense_values=X(3 if deep == 1 else 4, 2),
             indices=indices, OUTPUT_RAGGED_RANK=deep + indices.ndim - 1,
             types=FEW, attr="Tvalues")
for label, splits, index in (("outside", [0, 2, 3], 2),
                             ("negative", [0, 2, 3], -1),
                             ("past", [0, 2, 9], 1),
                             ("decreasing", [0, 3, 2], 1)):
    each("RaggedGather", label, params_nested_splits=[i64(splits)],
         params_dense_values=X(3), indices=i64([index]),
         OUTPUT_RAGGED_RANK=1, types=["int32"], attr="Tvalues", fails=True)

RS, IDS = ["ROW_SPLITS"], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]


def dense(label, shape, values, default, parts, kinds, **kw):
    each("RaggedTensorToTensor", label, shape=shape, values=values,
         default_value=default, row_partition_tensors=parts,
         row_partition_types=kinds, **{"types": FEW, **kw})


for shape in (i64([-1, -1]), i64([3, 1]), n0(-1, "int64"), i64([1, 4])):
    dense("splits %s" % shape, shape, X(3), X(), [i64([0, 2, 3])], RS)
dense("ids", i32([-1, -1]), X(3), X(), [n0(4, "int64"), i64([0, 0, 3])], IDS)
dense("deep", i64([-1, -1, -1]), X(4), X(), SPLITS, RS * 2)
dense("mixed", i64([-1, -1, -1]), X(3), X(), [i64([0, 2, 3]),
                                              i64([0, 2, 2])],
      ["ROW_SPLITS", "VALUE_ROWIDS"])
dense("inner", i64([-1, -1, 2]), X(3, 2), X(2), [i64([0, 2, 3])], RS)
dense("one for all", i64([-1, -1, 2]), X(3, 2), X(), [i64([0, 2, 3])], RS)
dense("nothing", i64([-1, -1]), X(0), X(), [i64([0])], RS)
for label, shape, values, default, parts, kinds in (
        ("default", i64([-1, -1, 2]), X(3, 2), X(3), [i64([0, 2, 3])], RS),
        ("rank", i64([-1, -1, 2]), X(3), X(), [i64([0, 2, 3])], RS),
        ("dimension", i64([-1, -1, 3]), X(3, 2), X(), [i64([0, 2, 3])], RS),
        ("first", i64([-1, -1]), X(3), X(), [i64([1, 2, 3])], RS),
        ("decreasing", i64([-1, -1]), X(3), X(), [i64([0, 4, 3])], RS),
        ("below -1", i64([-2, -1]), X(3), X(), [i64([0, 2, 3])], RS),
        ("no splits", i64([-1, -1]), X(0), X(), [i64([])], RS),
        ("id", i64([-1, -1]), X(3), X(), [n0(2, "int64"), i64([0, 0, 3])],
         IDS),
        ("negative id", i64([-1, -1]), X(3), X(),
         [n0(2, "int64"), i64([-1, 0, 1])], IDS)):
    dense("wrong " + label, shape, values, default, parts, kinds,
          types=["int32"], fails=True)

# --- Distances ---------------------------------------------------------------

H = i64([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
T = i64([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0]])
CUBE = i64([2, 2, 2])


def distance(label, h=H, hv=X(4, lo=0, hi=2), hs=CUBE, t=T,
             tv=X(4, lo=0, hi=2, seed=1), ts=CUBE, **kw):
    for normalize in (False, True):
        each("EditDistance", "%s %s" % (label, normalize),
             hypothesis_indices=h, hypothesis_values=hv, hypothesis_shape=hs,
             truth_indices=t, truth_values=tv, truth_shape=ts,
             normalize=normalize, **{"types": ["int32"], **kw})


WORD = i64([[0, i] for i in range(9)])
distance("cube", types=["float32", "int64", "int8", "string", "bool"])
distance("words", WORD, X(9, lo=0, hi=3), i64([1, 9]), WORD[:7],
         X(7, lo=0, hi=3, seed=1), i64([1, 7]), types=["int32", "int64"])
distance("more truth", ts=i64([3, 2, 2]))
distance("order", h=H[::-1].copy())
for label, kw in {"rank": dict(t=T[:, :2], ts=i64([2, 2])),
                  "values": dict(hv=X(2)), "truth": dict(tv=X(2)),
                  "outside": dict(h=H + i64([5, 0, 0])),
                  "shape": dict(hs=i64([2, 2]))}.items():
    distance(label, fails=True, **kw)


@graph("DisableCopyOnRead")
def disable(k):
    h = k.var(f32(1, 2))
    with k.after(k.raw.DisableCopyOnRead(resource=h)):
        return k.read(h, "float32")


# Ragged values in variants: there and back, by rows and as a whole.
LEVELS = {1: ([0, 2, 2, 5, 6],), 2: ([0, 1, 3, 4], [0, 2, 2, 5, 6])}


def boxed(k, rank, rows):
    return k.raw.RaggedTensorToVariant(
        rt_nested_splits=[k.x(i64(s)) for s in LEVELS[rank]],
        rt_dense_values=k.x(f32(np.arange(12)).reshape(6, 2)), batched_input=rows)


def unboxed(k, v, inner, outer, dtype):
    r = k.raw.RaggedTensorFromVariant(
        encoded_ragged=v, input_ragged_rank=inner, output_ragged_rank=outer,
        Tvalues=dtype, Tsplits="int64")
    return [*r.output_nested_splits, r.output_dense_values]


for rank in LEVELS:
    for rows in (False, True):
        def ragged_variant(k, rank=rank, rows=rows):
            return unboxed(k, boxed(k, rank, rows),
                           rank - rows, rank, "float32")
        for op in ("RaggedTensorToVariant", "RaggedTensorFromVariant"):
            graph(op, "%d %s" % (rank, rows))(ragged_variant)


BROKEN = {"rank 3": [np.zeros((1, 4, 4), np.int64)],
          "scalar": [np.array(3, np.int64)], "empty": [np.zeros(0, np.int64)],
          "begins with 1": [i64(1, 6)], "ends early": [i64(0, 3)],
          "falls": [i64(0, 3, 2, 6)],
          "inner rank 2": [i64(0, 2), np.zeros((2, 2), np.int64)],
          "outer ends late": [i64(0, 2, 9), i64(0, 1, 6)]}
for what, splits in BROKEN.items():
    for rows in (False, True):
        def broken(k, splits=splits, rows=rows):
            v = k.raw.RaggedTensorToVariant(
                rt_nested_splits=[k.x(s) for s in splits],
                rt_dense_values=k.x(f32(np.arange(6))), batched_input=rows)
            return unboxed(k, v, len(splits) - rows, len(splits), "float32")
        graph("RaggedTensorToVariant", "%s %s" % (what, rows),
              fails=True)(broken)


@graph("RaggedTensorFromVariant", "stack")
def stack(k):
    v = k.raw.Pack(values=[boxed(k, 1, False),
                           boxed(k, 1, False)])
    return unboxed(k, v, 1, 2, "float32")


@graph("RaggedTensorFromVariant", "another rank", fails=True)
def another(k):
    return unboxed(k, boxed(k, 1, True), 1, 2, "float32")


@graph("RaggedTensorToVariantGradient")
def gradient(k):
    return k.raw.RaggedTensorToVariantGradient(
        encoded_ragged_grad=boxed(k, 1, True),
        row_splits=k.x(i64(LEVELS[1][0])),
        dense_values_shape=k.x(i32([6, 2])), Tvalues="float32")
