"""Linear algebra: systems of equations, decompositions, functions of matrices.

Vectors whose sign or phase is free (eigenvectors, singular vectors) are
compared by what they are for: the products that make the input again.
"""
import numpy as np

from cases import COMPLEX, V, X, each, f64, graph, n0

DENSE = ["float32", "float64", "complex64", "complex128"]
# What rounding may cost when a system is solved.
SOLVED = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-10,
          "complex128": 1e-10, "float16": 2e-2}


def regular(*shape, seed=0, hermitian=False):
    """Matrices that are far from singular; hermitian: positive definite."""
    n = shape[-1]
    rng = np.random.default_rng(n * 100 + seed)
    a = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    if hermitian:
        a = a @ np.conj(np.swapaxes(a, -1, -2))
    return a + (n + 1) * np.eye(n) * (0.5 if hermitian else 1)


class M(V):
    """Given complex values, of which real types take the real part."""

    def make(self, dtype, position):
        v = np.array(self.items)
        return dtype, v.astype(dtype) if dtype in COMPLEX else (
            v.real.astype(dtype))


SQUARES = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 1, 3, 3), (0, 0),
           (3, 0, 0), (0, 4, 4), (37, 37)]

# --- LU and what comes of it --------------------------------------------------

for shape in SQUARES:
    a = M(regular(*shape))
    for op in ("Lu", "MatrixInverse", "MatrixDeterminant",
               "LogMatrixDeterminant"):
        each(op, "of %s" % (shape,), input=a, tol=SOLVED)
    for k in (0, 1, 3, 300):
        each("MatrixSolve", "%s for %d" % (shape, k), matrix=a,
             rhs=X(*shape[:-1], k), tol=SOLVED)
each("MatrixSolve", "adjoint", matrix=M(regular(2, 5, 5)), rhs=X(2, 5, 3),
     adjoint=True, tol=SOLVED)
for label, a, rhs in (("not square", X(3, 4), X(3, 2)),
                      ("not as high", X(3, 3), X(4, 2)),
                      ("ranks differ", X(3, 3), X(2, 3, 2)),
                      ("batches differ", X(4, 3, 3), X(2, 3, 2)),
                      ("a vector", X(3), X(3, 2)),
                      ("singular", V([[1, 2], [2, 4]]), X(2, 1))):
    each("MatrixSolve", label, matrix=a, rhs=rhs, types=["float32"],
         fails=True)
each("MatrixInverse", "adjoint", input=M(regular(2, 5, 5)), adjoint=True,
     tol=SOLVED)
for op in ("Lu", "MatrixInverse"):
    each(op, "singular", input=V([[1, 2], [2, 4]]), types=["float32"],
         fails=True)
    each(op, "one of a batch singular",
         input=V([[[1, 0], [0, 1]], [[0, 0], [0, 0]]]), types=["float64"],
         fails=True)
each("Lu", "rows are exchanged", input=X(3, 6, 6), tol=SOLVED)
each("Lu", "several blocks", input=X(100, 100), types=DENSE, tol={
    **SOLVED, "float32": 2e-2, "complex64": 2e-2, "float64": 1e-9,
    "complex128": 1e-9})
each("Lu", "int64", input=X(3, 3), output_idx_type="int64", tol=SOLVED)
for op in ("MatrixDeterminant", "LogMatrixDeterminant"):
    each(op, "singular", input=V([[1, 2], [2, 4]]))
    each(op, "too large for the type", input=V(np.eye(40) * 1e30))
    each(op, "of zero", input=V(np.zeros((2, 3, 3))))
    each(op, "any", input=X(4, 5, 5), tol=SOLVED)
for op in ("Lu", "MatrixInverse", "MatrixDeterminant", "Cholesky",
           "LogMatrixDeterminant"):
    each(op, "not square", input=X(3, 4), types=["float32"], fails=True)
    each(op, "a vector", input=X(3), types=["float32"], fails=True)

# --- Cholesky -----------------------------------------------------------------

for shape in SQUARES:
    each("Cholesky", "of %s" % (shape,), tol=SOLVED,
         input=M(regular(*shape, hermitian=True)))
    each("CholeskyGrad", "of %s" % (shape,), l=M(regular(*shape)),
         grad=X(*shape), tol=SOLVED)
each("Cholesky", "only the lower triangle", tol=SOLVED,
     input=V([[4, 1e30, np.nan], [2, 9, 7], [1, 3, 5]]))
each("Cholesky", "NaN inside", types=["float32"],
     input=V([[4, 0, 0], [2, np.nan, 0], [1, 3, 5]]))


