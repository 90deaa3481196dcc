"""Fourier transforms."""
from cases import X, each, graph, i32, n0

COMPLEX = ["complex64", "complex128"]
TOL = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10,
       "complex128": 1e-10}

for op in ("FFT", "IFFT"):
    for n in (1, 2, 3, 4, 5, 7, 8, 12, 30, 37, 41, 64, 82, 97, 100, 1369,
              1024, 1763):
        each(op, "of %d" % n, input=X(n), attr="Tcomplex", types=COMPLEX,
             tol=TOL)
for rank, name in ((1, ""), (2, "2D"), (3, "3D")):
    for op in ("FFT" + name, "IFFT" + name):
        for batch in ((), (2,), (3, 2), (0,)):
            each(op, input=X(*batch, *(5, 3, 4)[:rank]), types=COMPLEX,
                 tol=TOL)
        each(op, "of nothing", input=X(2, *(0, 4, 3)[:rank]), types=COMPLEX)
        each(op, "long", input=X(*(6, 50, 44)[:rank]), types=COMPLEX, tol=TOL)
        each(op, "rank too low", input=X(*(3, 4)[:rank - 1]),
             types=["complex64"], fails=True)


def real(op, shape, length, wide):
    @graph(op, "%s to %s" % (shape, length), types=[COMPLEX[wide]], tol=TOL)
    def _(k, dtype):
        real = ("float32", "float64")[wide]
        kw = {"Tcomplex": dtype} if op[0] == "R" else {"Treal": real}
        x = k.feed(X(*shape), real if op[0] == "R" else dtype)
        return getattr(k.raw, op)(input=x, fft_length=k.feed(i32(*length)),
                                  **kw)


for wide in (0, 1):
    for rank, name in ((1, ""), (2, "2D"), (3, "3D")):
        for shape, length in (((5, 6, 7), (5, 6, 7)), ((5, 6, 8), (5, 6, 8)),
                              ((2, 5, 6, 7), (5, 4, 3)), ((4, 4, 4), (2, 1, 1)),
                              ((3, 2, 41, 43), (2, 41, 41)),
                              ((0, 3, 4, 5), (3, 4, 5))):
            real("RFFT" + name, shape, length[-rank:], wide)
            n = length[-1]
            real("IRFFT" + name, shape, (*length[:-1], n)[-rank:], wide) \
                if shape[-1] > n // 2 else None
            real("IRFFT" + name, shape,
                 (*length[:-1], 2 * (shape[-1] - 1))[-rank:], wide)
for op, shape, length in (
        ("RFFT", (2, 4), (6,)), ("RFFT", (2, 4), (-1,)), ("RFFT", (2, 4), (3, 3)),
        ("RFFT2D", (4,), (4, 4)), ("RFFT2D", (4, 4), (5, 4)),
        ("RFFT2D", (4, 4), (4, 5)), ("RFFT3D", (4, 4, 4), (4, 5, 4))):
    each(op, "%s to %s" % (shape, length), input=X(*shape, dtype="float32"),
         fft_length=i32(*length), fails=True)
    each("I" + op, "%s to %s" % (shape, length), fails=True,
         input=X(*shape, dtype="complex64"),
         fft_length=i32([*length[:-1], 3 * length[-1]]))
each("RFFT", "a scalar", input=X(2, 4, dtype="float32"),
     fft_length=n0(3, "int32"), fails=True)
each("RFFT", "types do not fit", input=X(2, 4, dtype="float64"),
     fft_length=i32(3), fails=True)
each("IRFFT", "types do not fit", input=X(2, 4, dtype="complex128"),
     fft_length=i32(3), fails=True)
