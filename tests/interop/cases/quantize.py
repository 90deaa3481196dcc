"""Numbers of few bits."""
import numpy as np

from cases import V, X, each, f32, graph, i32, n0

for bits in (2, 3, 8, 16):
    for narrow in (False, True):
        kw = dict(num_bits=bits, narrow_range=narrow)
        x = X(7, 5, lo=-8, hi=8, dtype="float32")
        g = X(7, 5, dtype="float32", seed=3)
        for low, high in ((-6.0, 6.0), (-0.1, 5.3), (0.0, 3.0), (-4.0, 0.0),
                          (1.0, 2.0), (-3.0, -1.0)):
            each("FakeQuantWithMinMaxArgs", "%g to %g %s" % (low, high, kw),
                 inputs=x, min=low, max=high, **kw)
            each("FakeQuantWithMinMaxArgsGradient",
                 "%g to %g %s" % (low, high, kw), gradients=g, inputs=x,
                 min=low, max=high, **kw)
            ends = dict(min=n0(low, "float32"), max=n0(high, "float32"))
            each("FakeQuantWithMinMaxVars", "%g to %g %s" % (low, high, kw),
                 inputs=x, **ends, **kw)
            each("FakeQuantWithMinMaxVarsGradient",
                 "%g to %g %s" % (low, high, kw), gradients=g, inputs=x,
                 **ends, **kw)
        ends = dict(min=f32(-6, -0.1, 0, -4, 0), max=f32(6, 5.3, 3, 0, 0))
        for shape in ((5,), (7, 5), (2, 3, 5), (0, 5)):
            each("FakeQuantWithMinMaxVarsPerChannel", "%s %s" % (shape, kw),
                 inputs=X(*shape, lo=-8, hi=8, dtype="float32"), **ends, **kw)
            each("FakeQuantWithMinMaxVarsPerChannelGradient",
                 "%s %s" % (shape, kw), gradients=X(*shape, dtype="float32"),
                 inputs=X(*shape, lo=-8, hi=8, dtype="float32", seed=1),
                 **ends, **kw)
zero = n0(0, "float32")
each("FakeQuantWithMinMaxVars", "no range", inputs=f32(1, 2), min=zero,
     max=zero)
each("FakeQuantWithMinMaxVarsGradient", "no range", gradients=f32(3, 4),
     inputs=f32(1, 2), min=zero, max=zero)
for op, kw in (("FakeQuantWithMinMaxArgs", {}),
               ("FakeQuantWithMinMaxVars", dict(min=zero, max=zero))):
    each(op, "17 bits", inputs=f32(1, 2), num_bits=17, fails=True, **kw)
each("FakeQuantWithMinMaxArgs", "no range", inputs=f32(1, 2), min=1.0,
     max=1.0, fails=True)
each("FakeQuantWithMinMaxArgsGradient", "sizes differ", gradients=f32(1, 2),
     inputs=f32(1, 2, 3), fails=True)
for low, high in ((f32(1, 2), zero), (zero, f32(1, 2))):
    each("FakeQuantWithMinMaxVars", "a vector %s" % low.size, inputs=f32(1, 2),
         min=low, max=high, fails=True)
for low, high in ((f32(1, 2), f32(1, 2, 3)), (f32(1, 2, 3), f32(1, 2)),
                  (zero, f32(1, 2, 3)), (f32(1, 2, 3), zero)):
    each("FakeQuantWithMinMaxVarsPerChannel", "%s %s" % (low.shape, high.shape),
         inputs=f32(1, 2, 3), min=low, max=high, fails=True)