@graph("Cholesky", types=DENSE)
def not_positive(k, dtype):
    a = k.feed(V([[[1, 2], [2, 1]], [[4, 0], [0, 9]]]), dtype)
    return k.raw.MatrixBandPart(  # above the diagonal lies what lay there
        input=k.raw.Cholesky(input=a), num_lower=k.tf.constant(-1, "int64"),
        num_upper=k.tf.constant(0, "int64"))


each("CholeskyGrad", "not square", l=X(3, 4), grad=X(3, 4),
     types=["float32"], fails=True)
each("CholeskyGrad", "not alike", l=X(3, 3), grad=X(2, 2),
     types=["float32"], fails=True)

# --- Triangles ----------------------------------------------------------------

for lower in (False, True):
    for adjoint in (False, True):
        for sa, sb in (((1, 1), (1, 1)), ((5, 5), (5, 3)),
                       ((2, 4, 4), (2, 4, 1)), ((4, 4), (3, 2, 4, 2)),
                       ((3, 1, 4, 4), (2, 4, 5)), ((0, 0), (0, 3)),
                       ((4, 4), (4, 0)), ((0, 4, 4), (0, 4, 2)),
                       ((30, 30), (30, 300))):
            each("MatrixTriangularSolve",
                 "%s %s%s%s" % (sa, sb, " lower" * lower,
                                " adjoint" * adjoint),
                 matrix=M(regular(*sa)), rhs=X(*sb), lower=lower,
                 adjoint=adjoint, tol=SOLVED)
each("MatrixTriangularSolve", "singular", matrix=V([[1, 0], [2, 0]]),
     rhs=V([[1], [1]]))
for label, a, rhs in (("not square", X(3, 4), X(3, 2)),
                      ("not as high", X(3, 3), X(4, 2)),
                      ("batches differ", X(4, 3, 3), X(2, 3, 2)),
                      ("a vector", X(3), X(3, 2)),
                      ("for a vector", X(3, 3), X(3))):
    each("MatrixTriangularSolve", label, matrix=a, rhs=rhs,
         types=["float32"], fails=True)
for lower in (False, True):
    for adjoint in (False, True):
        for sa, sb in (((1, 1), (1, 1)), ((3, 5), (5, 3)), ((1, 4), (4, 2)),
                       ((2, 2, 4), (2, 4, 1)), ((2, 4), (3, 2, 4, 2)),
                       ((3, 1, 4, 4), (2, 4, 5)), ((6, 3), (3, 2))):
            each("BandedTriangularSolve",
                 "%s %s%s%s" % (sa, sb, " lower" * lower,
                                " adjoint" * adjoint),
                 matrix=X(*sa, lo=1, hi=2), rhs=X(*sb), lower=lower,
                 adjoint=adjoint, tol=SOLVED)
for label, a, rhs in (("singular", V([[1, 0], [2, 3]]), X(2, 1)),
                      ("not as high", X(3, 3), X(4, 2)),
                      ("batches differ", X(4, 3, 3), X(2, 3, 2)),
                      ("a vector", X(3), X(3, 2)),
                      ("for nothing", X(3, 3), X(3, 0)),
                      ("nothing", X(0, 3), X(3, 1))):
    each("BandedTriangularSolve", label, matrix=a, rhs=rhs,
         types=["float32"], fails=True)

# --- Three diagonals ----------------------------------------------------------

for pivoting in (False, True):
    for perturb in (False, True)[:1 + pivoting]:
        def tri(label, d, rhs, **kw):
            each("TridiagonalSolve", "%s%s%s" % (
                label, " pivoting" * pivoting, " perturbing" * perturb),
                diagonals=d, rhs=rhs, partial_pivoting=pivoting,
                perturb_singular=perturb, **kw)
        for n in (1, 2, 3, 8):
            tri("of %d" % n, X(3, n, lo=1, hi=3), X(n, 2), tol=SOLVED)
        tri("of a batch", X(4, 2, 3, 6), X(4, 2, 6, 3), tol=SOLVED)
        tri("of nothing", X(3, 0), X(0, 2))
        if not perturb:  # TensorFlow does not survive it
            tri("for nothing", X(3, 4), X(4, 0))
            tri("zero", V([[0], [0], [0]]), V([[1]]))
            tri("singular", V([[0, 0, 0], [1, 0, 1], [0, 0, 0]]),
                V([[1], [2], [3]]))
        tri("first pivot zero", V([[2, 1, 4, 0], [0, 3, 3, 3], [0, 1, 1, 3]]),
            V([[1], [2], [3], [4]]))
tri("singular, moved", V([[1, 1, 0], [1, 2, 1], [0, 1, 1]]),
    V([[1], [1], [1]]), tol=1e-1)
each("TridiagonalSolve", "two diagonals", diagonals=X(2, 3), rhs=X(3, 1),
     types=["float32"], fails=True)
