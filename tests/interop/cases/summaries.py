"""Summaries, what is printed, and asserts."""
import numpy as np

from cases import (PLAIN, V, X, b, each, f32, graph, i32, n0, s, s0, u8)

REAL = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32",
        "int64", "uint8", "uint16", "uint32", "uint64"]
each("ScalarSummary", tags=s("a", "b/c", ""), values=V(1, 0, 7), types=REAL)
each("ScalarSummary", "a scalar", tags=s0("x"), values=X(), types=REAL)
each("ScalarSummary", "shapes", tags=s("x"), values=f32(1, 2), fails=True)
each("ScalarSummary", "shapes of many", tags=s("x", "y"),
     values=n0(1, "float32"), fails=True)
each("HistogramSummary", tag=s0("h"), values=X(50), types=REAL)
each("HistogramSummary", "wide", tag=s0("h"),
     values=f32(0, -1e-20, 1e30, -3e38, 1, 1, 1.1))
each("HistogramSummary", "nothing", tag=s0("h"), values=f32([]))
for bad in (np.nan, np.inf):
    each("HistogramSummary", "of %s" % bad, tag=s0("h"), values=f32(1, bad),
         fails=True)
each("HistogramSummary", "two tags", tag=s("h", "i"), values=f32(1),
     fails=True)
each("TensorSummaryV2", tag=s0("t"), tensor=X(2, 3), types=PLAIN,
     serialized_summary_metadata=s0(b"\x12\x01x"))
each("TensorSummaryV2", "no metadata", tag=s0("t"), tensor=X(), types=PLAIN,
     serialized_summary_metadata=s0(""))
each("TensorSummary", tensor=X(2), types=["float32"], compare="shapes")
each("MergeSummary", inputs=[s0(b"\x0a\x08\x0a\x01a\x15\0\0\0\x41"),
                             s(b"\x0a\x08\x0a\x01b\x15\0\0\0\x41", b"")])
each("MergeSummary", "doubled", inputs=[s0(b"\x0a\x08\x0a\x01a\x15\0\0\0A")]
     * 2, fails=True)
each("MergeSummary", "no summary", inputs=[s0(b"\x0a\x09x")], fails=True)
SOUND = np.sin(np.arange(60, dtype=np.float32)).reshape(2, 10, 3) * 1.2
each("AudioSummaryV2", "one", tag=s0("s"), tensor=SOUND,
     sample_rate=n0(8000, "float32"), max_outputs=1)
each("AudioSummaryV2", tag=s0("s"), tensor=SOUND,
     sample_rate=n0(44100, "float32"))
each("AudioSummaryV2", "mono", tag=s0("s"), tensor=SOUND[:, :, 0],
     sample_rate=n0(44100, "float32"))
each("AudioSummaryV2", "a vector", tag=s0("s"), tensor=f32(1, 2),
     sample_rate=n0(44100, "float32"), fails=True)
for depth in (1, 3, 4):
    each("ImageSummary", "depth %d" % depth, tag=s0("i"),
         tensor=X(4, 5, 6, depth, lo=0), types=["uint8", "float32", "float64",
                                                "float16"])
    each("ImageSummary", "below zero %d" % depth, tag=s0("i"), max_images=1,
         tensor=X(2, 5, 6, depth, special=True), types=["float32"])
each("ImageSummary", "dark", tag=s0("i"), tensor=V(np.zeros((1, 2, 2, 1))),
     types=["float32", "uint8"])
each("ImageSummary", "two channels", tag=s0("i"), types=["float32"],
     tensor=X(1, 2, 2, 2), fails=True)
each("Print", input=X(2), data=[f32(1, 2), s("x")], message="hello ",
     types=["float32", "string", "int32"])
each("Timestamp", compare="shapes")


@graph("PrintV2", "to a file")
def print_file(k):
    path = k.path("printed_" + k.name())
    p = k.raw.PrintV2(input=k.x(s0("text")), output_stream="file://" + path,
                      end="!\n")
    with k.after(p):
        return k.raw.ReadFile(filename=k.x(s0(path)))


