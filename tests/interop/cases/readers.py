"""Readers, and the ops that fit a checkpoint to another vocabulary."""
import gzip
import struct
import zlib

import numpy as np

from cases import f32, graph, i64, n0, s, s0


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return (crc >> 15 | crc << 17) + 0xa282ead8 & 0xffffffff


def records(*items):
    out = b""
    for item in items:
        size = struct.pack("<Q", len(item))
        out += size + struct.pack("<I", crc32c(size)) + item
        out += struct.pack("<I", crc32c(item))
    return out


FILES = {"text": [b"one\r\ntwo\n\nthree", b"", b"last\n"],
         "fixed": [b"HH" + b"abcdefghij" + b"F", b"HHF", b"HHxyzF"],
         "records": [records(b"a", b"", b"ccc"), records(), records(b"d")]}


def write(k, files):
    """The names of these files, once they are written."""
    names = []
    for data in files:
        name = k.path(k.name())
        with open(name, "wb") as f:
            f.write(data)
        names.append(name)
    return names


def reading(k, kind, files, reads, old=False, close=True, **attrs):
    """The keys without their folder, and the values, of so many reads."""
    raw, v2 = k.raw, "" if old else "V2"
    names = write(k, files)
    queue = getattr(raw, "FIFOQueue" + v2)(component_types=["string"],
                                           shared_name=k.name())
    reader = getattr(raw, kind + v2)(shared_name=k.name(), **attrs)
    done = getattr(raw, "QueueEnqueueMany" + v2)(
        handle=queue, components=[k.x(s(*names))])
    if close:
        with k.after(done):
            done = getattr(raw, "QueueClose" + v2)(handle=queue)
    out = []
    for _ in range(reads):
        with k.after(done):
            key, value = getattr(raw, "ReaderRead" + v2)(
                reader_handle=reader, queue_handle=queue)
        out += [short(k, key), value]
        done = value
    with k.after(done):
        out += [getattr(raw, "ReaderNumRecordsProduced" + v2)(
                    reader_handle=reader),
                getattr(raw, "ReaderNumWorkUnitsCompleted" + v2)(
                    reader_handle=reader)]
    return out


def short(k, key):
    """Without what differs between the two sides."""
    return k.raw.StaticRegexReplace(input=key, pattern=".*_", rewrite="",
                                    replace_global=True)


READERS = [("TextLineReader", FILES["text"], 5, {}),
           ("TextLineReader", FILES["text"], 3, {"skip_header_lines": 1}),
           ("FixedLengthRecordReader", FILES["fixed"], 4,
            {"header_bytes": 2, "record_bytes": 3, "footer_bytes": 1}),
           ("FixedLengthRecordReader", FILES["fixed"], 4,
            {"header_bytes": 2, "record_bytes": 4, "footer_bytes": 1,
             "hop_bytes": 2}),
           ("IdentityReader", [b"x", b"y"], 2, {}),
           ("WholeFileReader", [b"x\0y", b""], 2, {}),
           ("TFRecordReader", FILES["records"], 4, {}),
           ("TFRecordReader", [gzip.compress(e) for e in FILES["records"]],
            4, {"compression_type": "GZIP"}),
           ("TFRecordReader", [zlib.compress(e) for e in FILES["records"]],
            4, {"compression_type": "ZLIB"})]
ALL = "ReaderRead ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted "
NEW = "ReaderReadV2 ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompletedV2 "
for kind_, files_, count_, attrs_ in READERS:
    if kind_ == "IdentityReader":
        continue  # its values are names of files
    # Of the old forms TensorFlow has left but one.
    for old_ in (False, True)[:1 + (kind_ == "WholeFileReader")]:
        graph((ALL if old_ else NEW) + kind_ + "V2" * (not old_),
              "%s %s" % (kind_, attrs_))(
            lambda k, a=(kind_, files_, count_, old_), b=attrs_:
            reading(k, *a, **b))
    graph("ReaderReadV2", "%s %s past the end" % (kind_, attrs_), fails=True)(
        lambda k, a=(kind_, files_, count_ + 1), b=attrs_:
        reading(k, *a, **b))