each("TridiagonalSolve", "not as high", diagonals=X(3, 3), rhs=X(4, 1),
     types=["float32"], fails=True)
each("TridiagonalSolve", "no such thing", diagonals=X(3, 3), rhs=X(3, 1),
     partial_pivoting=False, perturb_singular=True, types=["float32"],
     fails=True)
for batch in ((), (2,), (2, 3)):
    for m, n in ((1, 1), (2, 3), (5, 4), (3, 0)):
        each("TridiagonalMatMul", superdiag=X(*batch, 1, m),
             maindiag=X(*batch, 1, m), subdiag=X(*batch, 1, m),
             rhs=X(*batch, m, n))
for wrong in range(3):
    parts = [X(1, 3), X(1, 3), X(1, 3)]
    parts[wrong] = X(1, 4)
    each("TridiagonalMatMul", "%d is too long" % wrong, superdiag=parts[0],
         maindiag=parts[1], subdiag=parts[2], rhs=X(3, 2), types=["float32"],
         fails=True)
for t in ("int8", "uint8"):
    each("BatchMatMulV3", "%s with bfloat16" % t,
         x=X(2, 3, 4, dtype=t, hi=9), y=X(2, 4, 5, dtype="bfloat16"),
         Tout="bfloat16")
    each("BatchMatMulV3", "bfloat16 with %s" % t,
         x=X(2, 3, 4, dtype="bfloat16"), y=X(2, 4, 5, dtype=t, hi=9),
         Tout="bfloat16")

# --- Decompositions -----------------------------------------------------------

SHAPES = [(1, 1), (1, 4), (4, 1), (5, 5), (5, 3), (3, 5), (2, 3, 4, 4),
          (2, 6, 2), (0, 0), (0, 3), (3, 0), (0, 4, 2), (40, 33)]

for full in (False, True):
    for shape in SHAPES:
        each("Qr", "%s%s" % (shape, " full" * full), input=X(*shape),
             full_matrices=full, tol=SOLVED,  # half differs when it is long
             types=DENSE if max(shape) > 9 else DENSE + ["float16"])
each("Qr", "NaN", input=V([[1, np.nan], [2, 3]]), types=["float32"])
each("Qr", "a vector", input=X(3), types=["float32"], fails=True)
each("Qr", "zero", input=V(np.zeros((3, 2))))
each("Qr", "negative", input=V([[-2, 1], [0, -3]]))


def svd_case(shape, full):
    @graph("Svd", "%s%s" % (shape, " full" * full), types=DENSE, tol=SOLVED)
    def _(k, dtype):
        a = k.feed(X(*shape), dtype)
        s, u, v = k.raw.Svd(input=a, full_matrices=full)
        n = min(shape[-2:])
        ones = [k.tf.matmul(m, m, adjoint_a=True) for m in (u, v)]
        return [s, *ones, k.tf.shape(u), k.tf.shape(v), k.tf.matmul(
            u[..., :n] * s[..., None, :], v[..., :n], adjoint_b=True)]


for full in (False, True):
    for shape in SHAPES:
        svd_case(shape, full)


def values_case(label, values):
    @graph("Svd", label + ", values only", types=DENSE, tol=SOLVED)
    def _(k, dtype):
        s, u, v = k.raw.Svd(input=k.feed(values, dtype), compute_uv=False)
        return [s, k.tf.shape(u), k.tf.shape(v)]


for shape in SHAPES:
    values_case("%s" % (shape,), X(*shape))
for bad in (np.nan, np.inf):
    each("Svd", "of %s" % bad, input=V([[1, bad, 2], [3, 4, 5]]))
    values_case("of %s" % bad, V([[1, bad], [3, 4]]))
values_case("zero", V(np.zeros((2, 3, 2))))
each("Svd", "a vector", input=X(3), types=["float32"], fails=True)


def eigh_case(shape):
    @graph("SelfAdjointEigV2", "%s" % (shape,), types=DENSE, tol=SOLVED)
    def _(k, dtype):
        a = k.feed(M(regular(*shape)), dtype)
        e, v = k.raw.SelfAdjointEigV2(input=a)
        return [e, k.tf.matmul(v, v, adjoint_a=True), k.tf.abs(v), k.tf.matmul(
            v * e[..., None, :], v, adjoint_b=True)]

    @graph("SelfAdjointEigV2", "%s, values only" % (shape,), types=DENSE,
           tol=SOLVED)
    def _(k, dtype):
        e, v = k.raw.SelfAdjointEigV2(
            input=k.feed(M(regular(*shape)), dtype), compute_v=False)
        return [e, k.tf.shape(v)]


for shape in SQUARES:
    eigh_case(shape)
