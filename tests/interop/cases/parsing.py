"""Examples, CSV, and other things that become tensors."""
import struct
import zlib

import numpy as np

from cases import PLAIN, X, each, f32, i32, i64, graph, n0, s, s0

# --- tf.train.Example by hand -------------------------------------------------


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def ld(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def strings(*v):
    return ld(1, b"".join(ld(1, e) for e in v))


def floats(*v):
    return ld(2, ld(1, struct.pack("<%df" % len(v), *v)) if v else b"")


def loose_floats(*v):
    return ld(2, b"".join(b"\x0d" + struct.pack("<f", e) for e in v))


def ints(*v):
    return ld(3, ld(1, b"".join(map(varint, v))) if v else b"")


def loose_ints(*v):
    return ld(3, b"".join(b"\x08" + varint(e) for e in v))


def entries(**features):
    return b"".join(ld(1, ld(1, k.encode()) + ld(2, v))
                    for k, v in features.items())


def example(**features):
    return ld(1, entries(**features))


def sequence(context, **lists):
    return ld(1, entries(**context)) + ld(2, entries(**{
        k: b"".join(ld(1, f) for f in v) for k, v in lists.items()}))


NONE = np.array([], object)
ROWS = [example(a=floats(1, 2), b=ints(3), c=strings(b"x", b"yy")),
        example(a=loose_floats(3, 4), b=loose_ints(-5)),
        example(a=floats(5, 6), b=ints(7), c=strings(b"z"), d=ints(1, 2, 3)),
        example(b=ints(8), a=floats(0, 0), d=b"")]


def dense(key, kind, shape, default):
    return key, kind, shape, default


FLOAT = dense("a", np.float32, [2], [])
INT = dense("b", np.int64, [], [9])
WIDE = dense("d", np.int64, [None], [-1])
PAIRS = dense("c", object, [None, 2], [b"pad"])


def parse(label, serialized, columns=(), sparse=(), ragged=(), names=NONE,
          **kw):
    """The same with ParseExample, ParseExampleV2 and one by one."""
    keys, kinds, shapes, values = zip(*columns) if columns else ((),) * 4
    defaults = [np.array(v, k).reshape([])
                if len(v) == 1 and not e else np.array(v, k)
                for v, k, e in zip(values, kinds, shapes)]
    sparse_types = [t for _, t in sparse]
    serialized = np.array(serialized, object)
    each("ParseExampleV2", label, serialized=serialized, names=names,
         sparse_keys=s(*[k for k, _ in sparse]), dense_keys=s(*keys),
         ragged_keys=s(*[k for k, _, _ in ragged]),
         dense_defaults=defaults, num_sparse=len(sparse),
         sparse_types=sparse_types,
         ragged_value_types=[t for _, t, _ in ragged],
         ragged_split_types=[t for _, _, t in ragged],
         dense_shapes=list(shapes), **kw)
    if ragged:
        return
    if serialized.ndim == 1:
        each("ParseExample", label, serialized=serialized, names=names,
             sparse_keys=[s0(k) for k, _ in sparse],
             dense_keys=[s0(k) for k in keys], dense_defaults=defaults,
             sparse_types=sparse_types, dense_shapes=list(shapes), **kw)
    else:
        each("ParseSingleExample", label, serialized=serialized,
             dense_defaults=defaults, num_sparse=len(sparse),
             sparse_keys=[k for k, _ in sparse], dense_keys=list(keys),
             sparse_types=sparse_types, dense_shapes=list(shapes), **kw)


SPARSE = [("c", "string"), ("d", "int64"), ("nowhere", "float32")]
for name, rows in (("four", ROWS), ("none", []), ("a", ROWS[2])):
    parse(name + " dense", rows, [FLOAT, INT])
    parse(name + " sparse", rows, [], SPARSE)
    parse(name + " both", rows, [FLOAT], SPARSE)
    parse(name + " of any length", rows, [WIDE])
    parse(name + " ragged", rows, [INT], [],
          [("c", "string", "int32"), ("d", "int64", "int64"),
           ("nowhere", "float32", "int64")])
parse("pairs", [ROWS[0], ROWS[3]], [PAIRS])
parse("a pair", ROWS[0], [PAIRS])
parse("an odd pair", ROWS[:3], [PAIRS], fails=True)
parse("an odd pair alone", ROWS[2], [PAIRS], fails=True)
parse("repeated key", [ROWS[0] + example(a=floats(8, 9))], [FLOAT])
for kw in ({}, {"names": s("n1", "n2")}):
    name = "named " * bool(kw)
    parse(name + "missing", [ROWS[0], example()],
          [FLOAT], **kw, fails=True)
    parse(name + "wrong size", [ROWS[0], example(a=floats(1))],
          [FLOAT], **kw, fails=True)
    parse(name + "wrong type", [ROWS[0], example(a=ints(1, 2))],
          [FLOAT], **kw, fails=True)
    parse(name + "wrong sparse type", [ROWS[0], example(c=ints(1, 2))],
          [], [("c", "string")], **kw, fails=True)
parse("missing alone", example(), [FLOAT], fails=True)
parse("wrong size alone", example(a=floats(1)), [FLOAT], fails=True)
parse("wrong type alone", example(a=ints(1, 2)), [FLOAT], fails=True)
parse("wrong sparse type alone", example(c=ints(1, 2)), [],
      [("c", "string")], fails=True)
parse("no example", ["abc"], [FLOAT], fails=True)
parse("no example alone", "abc", [FLOAT], fails=True)
parse("cut", [ROWS[0][:-3]], [FLOAT], fails=True)
parse("names of another shape", ROWS, [INT], names=s("x"), fails=True)
parse("default of another shape", ROWS, [dense("b", np.int64, [2], [1])],
      fails=True)
parse("two pads", ROWS, [dense("d", np.int64, [None], [1, 2])], fails=True)

# --- CSV ----------------------------------------------------------------------


def csv(label, records, defaults, **kw):
    each("DecodeCSV", label, records=s(*records), record_defaults=defaults,
         **kw)


KINDS = [np.array([], np.int32), i64(2), f32(3), np.array([4.], np.float64),
         s("5")]
csv("types", ["1, 2 ,3.5,-4e3,five", "7,,,,", '"8","9",.5,inf,"a ""b"""'],
    KINDS)
csv("line ends", ["\n1,2\r\n", "3,\r4"], [np.array([0], np.int32)] * 2,
    fails=True)
csv("line ends inside", ['\n"1\n2",3'], [s(""), i64(0)])
csv("no quotes", ['"a,b"'], [s(""), s("")], use_quote_delim=False)
csv("another delimiter", ["1;2"], [i64(0), i64(0)], field_delim=";")
csv("delimiter at the end", ["1,"], [i64(0), i64(7)])
csv("na", ["NA,1,x"], [i64(6), i64(7), s("")], na_value="NA")
csv("columns", ["1,2,3,4", "5,6,7,"], [i64(0), i64(9)], select_cols=[1, 3])
csv("empty", [""], [i64(0)], fails=True)
csv("no records", [], [i64(0)])
csv("too few", ["1"], [i64(0), i64(0)], fails=True)
csv("too many", ["1,2,3"], [i64(0), i64(0)], fails=True)
csv("required", [",2"], [i64([]), i64(0)], fails=True)
csv("no int", ["x"], [np.array([], np.int32)], fails=True)
csv("no float", ["1.x"], [f32([])], fails=True)
csv("large", ["99999999999"], [np.array([], np.int32)], fails=True)
csv("quote inside", ['a"b'], [s("")], fails=True)
csv("open quote", ['"ab'], [s("")], fails=True)
csv("junk behind", ['"ab"c,d'], [s(""), s("")], fails=True)
csv("two defaults", ["1"], [i64(1, 2)], fails=True)
csv("a matrix of defaults", ["1"], [i64([[1]])], fails=True)
csv("bad columns", ["1"], [i64(1)], select_cols=[-1], fails=True)
csv("scalar default", ["5,"], [n0(1, "int64"), n0(2, "int64")])

# --- Sequences ----------------------------------------------------------------

TALKS = [
    sequence({"a": floats(1, 2), "b": ints(3), "c": strings(b"x")},
             l=[floats(1, 2), floats(3, 4)], m=[ints(1), ints(), ints(2, 3)],
             k=[strings(b"p"), strings(b"q", b"r")]),
    sequence({"a": floats(5, 6)}, l=[floats(7, 8)], m=[],
             k=[b"", strings(b"")]),
    sequence({"a": floats(9, 0), "c": strings(b"y", b"zz")},
             l=[floats(1, 2), loose_floats(3, 4), floats(5, 6)],
             m=[loose_ints(-1, -2)], other=[ints(1)])]


def talk(label, serialized, names=NONE, context_dense=(), context_sparse=(),
         context_ragged=(), dense=(), sparse=(), ragged=(), may_miss=(),
         **kw):
    serialized = np.array(serialized, object)
    both = dict(
        serialized=serialized, debug_name=names,
        context_dense_defaults=[np.array(v, k).reshape(
            e if len(v) else [0]) for _, k, e, v in context_dense],
        Ncontext_sparse=len(context_sparse),
        context_sparse_types=[t for _, t in context_sparse],
        context_dense_shapes=[e for _, _, e, _ in context_dense],
        Nfeature_list_sparse=len(sparse), Nfeature_list_dense=len(dense),
        feature_list_dense_types=[t for _, t, _ in dense],
        feature_list_sparse_types=[t for _, t in sparse],
        feature_list_dense_shapes=[e for _, _, e in dense])
    each("ParseSequenceExampleV2", label, **both,
         context_sparse_keys=s(*[k for k, _ in context_sparse]),
         context_dense_keys=s(*[c[0] for c in context_dense]),
         context_ragged_keys=s(*[c[0] for c in context_ragged]),
         feature_list_sparse_keys=s(*[k for k, _ in sparse]),
         feature_list_dense_keys=s(*[c[0] for c in dense]),
         feature_list_ragged_keys=s(*[c[0] for c in ragged]),
         feature_list_dense_missing_assumed_empty=np.array(
             [c[0] in may_miss for c in dense], bool),
         context_ragged_value_types=[c[1] for c in context_ragged],
         context_ragged_split_types=[c[2] for c in context_ragged],
         feature_list_ragged_value_types=[c[1] for c in ragged],
         feature_list_ragged_split_types=[c[2] for c in ragged], **kw)
    if context_ragged or ragged:
        return
    each("ParseSequenceExample", label, **both,
         feature_list_dense_missing_assumed_empty=list(may_miss),
         context_sparse_keys=[k for k, _ in context_sparse],
         context_dense_keys=[c[0] for c in context_dense],
         feature_list_sparse_keys=[k for k, _ in sparse],
         feature_list_dense_keys=[c[0] for c in dense],
         Ncontext_dense=len(context_dense), **kw)


A = ("a", np.float32, [2], [])
B = ("b", np.int64, [], [-1])
for name, rows in (("three", TALKS), ("one", TALKS[0]), ("none", []),
                   ("the last", TALKS[2])):
    if len(rows):
        talk(name + " context", rows, context_dense=[A, B],
             context_sparse=[("c", "string"), ("zz", "int64")])
        talk(name + " lists", rows, dense=[("l", "float32", [2])],
             sparse=[("m", "int64"), ("k", "string")])
    if np.ndim(rows):
        talk(name + " ragged", rows,
             context_ragged=[("c", "string", "int64"),
                             ("a", "float32", "int32")],
             ragged=[("m", "int64", "int32"), ("k", "string", "int64")])
    talk(name + " may miss", rows, dense=[("nothing", "int64", [3])],
         may_miss=["nothing"])
for rows in (TALKS, TALKS[1]):
    name = "" if np.ndim(rows) else " alone"
    talk("missing" + name, rows, dense=[("k2", "string", [])], fails=True)
    talk("missing context" + name, rows,
         context_dense=[("zz", np.int64, [1], [])], fails=True)
    talk("wrong type" + name, rows, sparse=[("l", "int64")], fails=True)
    talk("wrong context type" + name, rows, context_sparse=[("a", "int64")],
         fails=True)
    talk("wrong size" + name, rows, dense=[("l", "float32", [4])],
         fails=True)
    talk("no example" + name, ["x"] if np.ndim(rows) else "x",
         dense=[("l", "float32", [2])], fails=True)
talk("named", TALKS, s("u", "v", "w"), dense=[("k", "string", [])],
     fails=True)

# --- Tensors as bytes ---------------------------------------------------------

for types in (PLAIN,):
    each("SerializeTensor", tensor=X(2, 3), types=types)
    each("SerializeTensor", tensor=X(), types=types)
    each("SerializeTensor", tensor=X(0, 2), types=types)


@graph("ParseTensor", "there and back", types=PLAIN)
def tensor_bytes(k, dtype):
    t = k.raw.SerializeTensor(tensor=k.x(X(2, 3), dtype))
    return k.raw.ParseTensor(serialized=t, out_type=dtype)


each("ParseTensor", "another type", out_type="int32", fails=True,
     serialized=s0(b"\x08\x01\x12\x00\x22\x04\0\0\0\0"))
each("ParseTensor", "no tensor", out_type="int32", serialized=s0("abc"),
     fails=True)
each("ParseTensor", "a vector", out_type="int32", serialized=s("a"),
     fails=True)

PACK = zlib.compressobj(wbits=31)
GZIP = PACK.compress(b"gzip" * 100) + PACK.flush()
for kind, data in (("", b"plain"), ("ZLIB", zlib.compress(b"zlib" * 100)),
                   ("GZIP", GZIP), ("ZLIB", zlib.compress(b"")),
                   ("ZLIB", zlib.compress(bytes(range(256)) * 4000))):
    each("DecodeCompressed", "%s %d" % (kind, len(data)), bytes=s(data, data),
         compression_type=kind)
each("DecodeCompressed", "no zlib", bytes=s("x" * 20), fails=True,
     compression_type="ZLIB")
each("DecodeCompressed", "no gzip", bytes=s("x" * 20), fails=True,
     compression_type="GZIP")
for little in (True, False):
    for kind in ("float32", "float64", "int8", "int16", "int32", "int64",
                 "uint8", "uint16", "bfloat16"):
        texts = ["12345678abcdefgh"] * 2 + [""][:little]
        each("DecodePaddedRaw", "%s %s" % (kind, little), out_type=kind,
             input_bytes=s(*texts), fixed_length=n0(16, "int32"),
             little_endian=little)
each("DecodePaddedRaw", "cut", input_bytes=s("12345678", "1"),
     fixed_length=n0(4, "int32"), out_type="int16")
for bad in (3, 0, -4):
    each("DecodePaddedRaw", "length %d" % bad, input_bytes=s("12345678"),
         fixed_length=n0(bad, "int32"), out_type="int16", fails=True)

# --- Distances, n-grams, fingerprints -----------------------------------------


def edit(label, hypothesis, truth, shape_h, shape_t, dtypes=("int64",), **kw):
    for dtype in dtypes:
        def make(rows):
            v = np.array([r[-1] for r in rows])
            v = np.array([b"%d" % e for e in v], object) if dtype == "string" \
                else v.astype(dtype)
            return np.array([r[:-1] for r in rows],
                            np.int64).reshape(len(rows), len(shape_h)), v
        h, t = make(hypothesis), make(truth)
        for normalize in (True, False):
            each("EditDistance", "%s %s %s" % (label, dtype, normalize),
                 hypothesis_indices=h[0], hypothesis_values=h[1],
                 hypothesis_shape=i64(shape_h), truth_indices=t[0],
                 truth_values=t[1], truth_shape=i64(shape_t),
                 normalize=normalize, **kw)


H = [(0, 0, 1), (0, 1, 2), (0, 2, 3), (1, 0, 5), (3, 0, 1), (3, 1, 0)]
T = [(0, 0, 1), (0, 1, 3), (2, 0, 5), (2, 1, 5), (3, 0, 0), (3, 1, 1),
     (3, 2, 1)]
edit("rows", H, T, [4, 3], [5, 3],
     ["int64", "int32", "float32", "float64", "float16", "string", "int8",
      "uint8", "bool", "complex64"])
edit("nothing", [], [], [2, 3], [2, 3])
edit("no hypothesis", [], T, [4, 3], [5, 3])
edit("no truth", H, [], [4, 3], [5, 3])
edit("deep", [(0, 1, 0, 7), (1, 1, 0, 8)], [(0, 1, 0, 7), (1, 1, 0, 9)],
     [2, 2, 1], [2, 2, 1])
edit("outside", [(9, 0, 1)], [(0, 0, 1)], [4, 3], [4, 3], fails=True)
each("EditDistance", "ranks", hypothesis_indices=i64([[0, 0]]),
     hypothesis_values=i64(1), hypothesis_shape=i64(1, 1),
     truth_indices=i64([[0, 0, 0]]), truth_values=i64(1),
     truth_shape=i64(1, 1, 1), fails=True)
each("EditDistance", "few values", hypothesis_indices=i64([[0, 0]]),
     hypothesis_values=i64([]), hypothesis_shape=i64(1, 1),
     truth_indices=i64([[0, 0]]), truth_values=i64(1),
     truth_shape=i64(1, 1), fails=True)

for widths, pad, short in (([2], 0, False), ([2, 3], -1, False),
                           ([3], 1, False), ([4], 0, True), ([], 2, True),
                           ([1], 5, False), ([6], 1, True)):
    for kind in (np.int32, np.int64):
        each("StringNGrams", "%s %s %s %s" % (widths, pad, short,
                                              kind.__name__),
             data=s("a", "b", "cc", "d", "", "f"),
             data_splits=np.array([0, 3, 3, 4, 6], kind), separator="|",
             ngram_widths=widths, left_pad="<L", right_pad="R>",
             pad_width=pad, preserve_short_sequences=short)
for splits in ([1, 2], [0, 3], [0, 2, 1, 2], [0, 1]):
    each("StringNGrams", "splits %s" % splits, data=s("a", "b"),
         data_splits=i64(splits), separator=" ", ngram_widths=[2],
         left_pad="", right_pad="", pad_width=0,
         preserve_short_sequences=False, fails=True)
each("StringNGrams", "no width", data=s("a", "b"), data_splits=i64(0, 2),
     separator=" ", ngram_widths=[0], left_pad="", right_pad="", pad_width=0,
     preserve_short_sequences=False, fails=True)
each("StringNGrams", "nothing", data=s(), data_splits=i64(0, 0),
     separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=-1,
     preserve_short_sequences=False)

each("Fingerprint", data=X(3, 4), method=s0("farmhash64"), types=PLAIN)
each("Fingerprint", data=X(3), method=s0("farmhash64"), types=PLAIN)
each("Fingerprint", data=X(2, 2, 3), method=s0("farmhash64"),
     types=["int32", "string"])
each("Fingerprint", "a scalar", data=X(), method=s0("farmhash64"),
     types=["int32"], fails=True)
each("Fingerprint", "unknown", data=X(2), method=s0("md5"), types=["int32"],
     fails=True)

# --- JSON ---------------------------------------------------------------------

for text in ('{}', '{"features": {}}',
             '{"features": {"feature": {"a": {"floatList": {"value": '
             '[1, 2.5, -3e2, "NaN", "4"]}}}}}',
             '{"features": {"feature": {"b": {"int64_list": {"value": '
             '[1, "-9007199254740993", 3]}}, "c": {"bytesList": {"value": '
             '["YWJj", ""]}}, "d": {}, "e": {"floatList": {}}}}}'):
    each("DecodeJSONExample", text[:60], json_examples=s(text, text))