WHOLE = records(b"abc", b"def")
for name_, data_ in (("end", WHOLE[:-2] + b"xx"), ("no", b"x" * 40),
                     ("cut", WHOLE[:-3]), ("cut inside", WHOLE[:-6]),
                     ("cut head", WHOLE[:27]), ("short", b"abc"),
                     ("head", WHOLE[:20] + b"x" + WHOLE[21:])):
    graph("ReaderReadV2", "damaged " + name_, fails=True)(
        lambda k, d=data_: reading(k, "TFRecordReader", [d], 2))


@graph("ReaderReadV2", "no file", fails=True)
def no_file(k):
    queue = k.raw.FIFOQueueV2(component_types=["string"],
                              shared_name=k.name())
    with k.after(k.raw.QueueEnqueueV2(handle=queue, components=[
            k.x(s0(k.path("nothing_here")))])):
        return k.raw.ReaderReadV2(
            reader_handle=k.raw.TextLineReaderV2(shared_name=k.name()),
            queue_handle=queue)


@graph("ReaderReadV2", "a queue of numbers", fails=True)
def numbers(k):
    queue = k.raw.FIFOQueueV2(component_types=["int32"],
                              shared_name=k.name())
    with k.after(k.raw.QueueEnqueueV2(handle=queue, components=[
            k.x(n0(1, "int32"))])):
        return k.raw.ReaderReadV2(
            reader_handle=k.raw.TextLineReaderV2(shared_name=k.name()),
            queue_handle=queue)


@graph("ReaderReadUpTo ReaderReadUpToV2", "by twos")
def by_twos(k):
    queue = k.raw.FIFOQueueV2(component_types=["string"],
                              shared_name=k.name())
    reader = k.raw.TextLineReaderV2(shared_name=k.name())
    done = k.raw.QueueEnqueueManyV2(handle=queue, components=[
        k.x(s(*write(k, FILES["text"])))])
    out = []
    for n in (2, 0, 5, 1):
        with k.after(done):
            keys, values = k.raw.ReaderReadUpToV2(
                reader_handle=reader, queue_handle=queue,
                num_records=k.x(n0(n, "int64")))
        out += [short(k, keys), values]
        done = values
    return out


def identity(k):
    raw, v2 = k.raw, "V2"
    queue = getattr(raw, "FIFOQueue" + v2)(component_types=["string"],
                                           shared_name=k.name())
    reader = getattr(raw, "IdentityReader" + v2)(shared_name=k.name())
    done = getattr(raw, "QueueEnqueueMany" + v2)(
        handle=queue, components=[k.x(s("A", "B", "C"))])

    def act(name, after, **args):
        with k.after(after):
            return getattr(raw, name + v2)(reader_handle=reader, **args)
    key, value = act("ReaderRead", done, queue_handle=queue)
    state = act("ReaderSerializeState", value)
    key2, value2 = act("ReaderRead", state, queue_handle=queue)
    restored = act("ReaderRestoreState", value2, state=state)
    count = act("ReaderNumRecordsProduced", restored)
    reset = act("ReaderReset", count)
    return [key, value, state, key2, value2, count,
            act("ReaderNumWorkUnitsCompleted", reset)]


VERBS = "IdentityReader ReaderSerializeState ReaderRestoreState ReaderReset "
graph(VERBS.replace(" ", "V2 "), "state")(identity)


@graph("ReaderSerializeStateV2", "of lines", fails=True)
def lines_state(k):
    return k.raw.ReaderSerializeStateV2(
        reader_handle=k.raw.TextLineReaderV2(shared_name=k.name()))


@graph("ReaderRestoreStateV2", "no state", fails=True)
def bad_state(k):
    return k.raw.ReaderRestoreStateV2(
        reader_handle=k.raw.IdentityReaderV2(shared_name=k.name()),
        state=k.x(s("a")))


# --- Vocabularies -------------------------------------------------------------


