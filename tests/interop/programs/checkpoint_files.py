"""Files of our store/ beside TensorFlow's own: checkpoints, records, events.

Run by ../test_checkpoint_files.py, in a process that has TensorFlow.  Every test
runs BUNDLE_PEER, which reads and writes with our code, on files of TensorFlow
and the other way round; no server is needed.  What both write for the same
tensors is compared byte for byte.
"""
import filecmp
import hashlib
import os
import subprocess

import numpy as np
import pytest
import tensorflow as tf

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32",
         "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64",
         "complex128", "qint8", "quint8", "qint16", "quint16", "qint32"]
SHAPES = [(), (3,), (0, 4), (2, 3, 4), (1, 1, 2, 1, 5)]


def peer(*args, code=0):
    """Runs our side; returns what it printed."""
    done = subprocess.run([os.environ["BUNDLE_PEER"]] + [str(a) for a in args],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def raw(tensor):
    """The bytes of a tensor as they lie in memory."""
    if tensor.dtype == tf.string:
        return ",".join(s.hex() for s in np.ravel(tensor.numpy()).tolist())
    if tensor.dtype.is_quantized:
        tensor = tf.bitcast(tensor, {1: tf.uint8, 2: tf.uint16,
                                     4: tf.uint32}[tensor.dtype.size])
    return tensor.numpy().tobytes().hex()


def describe(name, tensor):
    """A line as `bundle_peer dump` prints it."""
    dtype = tf.dtypes.as_dtype(tensor.dtype)
    names = {"float16": "half", "float32": "float", "float64": "double"}
    shape = "[%s]" % ",".join(str(d) for d in tensor.shape)
    return "%s %s %s %s" % (name.encode().hex(),
                            names.get(dtype.name, dtype.name), shape,
                            raw(tensor))


def random_tensor(rng, name, shape):
    dtype = tf.dtypes.as_dtype(name)
    high = 2 if name == "bool" else 256
    flat = rng.integers(0, high, list(shape) + [dtype.size], dtype=np.uint8)
    if name == "bool":
        return tf.constant(flat.reshape(shape).astype(bool))
    if dtype.size == 1:
        return tf.bitcast(tf.constant(flat.reshape(shape)), dtype)
    return tf.bitcast(tf.constant(flat), dtype)


def everything():
    """[(name, slice, tensor)], sorted by name as our copy writes them."""
    rng = np.random.default_rng(1)
    found = []
    for name in TYPES:
        for shape in SHAPES:
            found.append(("t/%s/%s" % (name, "x".join(map(str, shape))), "",
                          random_tensor(rng, name, shape)))
    found.append(("s/matrix", "", tf.constant(
        [[b"", b"a\0\xff"], [b"x" * 300, "\u00fc".encode()]])))
    found.append(("s/scalar", "", tf.constant(b"one")))
    found.append(("s/none", "", tf.zeros([0, 2], tf.string)))
    found.append(("unicode/\u00fc", "", tf.constant(1.0)))
    return sorted(found, key=lambda f: f[0].encode())


def save(prefix, found):
    tf.raw_ops.SaveV2(prefix=str(prefix),
                      tensor_names=[f[0] for f in found],
                      shape_and_slices=[f[1] for f in found],
                      tensors=[f[2] for f in found])


def restore(prefix, names, specs, dtypes):
    return tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=names,
                                shape_and_slices=specs, dtypes=dtypes)


def assert_same_files(directory, a, b):
    """Checkpoints a and b in a directory consist of the same bytes."""
    files = [sorted(p.name[len(x):] for p in directory.iterdir()
                    if p.name.startswith(x + ".")) for x in (a, b)]
    assert files[0] == files[1] and len(files[0]) >= 2
    for suffix in files[0]:
        assert filecmp.cmp(directory / (a + suffix), directory / (b + suffix),
                           shallow=False), suffix


def test_all_types_are_read_bit_for_bit(tmp_path):
    found = everything()
    save(tmp_path / "tf", found)
    lines = peer("dump", tmp_path / "tf").splitlines()
    assert lines == [describe(f[0], f[2]) for f in found]


