"""Datasets that a graph describes: what an iterator of each gives."""
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
    ("OptionsDataset", "no order"): (3, lambda k, d: count(k, 3).with_options(
        k.tf.data.Options())),
}


def add(name, label, n, build):
    ops = ITERATOR + name

    def whole(k):
        return through(k, build(k, k.tf.data.Dataset), n)

    def past(k):
        return through(k, build(k, k.tf.data.Dataset), n + 1)

    graph(ops, "%s %s" % (name, label))(whole)
    if label != "for ever":
        graph(ops, "%s %s, end" % (name, label), fails=True)(past)


for (name, label), (n, build) in PIPELINES.items():
    add(name, label, n, build)


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
