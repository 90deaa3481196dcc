"""Datasets that a graph describes: what an iterator of each gives."""
import gzip
import zlib

from cases import f32, graph, i64, n0

ITERATOR = "IteratorV2 MakeIterator IteratorGetNext "


def through(k, d, n):
    """The first n elements, one after the other."""
    it = k.tf.data.make_initializable_iterator(d, shared_name=k.name())
    out, last = [], it.initializer
    for _ in range(n):
        with k.after(last):
            e = k.tf.nest.flatten(it.get_next())
        last = k.tf.group(*e)
        out += e
    return out


def count(k, n, start=0):
    return k.tf.data.Dataset.range(k.x(n0(start, "int64")),
                                   k.x(n0(n, "int64")))


def sparse_rows(k, indices, shape):
    """Of constants: TensorFlow's function wants to know the shapes."""
    return k.tf.data.Dataset.from_sparse_tensor_slices(k.tf.SparseTensor(
        k.tf.constant(indices, k.tf.int64),
        k.tf.constant(f32(*range(len(indices)))),
        k.tf.constant(shape, k.tf.int64)))


PIPELINES = {
    ("RangeDataset", "steps"): (3, lambda k, d: d.range(
        k.x(n0(9, "int64")), k.x(n0(0, "int64")), k.x(n0(-4, "int64")))),
    ("RangeDataset", "floats"): (3, lambda k, d: d.range(
        k.x(n0(3, "int64")), output_type=k.tf.float32)),
    ("TensorDataset", "two"): (1, lambda k, d: d.from_tensors(
        (k.x(f32(1, 2)), k.x(i64([[3]]))))),
    ("TensorSliceDataset", "rows"): (3, lambda k, d: d.from_tensor_slices(
        {"a": k.x(f32([[1, 2], [3, 4], [5, 6]])), "b": k.x(i64([7, 8, 9]))})),
    ("TakeDataset", "two"): (2, lambda k, d: count(k, 5).take(2)),
    ("SkipDataset", "three"): (2, lambda k, d: count(k, 5).skip(3)),
    ("RepeatDataset", "twice"): (4, lambda k, d: count(k, 2).repeat(2)),
    ("RepeatDataset", "for ever"): (7, lambda k, d: count(k, 3).repeat()),
    ("BatchDatasetV2", "rest"): (3, lambda k, d: count(k, 5).batch(2)),
    ("BatchDatasetV2", "no rest"): (2, lambda k, d: count(k, 5).batch(
        2, drop_remainder=True)),
    ("ZipDataset", "two"): (3, lambda k, d: d.zip(
        (count(k, 3), count(k, 5).batch(1)))),
    ("ConcatenateDataset", "two"): (4, lambda k, d: count(k, 2).concatenate(
        count(k, 5, 3))),
    ("ShardDataset", "second"): (3, lambda k, d: count(k, 8).shard(3, 1)),
    ("PrefetchDataset", "two"): (3, lambda k, d: count(k, 3).prefetch(2)),
    ("ShuffleDataset", "some"): (9, lambda k, d: count(k, 9).shuffle(
        4, seed=7)),
    ("ShuffleDataset", "all, again"): (12, lambda k, d: count(k, 6).shuffle(
        100, seed=7).repeat(2)),
    ("ShuffleDataset", "the same again"): (12, lambda k, d: count(
        k, 6).shuffle(5, seed=3, reshuffle_each_iteration=False).repeat(2)),
    ("MapDataset", "square"): (3, lambda k, d: count(k, 3).map(
        lambda x: (x * x, k.tf.cast(x, k.tf.float32) / 2))),
    ("ParallelMapDatasetV2", "square"): (3, lambda k, d: count(k, 3).map(
        lambda x: x * x, num_parallel_calls=2)),
    ("SparseTensorSliceDataset", "rows"): (4, lambda k, d: sparse_rows(
        k, [[0, 1], [0, 2], [2, 0]], [4, 3])),
    ("SparseTensorSliceDataset", "a vector"): (3, lambda k, d: sparse_rows(
        k, [[1], [2]], [3])),
    ("SparseTensorSliceDataset", "outside"): (2, lambda k, d: sparse_rows(
        k, [[-1, 0], [1, 1], [9, 0]], [2, 3])),
    ("ParallelMapDatasetV2", "up to the server"): (40, lambda k, d: count(
        k, 40).map(lambda x: x * x, num_parallel_calls=-1).prefetch(-1)),
    ("MapAndBatchDataset", "rest"): (3, lambda k, d: count(k, 7).apply(
        k.tf.data.experimental.map_and_batch(
            lambda x: (x, x * x), 3, num_parallel_calls=2))),
    ("MapAndBatchDataset", "no rest"): (2, lambda k, d: count(k, 7).apply(
        k.tf.data.experimental.map_and_batch(
            lambda x: x + 1, 3, drop_remainder=True))),
    ("ParallelBatchDataset", "rest"): (3, lambda k, d: count(k, 5).batch(
        2, num_parallel_calls=2)),
    ("MapDataset", "captured"): (3, lambda k, d: (
        lambda c: count(k, 3).map(lambda x: x + c))(k.x(n0(10, "int64")))),
    ("FilterDataset", "odd"): (3, lambda k, d: count(k, 7).filter(
        lambda x: k.tf.equal(x % 2, 1))),
    ("FlatMapDataset", "ranges"): (6, lambda k, d: count(k, 4).flat_map(
        lambda x: d.range(x))),
    ("InterleaveDataset", "blocks"): (10, lambda k, d: count(k, 5).interleave(
        lambda x: d.range(x), cycle_length=2, block_length=2)),
    ("ParallelInterleaveDatasetV4", "blocks"): (10, lambda k, d: count(
        k, 5).interleave(lambda x: d.range(x * 10, x * 10 + x),
                         cycle_length=3, block_length=1,
                         num_parallel_calls=2)),
    ("TakeWhileDataset", "small"): (3, lambda k, d: count(k, 9).take_while(
        lambda x: x < 3)),
    ("PaddedBatchDatasetV2", "rows"): (3, lambda k, d: count(k, 5).map(
        lambda x: k.tf.fill([x], x)).padded_batch(2, [None])),
    ("PaddedBatchDatasetV2", "matrices"): (2, lambda k, d: count(k, 5).map(
        lambda x: (k.tf.fill([x, 2 * x], x), k.tf.as_string(x))).padded_batch(
            2, ([5, -1], []), (k.x(n0(-1, "int64")), ""),
            drop_remainder=True)),
    ("CacheDataset", "twice"): (6, lambda k, d: count(k, 3).map(
        lambda x: x + 1).cache().repeat(2)),
    ("WindowDataset", "overlapping"): (8, lambda k, d: count(k, 6).window(
        3, shift=2, stride=1).flat_map(lambda x: x).map(lambda x: x + 0)),
    ("WindowDataset", "strides"): (6, lambda k, d: count(k, 12).window(
        2, shift=5, stride=3, drop_remainder=True).flat_map(
            lambda x: x.concatenate(x.take(1)))),
    ("UnbatchDataset", "rows"): (5, lambda k, d: count(k, 5).batch(
        2).unbatch()),
    ("ScanDataset", "sums"): (5, lambda k, d: count(k, 5).scan(
        k.x(n0(10, "int64")), lambda s, x: (s + x, (s, x)))),
    ("OptionsDataset", "no order"): (3, lambda k, d: count(k, 3).with_options(
        k.tf.data.Options())),
}