def test_all_types_are_written_byte_for_byte(tmp_path):
    found = everything()
    save(tmp_path / "tf", found)
    peer("copy", tmp_path / "tf", tmp_path / "ours")
    assert_same_files(tmp_path, "tf", "ours")
    # And TensorFlow reads it, by the op and by its reader.
    back = restore(tmp_path / "ours", [f[0] for f in found],
                   [""] * len(found), [f[2].dtype for f in found])
    for f, tensor in zip(found, back):
        assert describe(f[0], f[2]) == describe(f[0], tensor)
    reader = tf.train.load_checkpoint(str(tmp_path / "ours"))
    assert set(reader.get_variable_to_shape_map()) == {f[0] for f in found}


@pytest.mark.parametrize("count", [15, 16, 17, 40, 9000])
def test_index_of_many_tensors_is_the_same(tmp_path, count):
    """9000 of them make an index of several blocks."""
    found = [("scope_%d/%s" % (i % 3, hashlib.sha1(b"%d" % i).hexdigest()), "",
              tf.constant(i, tf.int32)) for i in range(count)]
    found.sort(key=lambda f: f[0].encode())
    save(tmp_path / "tf", found)
    peer("copy", tmp_path / "tf", tmp_path / "ours")
    assert_same_files(tmp_path, "tf", "ours")
    if count > 1000:
        assert (tmp_path / "tf.index").stat().st_size > 300 << 10
    assert len(peer("dump", tmp_path / "ours").splitlines()) == count


def partitioned(shape, cuts, axis=0, dtype="float32"):
    """A tensor and [(spec, part)] of it, cut along an axis."""
    rng = np.random.default_rng(2)
    tensor = random_tensor(rng, dtype, shape)
    parts, start = [], 0
    for length in cuts:
        spec = ":".join("%d,%d" % (start, length) if d == axis else "-"
                        for d in range(len(shape)))
        index = [slice(None)] * len(shape)
        index[axis] = slice(start, start + length)
        parts.append(("%s %s" % (" ".join(map(str, shape)), spec),
                      tensor[tuple(index)]))
        start += length
    return tensor, parts


def slice_specs(shape):
    full = " ".join(map(str, shape))
    yield ""
    yield full + " " + ":".join("-" for _ in shape)
    yield full + " " + ":".join("0,%d" % d for d in shape)
    yield full + " " + ":".join("%d,%d" % (d // 3, max(1, d // 2))
                                for d in shape)
    yield full + " " + ":".join("%d,1" % (d - 1) for d in shape)


@pytest.mark.parametrize("shape,cuts,axis", [
    ((10, 7), (4, 3, 3), 0),
    ((10, 7), (2, 5), 1),
    ((75, 10000, 2), (64, 11), 0),  # starts and lengths of 1 to 3 bytes
    ((6,), (1, 1, 1, 1, 1, 1), 0),
])
def test_partitioned_variables_both_ways(tmp_path, shape, cuts, axis):
    tensor, parts = partitioned(shape, cuts, axis)
    save(tmp_path / "tf", [("a/b", s, t) for s, t in parts])
    peer("copy", tmp_path / "tf", tmp_path / "ours")
    assert_same_files(tmp_path, "tf", "ours")
    for spec in slice_specs(shape):
        theirs, = restore(tmp_path / "ours", ["a/b"], [spec], [tf.float32])
        ours = peer("slice", tmp_path / "tf", "a/b", spec).rstrip("\n")
        assert ours == describe("a/b", theirs), spec
    # Bits, not values: some of them are not numbers.
    whole, = restore(tmp_path / "ours", ["a/b"], [""], [tf.float32])
    assert raw(whole) == raw(tensor)


def test_slices_of_a_tensor_that_was_saved_whole(tmp_path):
    tensor, _ = partitioned((10, 7), (10,))
    save(tmp_path / "tf", [("w", "", tensor)])
    for spec in slice_specs((10, 7)):
        theirs, = restore(tmp_path / "tf", ["w"], [spec], [tf.float32])
        ours = peer("slice", tmp_path / "tf", "w", spec).rstrip("\n")
        assert ours == describe("w", theirs), spec


def write_shards(directory, who):
    """Three shards of one checkpoint; returns their prefixes."""
    _, parts = partitioned((9, 4), (3, 3, 3))
    prefixes = []
    for i, (spec, part) in enumerate(parts):
        prefix = directory / (who + "_temp") / ("part-%05d-of-00003" % i)
        save(prefix, [("own_%d" % i, "", tf.fill([i + 1], float(i))),
                      ("w", spec, part)])
        prefixes.append(prefix)
    return prefixes


def test_merged_shards_are_the_same(tmp_path):
    peer("merge", tmp_path / "ours", *write_shards(tmp_path, "ours"))
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(p) for p in write_shards(tmp_path, "tf")],
        destination_prefix=str(tmp_path / "tf"))
    assert_same_files(tmp_path, "tf", "ours")
    assert not (tmp_path / "ours_temp").exists()
    tensor, _ = partitioned((9, 4), (9,))
    whole, = restore(tmp_path / "ours", ["w"], [""], [tf.float32])
    assert raw(whole) == raw(tensor)


