"""Random ops: with a seed the very numbers that TensorFlow gives, run by run."""
from cases import V, X, each, f32, graph, i32, i64, n0

FLOATS = ["float32", "float64", "float16", "bfloat16"]

for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    for dtype in FLOATS:
        for shape in ([3, 5], [], [0, 2], [1031], [2, 700]):
            each(op, "%s %s" % (shape, dtype), shape=i32(shape),
                 dtype=dtype, seed=87654321, seed2=42, runs=2,
                 tol=None if op == "RandomUniform" else None)
        each(op, "64 seed2 only " + dtype, shape=i64([7]), dtype=dtype,
             seed=0, seed2=5, runs=2)
    each(op, "no seed", shape=i32([4, 5]), dtype="float32",
         compare="shapes")
    each(op, "negative", shape=i32([-1]), dtype="float32", seed=1,
         fails=True)
for dtype in ("int32", "int64"):
    each("RandomUniformInt", dtype, shape=i32([1000]), minval=n0(-3, dtype),
         maxval=n0(17, dtype), seed=1, seed2=2, runs=2)
    each("RandomUniformInt", "wide " + dtype, shape=i32([100]),
         minval=n0(-2**31, dtype), maxval=n0(2**31 - 1, dtype), seed=1,
         seed2=2)
    each("RandomUniformInt", "empty range " + dtype, shape=i32([3]),
         minval=n0(3, dtype), maxval=n0(3, dtype), seed=1, fails=True)
for dtype in FLOATS[:3]:
    each("ParameterizedTruncatedNormal", dtype, shape=i32([100]),
         means=V(0, dtype=dtype), stdevs=V(1, dtype=dtype),
         minvals=V(-1, dtype=dtype), maxvals=V(2, dtype=dtype),
         seed=3, seed2=4)
each("RandomShuffle", value=X(20), seed=5, seed2=6, runs=2,
     types=["float32", "int32", "int64", "string"])
each("RandomShuffle", "rows", value=X(20, 3), seed=5, seed2=6,
     types=["float32", "string"])
each("RandomShuffle", "one", value=X(1), seed=5, types=["float32"])
each("Multinomial", logits=f32([[0.1, 2, 0.5], [3, 1, 0.0]]),
     num_samples=n0(50, "int32"), seed=7, seed2=8, runs=2)
for dtype in ("float16", "float32", "float64"):
    each("RandomGamma", dtype, shape=i32([20]),
         alpha=V([0.5, 2.0], dtype=dtype), seed=1, seed2=2)
    each("RandomPoissonV2", dtype, shape=i32([20]),
         rate=V([0.5, 20.0], dtype=dtype), seed=1, seed2=2, dtype=dtype)
for op in ("StatelessRandomUniform", "StatelessRandomNormal",
           "StatelessTruncatedNormal"):
    for dtype in FLOATS:
        each(op, dtype, shape=i32([3, 50]), seed=i64([1, 2]), dtype=dtype)
each("StatelessRandomUniformInt", shape=i32([50]), seed=i64([1, 2]),
     minval=n0(-5, "int32"), maxval=n0(50, "int32"))
for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2",
           "StatelessTruncatedNormalV2"):
    for dtype in FLOATS:
        each(op, dtype, shape=i32([3, 50]), key=V([5], dtype="uint64"),
             counter=V([1, 2], dtype="uint64"), alg=n0(1, "int32"),
             dtype=dtype)
each("StatelessRandomGetKeyCounter", seed=i64([1, 2]))
each("StatelessRandomGetAlg", compare="shapes")


@graph("RandomUniform", "two ops of one seed", runs=3)
def two(k):
    return [k.raw.RandomUniform(shape=k.x(i32([5])), dtype="float32",
                                seed=1, seed2=2) for _ in range(2)]


for dtype in FLOATS:
    each("StatelessMultinomial", dtype, logits=X(2, 5, dtype=dtype),
         num_samples=n0(20, "int32"), seed=i64([1, 2]))
each("StatelessRandomGetKeyCounterAlg", seed=i32([1, -2]))
for dtype in ("int32", "int64", "uint32", "uint64"):
    each("StatelessRandomUniformFullInt", dtype, shape=i32([33]),
         seed=i64([1, 2]), dtype=dtype)
    each("StatelessRandomUniformFullIntV2", dtype, shape=i32([33]),
         key=V([5], dtype="uint64"), counter=V([1, 2], dtype="uint64"),
         alg=n0(1, "int32"), dtype=dtype)
for dtype in ("int32", "int64"):
    each("StatelessRandomUniformIntV2", dtype, shape=i64([33]),
         key=V([5], dtype="uint64"), counter=V([1, 2], dtype="uint64"),
         alg=n0(3, "int32"), minval=n0(-3, dtype), maxval=n0(90, dtype))
