"""Strings."""
import numpy as np

from cases import X, each, f32, i32, i64, n0, s, s0

each("StringJoin", inputs=[s("a", "b"), s("c", "d")], separator="-")
each("StringJoin", "a scalar with a vector", inputs=[s0("x/"), s("c", "d")])
each("StringJoin", "scalars", inputs=[s0("x"), s0("y"), s0("z")])
each("StringJoin", "shapes differ", inputs=[s("a"), s("c", "d")], fails=True)
each("AsString", input=X(5), types=["float32", "float64", "int8", "int32",
                                    "int64", "bool"])
each("AsString", "precise", input=X(5), types=["float32", "float64"],
     precision=3, width=9)
each("AsString", "scientific", input=X(5), types=["float32"],
     scientific=True)
each("StringToNumber", string_tensor=s("1", "-2.5", " 3e2 "),
     out_type="float32")
each("StringToNumber", string_tensor=s("1", "-2"), out_type="int64")
each("StringToNumber", "bad", string_tensor=s("x"), out_type="float32",
     fails=True)
each("StringLength", input=s("", "abc", "\u00e9"))
each("StringToHashBucketFast", input=s("a", "", "hello world"),
     num_buckets=1000)
each("StringToHashBucket", string_tensor=s("a", "", "hello"),
     num_buckets=1000)
each("StringToHashBucketStrong", input=s("a", "hello"), num_buckets=1000,
     key=[123, 456])
each("StringLower", input=s("aBc"))
each("StringUpper", input=s("aBc"))
each("StringStrip", input=s("  aBc \n"))
each("Substr", input=s("hello", "world"), pos=n0(1, "int32"),
     len=n0(3, "int32"))
each("RegexReplace", input=s("abcabc"), pattern="b.", rewrite="X")
each("RegexFullMatch", input=s("abc", "abd"), pattern=s0("ab[c]"))
each("ReduceJoin", inputs=s("a", "b", "c"), reduction_indices=i32([0]),
     separator=",")
each("EncodeBase64", input=s("hello", ""))
each("DecodeBase64", input=s("aGVsbG8"))
each("StringFormat", inputs=[f32(1, 2)], template="x %s y")
each("DecodeRaw", bytes=s("abcdefgh"), out_type="int32")
each("StringSplit", input=s("a b", "c"), delimiter=s0(" "))
for sep in (" ", "", ", ", "bc"):
    for most in (-1, 1):
        each("StringSplitV2", "at '%s' most %d" % (sep, most),
             input=s("a b  c", "", " x ", "a, b, c", "abcbc"), sep=s0(sep),
             maxsplit=most)
    each("StringSplit", "at any of '%s'" % sep,
         input=s("a b  c", "", " x ", "a, b, c", "abcbc"), delimiter=s0(sep))
    each("StringSplit", "empty ones too, at any of '%s'" % sep,
         input=s("a b  c", "", " x ", "a, b, c"), delimiter=s0(sep),
         skip_empty=False)
each("StringSplitV2", "a matrix", input=np.array([[b"a b"]], object),
     sep=s0(" "), fails=True)
for n, ids in ((2, [0, 1, 0]), (4, [3, 0, 3])):
    each("UnsortedSegmentJoin", inputs=s("a", "b", "c"),
         segment_ids=i32(ids), num_segments=n0(n, "int32"), separator="-")
each("UnsortedSegmentJoin", "outside", inputs=s("a", "b"),
     segment_ids=i64([0, 2]), num_segments=n0(2, "int64"), fails=True)
for axes in ([0, 1], [1, 0], [1], [-2]):
    each("ReduceJoin", "axes %s" % axes,
         inputs=np.array([[b"a", b"b"], [b"c", b"d"]], object),
         reduction_indices=i32(axes), keep_dims=len(axes) == 1)
for unit in ("BYTE", "UTF8_CHAR"):
    each("Substr", unit, input=s("\u00e9t\u00e9s", "abc"),
         pos=i32([-3, 1]), len=i32([2, 9]), unit=unit)
    each("StringLength", unit, input=s("\u00e9t\u00e9s", "\u4f60"), unit=unit)
each("Substr", "outside", input=s("ab"), pos=i64([3]), len=i64([1]),
     fails=True)
each("DecodeBase64", "no letter", input=s("a+/b"), fails=True)
each("StringFormat", "long", inputs=[f32(range(20)), s("x", 'y"')],
     template="{} and {}", placeholder="{}", summarize=2)
each("StringToNumber", "no integer", string_tensor=s("1.5"),
     out_type="int32", fails=True)
TEXTS = s("", "abc", "aaa", "s3://b/x", "foo123bar45", "\u00e9t\u00e9",
          "a\nb", "x.y")
for pattern in ("^s3://.*", "[a-c]+", "(a|b)*c?", "\\w+\\d*", "(?i)ABC", "\\b",
                "\u00e9.*", "a{2,3}?", "[^\\d]+", "(?s).*", "x*",
                "\\pL+", "[\\p{Nd}x]", "\\P{Lu}", "(?i)\u00c9"):
    each("StaticRegexFullMatch", pattern, input=TEXTS, pattern=pattern)
    each("RegexFullMatch", pattern, input=TEXTS, pattern=s0(pattern))
    for every in (True, False):
        each("StaticRegexReplace", "%s %d" % (pattern, every), input=TEXTS,
             pattern=pattern, rewrite="<\\0>", replace_global=every)
    each("RegexReplace", pattern, input=TEXTS, pattern=s0(pattern),
         rewrite=s0("[\\0]"))
each("RegexReplace", "groups", input=s("ab", "cd ef"),
     pattern=s0("(\\w)(\\w)"), rewrite=s0("\\2\\1"))
for pattern in ("(", "a**", "[b-a]", "\\1"):
    each("RegexFullMatch", "bad " + pattern, input=TEXTS,
         pattern=s0(pattern), fails=True)