def test_shards_of_ours_and_theirs_merge(tmp_path):
    """As when one ps of two is TensorFlow's: either side can merge."""
    prefixes = write_shards(tmp_path, "x")
    mixed = []
    for i, p in enumerate(prefixes):
        q = tmp_path / "mixed" / p.name
        q.parent.mkdir(exist_ok=True)
        if i == 1:
            peer("copy", p, q)
        else:
            for path in p.parent.glob(p.name + ".*"):
                path.rename(q.parent / path.name)
        mixed.append(q)
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(q) for q in mixed],
                                  destination_prefix=str(tmp_path / "merged"))
    tensor, _ = partitioned((9, 4), (9,))
    lines = peer("dump", tmp_path / "merged").splitlines()
    assert lines[-1] == describe("w", tensor)


def test_a_saver_of_tensorflow_reads_ours(tmp_path):
    """tf.compat.v1.train.Saver with a partitioned variable, sharded."""
    def build():
        with tf.Graph().as_default() as graph:
            tf.compat.v1.set_random_seed(3)
            tf.compat.v1.get_variable(
                "w", [11, 5], use_resource=True,
                partitioner=tf.compat.v1.fixed_size_partitioner(3))
            tf.compat.v1.get_variable("b", [5], use_resource=False)
            tf.compat.v1.train.Saver(sharded=True)
        return graph

    def variables(session):
        return session.run(tf.compat.v1.global_variables())

    with build().as_default():
        saver = tf.compat.v1.train.Saver(sharded=True)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            want = variables(session)
            saver.save(session, str(tmp_path / "tf"), write_meta_graph=False)
    peer("copy", tmp_path / "tf", tmp_path / "ours")
    with build().as_default():
        saver = tf.compat.v1.train.Saver(sharded=True)
        with tf.compat.v1.Session() as session:
            saver.restore(session, str(tmp_path / "ours"))
            for a, b in zip(want, variables(session)):
                np.testing.assert_array_equal(a, b)


V1_TYPES = [t for t in TYPES if t not in ("bfloat16", "uint32", "uint64",
                                          "qint16", "quint16")]


def test_the_first_format_both_ways(tmp_path):
    """Save, SaveSlices: all types that it has, negative numbers, slices."""
    found = [f for f in everything()
             if f[0].split("/")[1] in V1_TYPES + ["matrix", "scalar", "none"]]
    tensor, parts = partitioned((10, 7), (4, 3, 3))
    found += [("w", spec, part) for spec, part in parts]
    tf.raw_ops.SaveSlices(filename=str(tmp_path / "tf"),
                          tensor_names=[f[0] for f in found],
                          shapes_and_slices=[f[1] for f in found],
                          data=[f[2] for f in found])
    peer("v1copy", tmp_path / "tf", tmp_path / "ours")
    assert filecmp.cmp(tmp_path / "tf", tmp_path / "ours", shallow=False)
    for name, spec, part in found:
        if not spec:
            assert peer("v1slice", tmp_path / "tf", name, "").rstrip(
                "\n") == describe(name, part)
    for spec in slice_specs((10, 7)):
        theirs = tf.raw_ops.RestoreSlice(
            file_pattern=str(tmp_path / "ours"), tensor_name="w",
            shape_and_slice=spec, dt=tf.float32)
        ours = peer("v1slice", tmp_path / "tf", "w", spec).rstrip("\n")
        assert ours == describe("w", theirs), spec