ENDS = [(-3, 3), (0, 3), (-3, 0), (-1, 2), (-2, 1), (0, 0), (0.5, 2)]
for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
    for signed in (False, True):
        for bits in (1 + signed, 4, 8, 20):
            for kw in ({}, {"narrow_range": True}, {"round_mode": "HALF_UP"}):
                for low, high in ENDS:
                    each(op, "%s %d bits %s %g to %g" % (
                        signed, bits, kw, low, high), input=X(40, lo=-4, hi=4),
                        input_min=V(low), input_max=V(high), num_bits=bits,
                        signed_input=signed, range_given=True, **kw)
                each(op, "%s %d bits %s" % (signed, bits, kw), input=X(5, 9),
                     input_min=V(0), input_max=V(0), num_bits=bits,
                     signed_input=signed, **kw)
    for axis in (0, 1, 2):
        each(op, "along %d" % axis, input=X(2, 3, 4), input_min=V(0),
             input_max=V(0), axis=axis)
    # Vectors along an axis work in 2.12, and in no way in 2.21.
    each(op, "scalars along an axis", input=X(2, 3), axis=0, input_min=X(),
         input_max=X(), range_given=True, types=["float32"], fails=True)
    each(op, "ties", input=V(-1.5, -0.5, 0.5, 1.5, 2.5), input_min=V(-128),
         input_max=V(127), range_given=True)
    each(op, "the wrong way round", input=X(3), input_min=V(2), input_max=V(1),
         range_given=True, types=["float32"], fails=True)
    each(op, "no bits", input=X(3), input_min=V(2), input_max=V(3),
         num_bits=0, types=["float32"], fails=True)
    each(op, "no such axis", input=X(3, 2), input_min=X(2), input_max=X(2),
         axis=2, range_given=True, types=["float32"], fails=True)
for given in (False, True):
    for bits in (2, 8):
        each("QuantizeAndDequantizeV3", "%d bits%s" % (bits, " given" * given),
             input=X(3, 5), input_min=V(-2), input_max=V(3),
             num_bits=n0(bits, "int32"), range_given=given)
each("QuantizeAndDequantizeV3", "along 1", input=X(3, 5), axis=1,
     input_min=X(5, lo=-3, hi=-1), input_max=X(5, lo=1, hi=3),
     num_bits=n0(8, "int32"))
each("QuantizeAndDequantizeV3", "no bits", input=X(3), input_min=V(2),
     input_max=V(3), num_bits=n0(0, "int32"), types=["float32"], fails=True)
each("QuantizeAndDequantizeV3", "many bits", input=X(3), input_min=V(2),
     input_max=V(3), num_bits=i32(8), types=["float32"], fails=True)
each("QuantizeAndDequantizeV3", "not as many", input=X(2, 3), axis=0,
     input_min=X(2), input_max=X(1), num_bits=n0(8, "int32"),
     types=["float32"], fails=True)
each("QuantizeAndDequantizeV3", "no such axis", input=X(2, 3), axis=2,
     input_min=X(2), input_max=X(2), num_bits=n0(8, "int32"),
     types=["float32"], fails=True)
for label, low, axis in (("not as many", (1,), 0), ("a scalar", (), 0),
                         ("a vector", (1,), -1), ("a matrix", (1, 1), 0),
                         ("no such axis", (2,), 2)):
    each("QuantizeAndDequantizeV4Grad", label, gradients=X(2, 3),
         input=X(2, 3), input_min=X(*low), input_max=X(*low), axis=axis,
         types=["float32"], fails=True)
each("QuantizeAndDequantizeV4Grad", gradients=X(3, 5), input=X(3, 5),
     input_min=V(-2), input_max=V(3))
each("QuantizeAndDequantizeV4Grad", "along 1", gradients=X(3, 5),
     input=X(3, 5), input_min=X(5, lo=-3, hi=-1), input_max=X(5, lo=1, hi=3),
     axis=1)
each("QuantizeAndDequantizeV4Grad", "sizes differ", gradients=X(3, 5),
     input=X(3, 4), input_min=V(-2), input_max=V(3), types=["float32"],
     fails=True)

for boundaries in ([0.0, 3.0, 8.0, 11.0], [], [1.0], [2.0, 2.0, 5.5]):
    each("Bucketize", "%s" % boundaries, boundaries=boundaries,
         input=V(-5, 0, 2, 3, 5, 8, 10, 11, 12))
each("Bucketize", "any", input=X(3, 4, lo=-9, hi=9),
     boundaries=[-4.5, -1.0, 0.5, 6.0])
each("Bucketize", "NaN", input=V(np.nan, np.inf, -np.inf, 1.0),
     boundaries=[0.0, 1.0], types=["float32", "float64"])
