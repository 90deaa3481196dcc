"""Strings."""
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

assert i64