def test_a_large_tensor_in_the_first_format(tmp_path):
    """An entry that is much larger than a block, compressed or not."""
    tensor = tf.random.stateless_uniform([200000], [1, 2], -9, 9, tf.int32)
    tf.raw_ops.Save(filename=str(tmp_path / "tf"), tensor_names=["a", "b", "c"],
                    data=[tf.constant(1.5), tensor, tf.constant(b"x")])
    peer("v1copy", tmp_path / "tf", tmp_path / "ours")
    assert filecmp.cmp(tmp_path / "tf", tmp_path / "ours", shallow=False)


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(n):
    return (bytes([n & 0x7f | 0x80]) + varint(n >> 7)) if n > 0x7f else bytes([n])


def read_varint(data):
    n = next(i for i, b in enumerate(data) if b < 0x80)
    return sum((b & 0x7f) << 7 * i for i, b in enumerate(data[:n + 1]))


def snappy(data):
    """Literals, and a copy of three bytes where one is at hand."""
    out, at = varint(len(data)), 0
    while at < len(data):
        back = data.rfind(data[at:at + 16], max(0, at - 2000), at)
        if back >= 0 and len(data) - at >= 16:
            out += bytes([(16 - 1) << 2 | 2]) + (at - back).to_bytes(2, "little")
            at += 16
        else:
            out += bytes([0]) + data[at:at + 1]
            at += 1
    return out


def test_a_compressed_index_is_read(tmp_path):
    """Its one data block packed by Snappy; the other blocks as they were."""
    found = everything()
    save(tmp_path / "x", found)
    want = peer("dump", tmp_path / "x")
    index = (tmp_path / "x.index").read_bytes()
    meta = read_varint(index[-48:])  # the data block ends where this begins
    packed = snappy(index[:meta - 5]) + b"\1"
    packed += masked_crc(packed).to_bytes(4, "little")
    empty = bytes([0, 0, 0, 0, 1, 0, 0, 0])
    top = (b"\0\1" + bytes([1 + len(varint(len(packed) - 5))]) + b"\xff\0" +
           varint(len(packed) - 5) + empty)
    tail = b""
    handles = b""
    for block in (empty, top):
        handles += varint(len(packed) + len(tail)) + varint(len(block))
        tail += block + b"\0" + masked_crc(block + b"\0").to_bytes(4, "little")
    (tmp_path / "x.index").write_bytes(packed + tail + handles.ljust(40, b"\0") +
                                       index[-8:])
    restore(tmp_path / "x", [found[0][0]], [""], [found[0][2].dtype])
    assert peer("dump", tmp_path / "x") == want


def damage(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("suffix,at,text", [
    (".index", 5, "block checksum mismatch"),
    (".index", -1, "not an sstable (bad magic number)"),
    (".data-00000-of-00001", 1, "Checksum does not match: stored"),
])
def test_damage_is_told_as_tensorflow_tells_it(tmp_path, suffix, at, text):
    save(tmp_path / "x", [("w", "", tf.constant([1.0, 2.0]))])
    damage(tmp_path / ("x" + suffix), at)
    with pytest.raises(tf.errors.DataLossError) as theirs:
        restore(tmp_path / "x", ["w"], [""], [tf.float32])
    ours = peer("dump", tmp_path / "x", code=1)
    assert text in str(theirs.value)
    assert "DATA_LOSS" in ours and text in ours


def test_records_both_ways(tmp_path):
    contents = [b"", b"abc", bytes(range(256)) * 1000, b"\0"]
    with tf.io.TFRecordWriter(str(tmp_path / "tf")) as writer:
        for record in contents:
            writer.write(record)
    peer("records", tmp_path / "tf", tmp_path / "ours")
    assert filecmp.cmp(tmp_path / "tf", tmp_path / "ours", shallow=False)
    back = tf.data.TFRecordDataset(str(tmp_path / "ours"))
    assert [r.numpy() for r in back] == contents


def test_events_are_read(tmp_path):
    peer("events", tmp_path / "new" / "logs")
    path, = (tmp_path / "new" / "logs").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    events = list(tf.compat.v1.train.summary_iterator(str(path)))
    assert events[0].file_version == "brain.Event:2"
    assert events[1].session_log.status == 1
    assert [e.step for e in events[2:5]] == [0, 100, 200]
    for i, event in enumerate(events[2:5]):
        values = {v.tag: v.simple_value for v in event.summary.value}
        assert values == {"loss": 1.5 - i, "rate/global": 0.0}
        assert [v.WhichOneof("value") for v in event.summary.value] == [
            "simple_value"] * 2
    assert events[5].session_log.checkpoint_path == "/x/model"
    assert len(events) == 6