for stream in ("stdout", "stderr", "log(info)", "log(warning)"):
    each("PrintV2", stream, input=s0("printed"), output_stream=stream)
each("PrintV2", "nowhere", input=s0("x"), output_stream="printer", fails=True)
each("PrintV2", "a vector", input=s("x"), fails=True)
for most in (3, -1, 0, 5):
    each("Assert", "says %d" % most, condition=b(False).reshape([]),
         data=[f32(1.5, -2, 1e10, 3), i32([[1, 2], [3, 4], [5, 6]]),
               s("a\nb", "c"), n0(7, "int64"), b(True, False, True, True, False),
               np.zeros((2, 2, 2), np.float16), np.zeros((0, 2), np.float32),
               u8(200, 3), np.array(2.25)], summarize=most, fails=True)


# --- Writers -------------------------------------------------------------------


def written(op, make):
    """How much a file grows by an event; its content has the time in it."""
    @graph(op, "to a file")
    def _(k):
        raw, folder = k.raw, k.path("events_" + k.name())
        w = raw.SummaryWriter(shared_name=k.name())
        done = raw.CreateSummaryFileWriter(
            writer=w, logdir=k.x(s0(folder)), max_queue=k.x(n0(9, "int32")),
            flush_millis=k.x(n0(100000, "int32")),
            filename_suffix=k.x(s0(".x")))

        def size(after):
            with k.after(after):
                done = raw.FlushSummaryWriter(writer=w)
            with k.after(done):
                found = raw.MatchingFiles(pattern=k.x(s0(folder + "/*.x")))
                return raw.StringLength(input=raw.ReadFile(filename=found[0]))
        before = size(done)
        with k.after(before):
            done = make(k, w, k.x(n0(5, "int64")))
        after = size(done)
        with k.after(after):
            done = raw.CloseSummaryWriter(writer=w)
        with k.after(done):
            return after - before


TAG = s0("tag")
written("SummaryWriter CreateSummaryFileWriter FlushSummaryWriter "
        "CloseSummaryWriter WriteScalarSummary", lambda k, w, step:
        k.raw.WriteScalarSummary(writer=w, step=step, tag=k.x(TAG),
                                 value=k.x(n0(3, "int32"))))
written("WriteSummary", lambda k, w, step: k.raw.WriteSummary(
    writer=w, step=step, tag=k.x(TAG), tensor=k.x(f32(1, 2)),
    summary_metadata=k.x(s0(b"\x12\x01x"))))
written("WriteHistogramSummary", lambda k, w, step:
        k.raw.WriteHistogramSummary(writer=w, step=step, tag=k.x(TAG),
                                    values=k.x(f32(1, 2, -3))))
written("WriteImageSummary", lambda k, w, step: k.raw.WriteImageSummary(
    writer=w, step=step, tag=k.x(TAG),
    tensor=k.x(np.ones((2, 3, 3, 1), np.float32)),
    bad_color=k.x(u8(1, 2, 3, 4))))
written("WriteAudioSummary", lambda k, w, step: k.raw.WriteAudioSummary(
    writer=w, step=step, tag=k.x(TAG), tensor=k.x(SOUND),
    sample_rate=k.x(n0(8000, "float32"))))
written("WriteRawProtoSummary", lambda k, w, step:
        k.raw.WriteRawProtoSummary(
            writer=w, step=step,
            tensor=k.x(s0(b"\x0a\x08\x0a\x01a\x15\0\0\0\x41"))))
written("WriteGraphSummary", lambda k, w, step: k.raw.WriteGraphSummary(
    writer=w, step=step, tensor=k.x(s0(b"\x22\x03\x08\xd8\x07"))))
written("ImportEvent", lambda k, w, step: k.raw.ImportEvent(
    writer=w, event=k.x(s0(b"\x10\x07"))))


@graph("WriteScalarSummary", "no file", fails=True)
def no_writer(k):
    return k.raw.WriteScalarSummary(
        writer=k.raw.SummaryWriter(shared_name=k.name()),
        step=k.x(n0(5, "int64")), tag=k.x(TAG), value=k.x(n0(3, "int32")))