def remap(label, rows, columns, values, shape=(5, 3), **kw):
    @graph("LoadAndRemapMatrix", label, **kw)
    def _(k):
        path = k.x(s0(k.path("remap_" + k.name())))
        save = k.raw.SaveV2(
            prefix=path, tensor_names=k.x(s("m", "i", "v")),
            shape_and_slices=k.x(s("", "", "")),
            tensors=[k.x(np.arange(15, dtype=np.float32).reshape(5, 3)),
                     k.x(np.ones((2, 2), np.int32)), k.x(f32(1, 2))])
        with k.after(save):
            return k.raw.LoadAndRemapMatrix(
                ckpt_path=path, old_tensor_name=k.x(s0(
                    label if label in ("i", "v", "nothing") else "m")),
                row_remapping=k.x(i64(rows)), col_remapping=k.x(i64(columns)),
                initializing_values=k.x(f32(values)), num_rows=shape[0],
                num_cols=shape[1],
                max_rows_in_memory=2 if "slowly" in label else -1)


remap("all", [4, 3, 2, 1, 0], [], [])
remap("some", [1, -1, 4], [], [7, 8, 9], (3, 3))
remap("slowly", [1, -1, 4], [], [7, 8, 9], (3, 3))
remap("columns", [1, -1, 4], [2, -1], [6, 7, 8, 9], (3, 2))
remap("nothing of it", [-1, -1], [], [1] * 6, (2, 3))
remap("few values", [1, -1], [], [7], (2, 3), fails=True)
remap("many values", [1, 0], [], [7], (2, 3), fails=True)
remap("twice", [1, 1], [], [], (2, 3), fails=True)
remap("other size", [1, 2], [], [], (3, 3), fails=True)
remap("other columns", [1, 2], [0], [], (2, 3), fails=True)
remap("width", [1, 2], [], [], (2, 4), fails=True)
remap("i", [1, 0], [], [], (2, 2), fails=True)
remap("v", [1, 0], [], [], (2, 2), fails=True)
remap("nothing", [1, 0], [], [], (2, 2), fails=True)


def vocab(label, new, old, offset, count, size=-1, **kw):
    @graph("GenerateVocabRemapping", label, **kw)
    def _(k):
        new_name, old_name = write(k, [new, old])
        return k.raw.GenerateVocabRemapping(
            new_vocab_file=k.x(s0(new_name)), old_vocab_file=k.x(
                s0(k.path("none") if label == "no file" else old_name)),
            new_vocab_offset=offset, num_new_vocab=count, old_vocab_size=size)


NEW_WORDS, OLD_WORDS = b"a\nb\nc\nd\n", b"d\nx\r\nb"
vocab("all", NEW_WORDS, OLD_WORDS, 0, 4)
vocab("some", NEW_WORDS, OLD_WORDS, 1, 2)
vocab("none", NEW_WORDS, OLD_WORDS, 1, 0)
vocab("first old", NEW_WORDS, OLD_WORDS, 0, 4, 2)
vocab("too many", NEW_WORDS, OLD_WORDS, 2, 3, fails=True)
vocab("too large", NEW_WORDS, OLD_WORDS, 0, 4, 9, fails=True)
vocab("no file", NEW_WORDS, OLD_WORDS, 0, 4, fails=True)
vocab("doubled", NEW_WORDS, b"a\nb\na\n", 0, 4, fails=True)


def input_(k, **kw):
    base = k.path("input_" + k.name())
    for i, data in enumerate(FILES["records"]):
        if kw.get("compression_type") == "GZIP":
            data = gzip.compress(data)
        with open("%s.%d" % (base, i), "wb") as f:
            f.write(data)
    records_ = k.raw.RecordInput(file_pattern=base + ".*", batch_size=4,
                                 file_buffer_size=3, **kw)
    # The order is anyone's; an epoch has every record once.
    return k.tf.sort(k.raw.StringToHashBucketFast(input=records_,
                                                  num_buckets=1 << 40))


graph("RecordInput", "epochs", runs=2)(input_)
graph("RecordInput", "packed")(
    lambda k: input_(k, compression_type="GZIP"))
graph("RecordInput", "no files", fails=True)(
    lambda k: k.raw.RecordInput(file_pattern=k.path("nowhere.*")))