def add(name, label, n, build):
    ops = (ITERATOR if name == "RangeDataset" else "") + name

    def whole(k):
        return through(k, build(k, k.tf.data.Dataset), n)

    def past(k):
        return through(k, build(k, k.tf.data.Dataset), n + 1)

    graph(ops, "%s %s" % (name, label))(whole)
    if label != "for ever":
        graph(ops, "%s %s, end" % (name, label), fails=True)(past)


for (name, label), (n, build) in PIPELINES.items():
    add(name, label, n, build)


def file(k, name, data):
    k.scratch.mkdir(parents=True, exist_ok=True)
    path = k.scratch / (k.name() + name)
    path.write_bytes(data)
    return str(path)


PIPELINES = {
    ("TextLineDataset", "two files"): (5, lambda k, d: k.tf.data.\
        TextLineDataset([file(k, "a", b"one\n\r\nthree"),
                         file(k, "b", b"x\r\n y \n")])),
    ("TextLineDataset", "an empty file"): (1, lambda k, d: k.tf.data.\
        TextLineDataset([file(k, "a", b""), file(k, "b", b"x")])),
    ("TFRecordDataset", "none"): (0, lambda k, d: k.tf.data.TFRecordDataset(
        [file(k, "a", b"")])),
    ("FixedLengthRecordDatasetV2", "three"): (
        3, lambda k, d: k.tf.data.FixedLengthRecordDataset(
            [file(k, "a", b"Haabbcc" + b"FF")], 2, 1, 2)),
}
for format, pack in (("GZIP", gzip.compress), ("ZLIB", zlib.compress)):
    PIPELINES.update({
        ("TextLineDataset", format): (4, lambda k, d, f=format, p=pack:
            k.tf.data.TextLineDataset(
                [file(k, "a", p(b"one\n\nthree")), file(k, "b", p(b"x\n"))],
                f)),
        ("FixedLengthRecordDatasetV2", format): (
            3, lambda k, d, f=format, p=pack:
            k.tf.data.FixedLengthRecordDataset(
                [file(k, "a", p(b"Haabbcc" + b"FF"))], 2, 1, 2, None, f)),
    })
for (name, label), (n, build) in PIPELINES.items():
    add(name, label, n, build)


@graph("TFRecordDataset")
def records(k):
    path = file(k, "r", b"")
    with k.tf.io.TFRecordWriter(path) as w:
        for r in (b"a", b"", b"ccc" * 99):
            w.write(r)
    return through(k, k.tf.data.TFRecordDataset([path, path]), 6)


