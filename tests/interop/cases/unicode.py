"""Text in the encodings of the world."""
from cases import each, i32, i64, s, s0

TEXTS = ["", "abc", "\u00e9t\u00e9 \u4f60\u597d \U0001f600", "\x00\x1f\t",
         b"\xff", b"a\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80x",
         b"\xc0\x80", b"ab\xffcd\xfe", b"\xf4\x90\x80\x80", "\ufeffx"]
WIDE = ["abc".encode("utf-16-be"), "\u00e9\U0001f600".encode("utf-16-be"),
        b"\xd8\x01", b"\xdc\x37\x00a", b"\x00a\x00", b"\xfe\xff\x00a",
        b"\xff\xfea\x00"]
QUADS = ["a\U0001f600".encode("utf-32-be"), b"\x00\x11\x00\x00",
         b"\x00\x00\xd8\x00", b"\x00\x00\x00", b"\x00\x00\xfe\xff\0\0\0a"]

for encoding, texts in (("UTF-8", TEXTS), ("utf-8", TEXTS),
                        ("UTF-16-BE", WIDE), ("UTF-16", WIDE),
                        ("UTF-16LE", WIDE), ("UTF-32-BE", QUADS),
                        ("UTF-32", QUADS), ("US-ASCII", TEXTS),
                        ("ISO-8859-1", TEXTS), ("latin1", TEXTS)):
    for errors in ("replace", "ignore"):
        for controls in (False, True):
            label = "%s %s%s" % (encoding, errors, " controls" * controls)
            both = dict(input=s(*texts), input_encoding=encoding,
                        errors=errors, replace_control_characters=controls)
            for kind in ("int32", "int64"):
                each("UnicodeDecode", label + " " + kind, Tsplits=kind,
                     **both)
            # With splits of int32 TensorFlow's kernel ends the process.
            each("UnicodeDecodeWithOffsets", label, **both)
            for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
                each("UnicodeTranscode", label + " to " + out,
                     output_encoding=out, **both)
for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets"):
    each(op, "strict", input=s("abc", "\u00e9"), input_encoding="UTF-8",
         errors="strict")
    each(op, "strict and bad", input=s("abc", b"\xff"), errors="strict",
         input_encoding="UTF-8", fails=True)
    each(op, "another replacement", input=s(b"a\xffb"),
         input_encoding="UTF-8", replacement_char=0x1f600)
    each(op, "no encoding", input=s("a"), input_encoding="nonsense",
         fails=True)
    each(op, "no such character", input=s("a"), input_encoding="UTF-8",
         replacement_char=0x110000, fails=True)
    each(op, "a scalar", input=s0("ab"), input_encoding="UTF-8")
each("UnicodeTranscode", "strict and bad", input=s("abc", b"\xff"),
     errors="strict", input_encoding="UTF-8", output_encoding="UTF-8",
     fails=True)
for point in (32, 0xd800, 0x1f600):
    for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        each("UnicodeTranscode", "replaced by %x to %s" % (point, out),
             input=s(b"a\xffb\xff\xff"), input_encoding="UTF-8",
             output_encoding=out, replacement_char=point)

POINTS = [97, 0x10ffff, 0x4f60, 0, 0x1f600, 0xe9]
BAD = [97, 0x110000, -1, 0xd800, 0xdc00, 0xfffe, 0xfdd0, 98]
for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
    for make in (i32, i64):
        each("UnicodeEncode", "%s %s" % (out, make([0]).dtype),
             input_values=i32(POINTS[:1] + POINTS[2:]),
             input_splits=make(0, 2, 2, 5), output_encoding=out)
    for errors in ("replace", "ignore"):
        each("UnicodeEncode", "%s %s" % (out, errors), input_values=i32(BAD),
             input_splits=i64(0, 3, 8), output_encoding=out, errors=errors,
             replacement_char=63)
for bad in BAD[1:4]:
    each("UnicodeEncode", "strict %x" % bad, input_values=i32(97, bad),
         input_splits=i64(0, 2), output_encoding="UTF-8", errors="strict",
         fails=True)
each("UnicodeEncode", "no rows", input_values=i32([]), input_splits=i64([0]),
     output_encoding="UTF-8")
each("UnicodeEncode", "splits outside", input_values=i32(97),
     input_splits=i64(0, 5), output_encoding="UTF-8", fails=True)
each("UnicodeEncode", "splits that fall", input_values=i32(97, 98),
     input_splits=i64(0, 2, 1, 2), output_encoding="UTF-8", fails=True)
each("UnicodeEncode", "splits from 1", input_values=i32(97),
     input_splits=i64(1, 1), output_encoding="UTF-8", fails=True)
each("UnicodeEncode", "no splits", input_values=i32(97),
     input_splits=i64([]), output_encoding="UTF-8", fails=True)

each("UnicodeScript", input=i32([[97, 0x4f60, 0x5d0], [0x3b1, 0x416, 48]]))
each("UnicodeScript", "none", input=i32(-1, 0x110000, 0xe000, 0x10ffff))
LETTERS = s("aBc", "\u00c9T\u00e9", "stra\u00dfe", "\u0130\u0131", "\u03a3\u03c2",
            "\u0416\u0436 \U00010400", "\ufb03", b"\xff A")
for op in ("StringLower", "StringUpper"):
    each(op, "utf-8", input=LETTERS, encoding="utf-8")
    each(op, "bytes", input=LETTERS)
    each(op, "another encoding", input=LETTERS, encoding="latin1",
         fails=True)
