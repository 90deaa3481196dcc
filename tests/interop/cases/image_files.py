"""Images and sounds as files."""
import struct
import zlib

import numpy as np

from cases import each, graph, i32, n0, s, s0


def png(width, height, depth, kind, rows, extra=b""):
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) +
            chunk(b"IEND", b""))


def palette(*colors):
    data = bytes(v for c in colors for v in c)
    return (struct.pack(">I", len(data)) + b"PLTE" + data +
            struct.pack(">I", zlib.crc32(b"PLTE" + data)))


BYTES = bytes(range(7, 255, 5))
PNGS = {"gray": png(4, 2, 8, 0, [BYTES[:4], BYTES[4:8]]),
        "alpha": png(2, 2, 8, 4, [BYTES[:4], BYTES[4:8]]),
        "rgb": png(2, 2, 8, 2, [BYTES[:6], BYTES[6:12]]),
        "rgba": png(2, 2, 8, 6, [BYTES[:8], BYTES[8:16]]),
        "gray16": png(2, 2, 16, 0, [BYTES[:4], BYTES[4:8]]),
        "rgb16": png(2, 2, 16, 2, [BYTES[:12], BYTES[12:24]]),
        "bits": png(8, 2, 1, 0, [b"\xa5", b"\x0f"]),
        "palette": png(2, 2, 8, 3, [b"\0\1", b"\1\0"],
                       palette((1, 2, 3), (200, 100, 50)))}
for name, data in PNGS.items():
    for channels in (0, 1, 3, 4):
        for dtype in ("uint8", "uint16"):
            each("DecodePng", "%s %d %s" % (name, channels, dtype),
                 contents=s0(data), channels=channels, dtype=dtype)
    each("DecodeImage", name, contents=s0(data))
    each("DecodeImage", name + " float", contents=s0(data), dtype="float32")
for label, data in (("cut", PNGS["rgb"][:-20]), ("no image", b"abc"),
                    ("empty", b""), ("head", PNGS["rgb"][:20])):
    each("DecodePng", label, contents=s0(data), fails=True)
    each("DecodeImage", label, contents=s0(data), fails=True)
each("DecodePng", "a vector", contents=s(PNGS["rgb"]), fails=True)
each("DecodePng", "two channels", contents=s0(PNGS["rgb"]), channels=2,
     fails=True)

PICTURE = (np.indices((20, 30, 3)).sum(0) * 5 % 256).astype(np.uint8)
for channels in (1, 2, 3, 4):
    image = np.resize(PICTURE, (6, 5, channels))
    each("EncodePng", "%d channels" % channels, image=image)
    each("EncodePng", "%d channels of 16 bits" % channels,
         image=image.astype(np.uint16) * 257, compression=3)
each("EncodePng", "a matrix", image=PICTURE[0], fails=True)
each("EncodePng", "five channels", image=np.zeros((2, 2, 5), np.uint8),
     fails=True)
each("EncodeJpeg", image=PICTURE)
each("EncodeJpeg", "gray", image=PICTURE[:, :, :1], quality=50)
each("EncodeJpeg", "all options", image=PICTURE, quality=80, progressive=True,
     optimize_size=True, chroma_downsampling=False, density_unit="cm",
     x_density=100, y_density=99)
each("EncodeJpeg", "a matrix", image=PICTURE[0], fails=True)
each("EncodeJpegVariableQuality", images=PICTURE, quality=n0(70, "int32"))
each("EncodeJpegVariableQuality", "too good", images=PICTURE,
     quality=n0(101, "int32"), fails=True)


def jpeg(k, **kw):
    return k.raw.EncodeJpeg(image=k.x(PICTURE), **kw)


for channels_ in (0, 1, 3):
    for ratio_ in (1, 2, 4, 8):
        for dct_ in ("", "INTEGER_ACCURATE"):
            graph("DecodeJpeg", "%d %d %s" % (channels_, ratio_, dct_))(
                lambda k, a=(channels_, ratio_, dct_): k.raw.DecodeJpeg(
                    contents=jpeg(k), channels=a[0], ratio=a[1],
                    dct_method=a[2]))
graph("DecodeImage", "a JPEG")(
    lambda k: k.raw.DecodeImage(contents=jpeg(k)))
graph("DecodePng", "a JPEG")(lambda k: k.raw.DecodePng(contents=jpeg(k)))
for type_ in ("int32", "int64"):
    graph("ExtractJpegShape", type_)(
        lambda k, t=type_: k.raw.ExtractJpegShape(contents=jpeg(k),
                                                  output_type=t))
for window_ in ([0, 0, 20, 30], [3, 4, 5, 6], [19, 29, 1, 1]):
    graph("DecodeAndCropJpeg", str(window_))(
        lambda k, w=window_: k.raw.DecodeAndCropJpeg(
            contents=jpeg(k), crop_window=k.x(i32(w))))
each("ExtractJpegShape", "no JPEG", contents=s0("abc"), fails=True)
each("DecodeJpeg", "no image", contents=s0("abc"), fails=True)
each("DecodeJpeg", "a bad ratio", contents=s0("abc"), ratio=3, fails=True)

GIF = (b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x01\x02\x03\xff\xfe\xfd"
       b"!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00"
       b"\x02\x02D\x01\x00;")
TWO = GIF[:-1] + GIF[GIF.index(b",", 19):]
for label, data in (("one", GIF), ("two", TWO)):
    each("DecodeGif", label, contents=s0(data))
    for expand in (True, False):
        each("DecodeImage", "GIF of %s %s" % (label, expand),
             contents=s0(data), expand_animations=expand)
each("DecodePng", "a GIF", contents=s0(GIF))
each("DecodePng", "a GIF of two", contents=s0(TWO), fails=True)
each("DecodeGif", "no image", contents=s0("abc"), fails=True)


def bmp(width, height, channels):
    row = (width * channels + 3) // 4 * 4
    size = row * abs(height)
    return (b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + size, 0, 54, 40,
                                width, height, 1, channels * 8, 0, size, 0,
                                0, 0, 0) + bytes(i % 251 for i in range(size)))


for shape in ((3, 2, 3), (3, -2, 3), (2, 2, 4), (5, 3, 1)):
    each("DecodeBmp", str(shape), contents=s0(bmp(*shape)))
    each("DecodeImage", "BMP %s" % (shape,), contents=s0(bmp(*shape)))
each("DecodeBmp", "cut", contents=s0(bmp(3, 2, 3)[:-5]), fails=True)
each("DecodeBmp", "a PNG", contents=s0(PNGS["rgb"]), fails=True)
each("DecodePng", "a BMP", contents=s0(bmp(3, 2, 3)), fails=True)

WAVE = np.sin(np.arange(40, dtype=np.float32)).reshape(20, 2) * 1.1
each("EncodeWav", audio=WAVE, sample_rate=n0(8000, "int32"))
each("EncodeWav", "a vector", audio=WAVE[0], sample_rate=n0(8000, "int32"),
     fails=True)
for channels_, samples_ in ((-1, -1), (1, 7), (3, 30), (2, 20)):
    graph("DecodeWav", "%d %d" % (channels_, samples_))(
        lambda k, a=(channels_, samples_): k.raw.DecodeWav(
            contents=k.raw.EncodeWav(audio=k.x(WAVE),
                                     sample_rate=k.x(n0(8000, "int32"))),
            desired_channels=a[0], desired_samples=a[1]))
each("DecodeWav", "no sound", contents=s0("abc"), fails=True)