@graph("TFRecordDataset", "compressed")
def packed(k):
    parts = []
    for format in ("GZIP", "ZLIB"):
        path = file(k, format, b"")
        with k.tf.io.TFRecordWriter(path, format) as w:
            for r in (b"a", b"", b"ccc" * 99):
                w.write(r)
        parts += through(k, k.tf.data.TFRecordDataset([path, path], format), 6)
    return parts


@graph("IgnoreErrorsDataset")
def ignored(k):
    d = k.tf.data.Dataset.from_tensor_slices([1., 0., 2., 0.])
    d = d.map(lambda x: k.tf.debugging.check_numerics(1 / x, "zero"))
    return through(k, d.apply(k.tf.data.experimental.ignore_errors()), 2)


@graph("BatchDatasetV2 ParallelMapDatasetV2", "after an error")
def batch_after_an_error(k):
    d = k.tf.data.Dataset.from_tensor_slices([1., 2., 0., 4., 5., 6.])
    d = d.map(lambda x: k.tf.debugging.check_numerics(1 / x, "zero"),
              num_parallel_calls=3).prefetch(2).batch(2)
    return through(k, d.apply(k.tf.data.experimental.ignore_errors()), 3)


@graph("ParallelInterleaveDatasetV4", "before an error")
def before_an_error(k):
    d = k.tf.data.Dataset.from_tensor_slices([1, 2, 0, 3])
    return through(k, d.interleave(
        lambda x: k.tf.data.Dataset.range(k.tf.cast(6 // x, k.tf.int64)),
        cycle_length=3, num_parallel_calls=2), 2)


for label, indices, shape in (("no order", [[1, 0], [0, 0]], [2, 2]),
                              ("other rank", [[1, 0], [0, 0]], [2])):
    @graph("SparseTensorSliceDataset", label, fails=True)
    def no_rows(k, indices=indices, shape=shape):
        d = k.tf.raw_ops.SparseTensorSliceDataset(
            indices=k.x(i64(indices)), values=k.x(f32(1, 2)),
            dense_shape=k.x(i64(shape)))
        return k.tf.raw_ops.DatasetCardinality(input_dataset=d)


@graph("TextLineDataset", "not there", fails=True)
def no_file(k):
    return through(k, k.tf.data.TextLineDataset(["/nowhere/at/all"]), 1)


@graph("FixedLengthRecordDatasetV2", "no multiple", fails=True)
def no_multiple(k):
    k.scratch.parent.joinpath("same").write_bytes(b"12345")
    return through(k, k.tf.data.FixedLengthRecordDataset(
        [str(k.scratch.parent / "same")], 2), 1)


@graph("ReduceDataset")
def reduced(k):
    zero = k.x(n0(0, "int64"))
    return count(k, 5).reduce((zero, zero + 1), lambda s, x: (
        s[0] + x, s[1] * 2)), count(k, 0).reduce(zero, lambda s, x: s + x)


@graph("DatasetToSingleElement")
def single(k):
    return k.tf.data.experimental.get_single_element(count(k, 3).batch(5))


for label, n in (("none", 0), ("two", 2)):
    @graph("DatasetToSingleElement", label, fails=True)
    def _(k, n=n):
        return k.tf.data.experimental.get_single_element(count(k, n))


@graph("DatasetCardinality")
def cardinality(k):
    d = count(k, 7)
    return [k.raw.DatasetCardinality(input_dataset=x._variant_tensor)
            for x in (d, d.repeat(), d.batch(2), d.take(3), d.skip(9),
                      d.repeat(3), d.shard(3, 1), d.concatenate(d),
                      d.filter(lambda x: x > 2))]


@graph("OneShotIterator IteratorGetNext")
def one_shot(k):
    it = k.tf.data.make_one_shot_iterator(
        k.tf.data.Dataset.range(5).map(lambda x: x + 1).batch(2))
    a = it.get_next()
    with k.after(a):
        return a, it.get_next()


@graph("IteratorV2 IteratorGetNext", "not initialised", fails=True)
def not_made(k):
    it = k.tf.data.Iterator.from_structure(k.tf.int64, [],
                                           shared_name=k.name())
    return it.get_next()


@graph("IteratorToStringHandle IteratorFromStringHandleV2")
def as_string(k):
    it = k.tf.data.make_initializable_iterator(count(k, 5),
                                               shared_name=k.name())
    with k.after(it.initializer):
        s = k.raw.IteratorToStringHandle(
            resource_handle=it._iterator_resource)
    other = k.tf.data.Iterator.from_string_handle(s, k.tf.int64, [])
    return other.get_next()


@graph("IteratorGetNextAsOptional")
def as_optional(k):
    it = k.tf.data.make_initializable_iterator(count(k, 1),
                                               shared_name=k.name())
    kinds = {"output_types": [k.tf.int64], "output_shapes": [[]]}
    with k.after(it.initializer):
        a = k.raw.IteratorGetNextAsOptional(iterator=it._iterator_resource,
                                            **kinds)
    has = k.raw.OptionalHasValue(optional=a)
    with k.after(has):
        b = k.raw.IteratorGetNextAsOptional(iterator=it._iterator_resource,
                                            **kinds)
    return has, k.raw.OptionalGetValue(optional=a, **kinds), \
        k.raw.OptionalHasValue(optional=b)