each("Bucketize", "nothing", input=X(0, 3), boundaries=[0.0])
each("Bucketize", "not sorted", input=X(3), boundaries=[0.0, 8.0, 3.0],
     types=["float32"], fails=True)

# --- Types of their own, seen through the whole numbers of their bits ---------

BITS = {"qint8": "int8", "quint8": "uint8", "qint16": "int16",
        "quint16": "uint16", "qint32": "int32"}


def to_quantized(label, shape, low, high, fails=False, **kw):
    @graph("QuantizeV2", "%s %s %s" % (label, shape, kw), types=list(BITS)[:1 if fails else 5], fails=fails)
    def _(k, dtype):
        out = k.raw.QuantizeV2(
            input=k.feed(X(*shape, lo=-5, hi=5, dtype="float32")),
            min_range=k.feed(np.array(low, np.float32)),
            max_range=k.feed(np.array(high, np.float32)), T=dtype, **kw)
        return [k.raw.Bitcast(input=out[0], type=BITS[dtype]), *out[1:]]


def from_quantized(label, shape, low, high, fails=False, **kw):
    @graph("Dequantize", "%s %s %s" % (label, shape, kw), types=list(BITS)[:1 if fails else 5], fails=fails)
    def _(k, dtype):
        bits = np.iinfo(BITS[dtype])
        x = np.random.default_rng(1).integers(
            bits.min, bits.max, shape, endpoint=True).astype(BITS[dtype])
        return k.raw.Dequantize(
            input=k.raw.Bitcast(input=k.tf.reshape(k.feed(x), shape),
                                type=dtype),
            min_range=k.feed(np.array(low, np.float32)),
            max_range=k.feed(np.array(high, np.float32)), **kw)


for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
    for low, high in ((-3, 4), (0, 4), (-4, 0), (1, 3), (-3, -1), (2, 2)):
        to_quantized("%g to %g" % (low, high), (7, 9), low, high, mode=mode)
        from_quantized("%g to %g" % (low, high), (7, 9), low, high, mode=mode)
    to_quantized("nothing", (0, 3), 0, 1, mode=mode)
    for case in (to_quantized, from_quantized):
        if mode != "MIN_FIRST":
            for axis in (0, 1, 2):
                n = (2, 3, 4)[axis]
                case("an axis", (2, 3, 4), [-2 - i for i in range(n)],
                     [1.5 + i for i in range(n)], mode=mode, axis=axis)
for kw in ({"narrow_range": True}, {"round_mode": "HALF_TO_EVEN"}):
    to_quantized("scaled", (5, 5), -2, 3, mode="SCALED", **kw)
from_quantized("narrow", (5, 5), -2, 3, mode="SCALED", narrow_range=True)
from_quantized("bfloat16", (5, 5), -2, 3, dtype="bfloat16")
to_quantized("the wrong way round", (5,), 3, 1, fails=True)
to_quantized("not as many", (2, 3), [1, 2, 3], [1, 2, 3], axis=0, fails=True)
to_quantized("not as many", (2, 3), [1, 2], [1, 2, 3], axis=0, fails=True)
to_quantized("two ranges", (2, 3), [1, 2], [1, 2], fails=True)
to_quantized("no such axis", (2, 3), [1, 2], [1, 2], axis=2, fails=True)
to_quantized("first along an axis", (2, 3), [1, 2], [3, 4], axis=0,
             mode="MIN_FIRST", fails=True)
to_quantized("to even", (2, 3), 1, 2, round_mode="HALF_TO_EVEN", fails=True)
from_quantized("not as many", (2, 3), [1, 2], [1, 2, 3], axis=0, fails=True)
from_quantized("two ranges", (2, 3), [1, 2], [1, 2], fails=True)
from_quantized("first along an axis", (2, 3), [1, 2], [3, 4], axis=0,
               mode="MIN_FIRST", fails=True)
from_quantized("bfloat16, first", (5, 5), -2, 3, dtype="bfloat16",
               mode="MIN_FIRST", fails=True)
to_quantized("a wide range", (5,), 1, 1, ensure_minimum_range=0.5)