for op in ("SelfAdjointEigV2", "Eig"):
    kw = {"Tout": "complex64"} if op == "Eig" else {}
    each(op, "not square", input=X(3, 4), types=["float32"], fails=True, **kw)
    each(op, "a vector", input=X(3), types=["float32"], fails=True, **kw)
    for bad in (np.nan, np.inf):
        each(op, "of %s" % bad, input=V([[1, bad], [bad, 4]]),
             types=["float32"], fails=True, **kw)


each("Eig", "another type", input=X(3, 3), types=["float32"], fails=True,
     Tout="complex128")


def eig_case(shape, vectors):
    @graph("Eig", "%s%s" % (shape, " vectors" * vectors), types=DENSE,
           tol=SOLVED)
    def _(k, dtype):
        a = k.feed(M(regular(*shape)), dtype)
        out = "complex64" if dtype in ("float32", "complex64") else (
            "complex128")
        e, v = k.raw.Eig(input=a, Tout=out, compute_v=vectors)
        sums = [k.tf.reduce_sum(e ** p, axis=-1) for p in (1, 2, 3)]
        if not vectors:
            return [*sums, k.tf.shape(v)]
        a = k.tf.cast(a, out)
        return [*sums, k.tf.matmul(a, v) - v * e[..., None, :] + 1,
                k.tf.reduce_sum(k.tf.abs(v) ** 2, axis=-2)]


for shape in SQUARES:
    for vectors in (False, True):
        eig_case(shape, vectors)

# --- Least squares ------------------------------------------------------------

for fast in (True, False):
    for l2 in (0.0, 0.5):
        for sa, k in (((1, 1), 1), ((5, 5), 2), ((6, 3), 2), ((3, 6), 2),
                      ((2, 4, 3), 1), ((2, 2, 3, 4), 3), ((0, 3), 2),
                      ((3, 0), 2), ((0, 4, 3), 2), ((4, 3), 0),
                      ((30, 10), 40)):
            each("MatrixSolveLs", "%s for %d%s l2 %g" % (
                sa, k, " fast" * fast, l2), matrix=X(*sa),
                rhs=X(*sa[:-1], k, seed=1), l2_regularizer=n0(l2, "float64"),
                fast=fast, tol={**SOLVED, "float32": 5e-3, "complex64": 5e-3},
                # Of no equations TensorFlow's solution is any memory.
                compare="values" if sa[-2] else "shapes")
each("MatrixSolveLs", "without full rank", matrix=V([[1, 2], [2, 4], [3, 6]]),
     rhs=V([[1], [2], [4]]), l2_regularizer=n0(0, "float64"), fast=False,
     tol=SOLVED)
for label, a, rhs, l2 in (
        ("without full rank, fast", V([[1, 0], [0, 0], [0, 0]]), X(3, 1), 0),
        ("wide without full rank", V([[1, 0, 0], [0, 0, 0]]), X(2, 1), 0),
        ("not as high", X(3, 3), X(4, 2), 0),
        ("batches differ", X(4, 3, 3), X(2, 3, 2), 0),
        ("l2 negative", X(3, 3), X(3, 2), -1)):
    each("MatrixSolveLs", label, matrix=a, rhs=rhs, types=["float32"],
         l2_regularizer=n0(l2, "float64"), fails=True)
each("MatrixSolveLs", "l2 a vector", matrix=X(3, 3), rhs=X(3, 2),
     l2_regularizer=f64(1, 2), types=["float32"], fails=True)

# --- Functions of matrices ----------------------------------------------------

for op in ("MatrixSquareRoot", "MatrixLogarithm"):
    for shape in SQUARES[:-1] + [(20, 20)]:
        each(op, "of %s" % (shape,), input=M(regular(*shape)), tol=SOLVED)
    each(op, "of positive ones", input=M(regular(2, 6, 6, hermitian=True)),
         tol=SOLVED)
    each(op, "not square", input=X(3, 4), types=["complex64"], fails=True)
    each(op, "a vector", input=X(3), types=["complex64"], fails=True)
each("MatrixLogarithm", "of any", input=X(3, 4, 4), tol=SOLVED)
each("MatrixLogarithm", "of one that rotates", input=V([[0, -1], [1, 0]]))
each("MatrixSquareRoot", "of a real one without root",
     input=V([[-1, 0], [0, 4]]), types=["float32", "float64"])
each("MatrixSquareRoot", "with complex eigenvalues",
     input=V([[1, -3], [3, 1]]), tol=SOLVED)
each("MatrixSquareRoot", "of zero", input=V(np.zeros((2, 3, 3))))
each("MatrixSquareRoot", "with one zero", input=V(np.diag([0, 1, 4])))
each("MatrixSquareRoot", "with two zeros", input=V(np.diag([0, 0, 4])))
