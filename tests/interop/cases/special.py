"""Special functions. TensorFlow's are good to ten digits or so."""
import numpy as np

from cases import V, X, binary, each, unary

TOL = {"float32": 1e-4, "float64": 1e-9, "float16": 4e-3}


def at(op, *values, **kw):
    each(op, "at edges", x=V(*values), tol=TOL, **kw)


INF, NAN = np.inf, np.nan

unary("Ndtri", lo=0.001, hi=0.999, special=False, tol=TOL)
at("Ndtri", 0.0, 1.0, 0.5, 1e-30, 1e-6, 0.2, NAN)
unary("Erfinv", lo=-0.999, hi=0.999, special=False, tol=TOL)
at("Erfinv", 0.0, 1.0, -1.0, 0.5, 0.999, -0.1, NAN)
unary("Dawsn FresnelCos FresnelSin", lo=-9, hi=9, special=False, tol=TOL)
unary("Dawsn FresnelCos FresnelSin", lo=-1, hi=1, special=False, tol=TOL)
for op in ("Dawsn", "FresnelCos", "FresnelSin"):
    at(op, 0.0, 1e-5, 1.5, 1.6, -1.6, 30.0, -100.0, 3000.0)
unary("Expint", lo=0.01, hi=40, special=False, tol=TOL)
at("Expint", 0.0, 1e-5, 0.3, 0.4, 6.0, 24.0, 39.0, 41.0, 80.0)
unary("Spence", lo=0, hi=9, special=False, tol=TOL)
at("Spence", 0.0, 1.0, 0.5, 1.5, 2.0, 2.1, 1e-5, 1e5, -1.0, NAN)
unary("BesselI0 BesselI0e BesselI1 BesselI1e", lo=-10, hi=10, special=False,
      tol=TOL)
unary("BesselJ0 BesselJ1", lo=-15, hi=15, special=False,
      tol={**TOL, "float32": 1e-3})
unary("BesselK0 BesselK0e BesselK1 BesselK1e", lo=0.01, hi=8, special=False,
      tol=TOL)
unary("BesselY0 BesselY1", lo=0.05, hi=15, special=False,
      tol={**TOL, "float32": 1e-3})
for op in ("BesselI0", "BesselI0e", "BesselI1", "BesselI1e"):
    at(op, 0.0, 1e-4, 7.9, 8.1, 24.0, 26.0, 80.0, -80.0,
       types=["float32", "float64"])
for op in ("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"):
    at(op, 0.0, 1e-4, 1.0, 1.9, 2.1, 24.0, 26.0, 80.0, -1.0,
       types=["float32", "float64"])
for op in ("BesselY0", "BesselY1"):
    at(op, 0.0, 1e-3, 2.0, 5.0, 8.0, -1.0, types=["float64"])

binary("Igamma Igammac", x="a", y="x", lo=0.1, hi=9, ylo=0.1, yhi=12,
       special=False, tol=TOL)
for op in ("Igamma", "Igammac"):
    each(op, "at edges", tol=TOL,
         a=V(0.0, -1.0, 1.0, 1.0, 2.0, 100.0, 100.0, 1e-3, 0.5, NAN),
         x=V(1.0, 1.0, 0.0, -1.0, INF, 90.0, 120.0, 2.0, 1.5, 1.0))
for op, a, x in (("IgammaGradA", "a", "x"),
                 ("RandomGammaGrad", "alpha", "sample")):
    binary(op, x=a, y=x, lo=0.1, hi=9, ylo=0.1, yhi=12, special=False,
           tol={**TOL, "float32": 1e-3})
binary("Zeta", x="x", y="q", lo=1.1, hi=9, ylo=0.1, yhi=9, special=False,
       tol=TOL)
each("Zeta", "at edges", tol=TOL,
     x=V(1.0, 0.5, 2.0, 3.0, 2.0, 3.0, 2.5, 2.0, NAN, 20.0, 1.01),
     q=V(1.0, 1.0, 0.0, -1.0, -1.0, -1.5, -1.5, -2.5, 1.0, 3.0, 1.0))
each("Polygamma", tol=TOL, a=V([[0], [1], [2], [3], [8]]),
     x=X(7, lo=0.1, hi=9))
each("Polygamma", "at edges", tol=TOL, a=V(0.5, -1.0, 1.0, 0.0, 2.0, 1.0, NAN),
     x=V(1.0, 1.0, 0.0, -1.0, -1.0, -1.5, 1.0))
each("Polygamma", "shapes do not fit", a=X(2), x=X(3), types=["float32"],
     fails=True)
for sa, sb, sx in (((3, 4), (3, 4), (3, 4)), ((), (5,), (5,)), ((5,), (), ()),
                   ((), (), ()), ((), (), (2, 3)), ((0,), (0,), (0,))):
    each("Betainc", "%s %s %s" % (sa, sb, sx), a=X(*sa, lo=0.1, hi=9),
         b=X(*sb, lo=0.1, hi=9), x=X(*sx, lo=0.01, hi=0.99), tol=TOL)
each("Betainc", "at edges", tol=TOL,
     a=V(1.0, 1.0, 1.0, 1.0, 0.0, 1.0, -1.0, 300.0, 0.01),
     b=V(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 400.0, 5.0),
     x=V(0.0, 1.0, -0.1, 1.1, 0.5, 0.5, 0.5, 0.45, 0.3))
for sa, sb, sx in (((2,), (3,), ()), ((2,), (), (3,)), ((), (2,), (3,))):
    each("Betainc", "%s %s %s do not fit" % (sa, sb, sx), a=X(*sa), b=X(*sb),
         x=X(*sx), types=["float32"], fails=True)
