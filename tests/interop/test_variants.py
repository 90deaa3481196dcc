"""Variants that cross tasks: lists, optionals, ragged and sparse values.

Between our tasks and TensorFlow's, both ways, and between our own by every
path.  The values of a mixture must be those of a cluster of TensorFlow alone,
and so must the errors of what cannot be sent.
"""
import numpy as np
import pytest

import cluster as cl
import wire

pytestmark = [pytest.mark.sanitize, pytest.mark.trainer]

KIND = {"m": "muster", "t": "tensorflow"}
# (ps 0, ps 1), the quick path, and whose task 0 has the session: m is ours, t
# is TensorFlow's.  The worker is always one of ours.
WAYS = ["mm off worker", "mm tcp worker", "mm shm worker", "mt shm worker",
        "tt off worker", "tm shm ps"]


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


@pytest.fixture(scope="module", params=WAYS)
def target(request, tmp_path_factory):
    kinds, mode, job = request.param.split()
    with cl.Cluster(tmp_path_factory.mktemp("variants"),
                    [KIND[k] for k in kinds], 1, [0],
                    {"MUSTER_QUICK": mode}) as c:
        yield "grpc://" + c.ports[job][0].address


# Every ordered pair of the three tasks, so each kind both makes and reads.
TASKS = ["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"]
PAIRS = [(a, b) for a in TASKS for b in TASKS if a != b]


def fed(tf, value):
    """A value that no optimiser knows."""
    return tf.placeholder_with_default(value, np.shape(value))


def push_all(tf, l, items):
    for x in items:
        l = tf.raw_ops.TensorListPushBack(input_handle=l, tensor=x)
    return l


def empty(tf, dtype, shape=-1, most=-1):
    return tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant(shape, tf.int32), max_num_elements=most,
        element_dtype=dtype)


def stack(tf, l, dtype, shape):
    return tf.raw_ops.TensorListStack(
        input_handle=l, element_shape=tf.constant(shape, tf.int32),
        element_dtype=dtype)


def floats(tf):
    big = np.arange(50000, dtype=np.float32)
    def make():
        return push_all(tf, empty(tf, tf.float32, [-1]),
                        [fed(tf, big), fed(tf, big + 1)])
    return make, lambda l: stack(tf, l, tf.float32, [50000])


def texts(tf):
    def make():
        return push_all(tf, empty(tf, tf.string, []),
                        [fed(tf, b"a"), fed(tf, b""), fed(tf, b"\0" * 5000)])
    return make, lambda l: stack(tf, l, tf.string, [])


def partly_set(tf):
    def make():
        l = tf.raw_ops.TensorListReserve(
            element_shape=tf.constant([2], tf.int32), num_elements=300,
            element_dtype=tf.int64)
        for i in (0, 130, 299):
            l = tf.raw_ops.TensorListSetItem(
                input_handle=l, index=i,
                item=fed(tf, np.array([i, -i], np.int64)))
        return l
    return make, lambda l: stack(tf, l, tf.int64, [2])


def nothing(tf):
    def make():
        with tf.control_dependencies([fed(tf, 1.)]):
            return empty(tf, tf.bfloat16, [3, -1], 7)

    def use(l):
        return [tf.raw_ops.TensorListLength(input_handle=l),
                tf.raw_ops.TensorListElementShape(
                    input_handle=l, shape_type=tf.int64),
                tf.raw_ops.TensorListLength(input_handle=push_all(
                    tf, l, [tf.zeros([3, 4], tf.bfloat16)] * 7))]
    return make, use


def lists_in_a_list(tf):
    def make():
        l = empty(tf, tf.variant)
        for i in range(3):
            l = push_all(tf, l, [push_all(tf, empty(tf, tf.int32, []),
                                          [fed(tf, i), fed(tf, i * i)])])
        return l

    def use(l):
        rest, last = tf.raw_ops.TensorListPopBack(
            input_handle=l, element_shape=tf.constant([], tf.int32),
            element_dtype=tf.variant)
        return [tf.raw_ops.TensorListLength(input_handle=rest),
                stack(tf, last, tf.int32, [])]
    return make, use


def optionals(tf):
    def make():
        some = tf.raw_ops.OptionalFromValue(
            components=[fed(tf, 3.), fed(tf, [1, 2]), fed(tf, b"text")])
        with tf.control_dependencies([fed(tf, 1.)]):
            return tf.stack([some, tf.raw_ops.OptionalNone()])

    def use(v):
        some, none = tf.unstack(v)
        return [tf.raw_ops.OptionalHasValue(optional=some),
                tf.raw_ops.OptionalHasValue(optional=none),
                *tf.raw_ops.OptionalGetValue(
                    optional=some, output_types=[tf.float32, tf.int32,
                                                 tf.string],
                    output_shapes=[[], [2], []])]
    return make, use


def ragged(tf):
    def make():
        return tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=[fed(tf, np.array([0, 1, 3], np.int64)),
                              fed(tf, np.array([0, 2, 2, 5], np.int64))],
            rt_dense_values=fed(tf, np.arange(5, dtype=np.float32)),
            batched_input=True)

    def use(v):
        got = tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=v, input_ragged_rank=1, output_ragged_rank=2,
            Tvalues=tf.float32, Tsplits=tf.int64)
        return [*got.output_nested_splits, got.output_dense_values]
    return make, use


def sparse(tf):
    def make():
        return tf.raw_ops.SerializeManySparse(
            sparse_indices=fed(tf, np.array([[0, 1], [2, 0]], np.int64)),
            sparse_values=fed(tf, np.array([1.5, 2.5], np.float64)),
            sparse_shape=fed(tf, np.array([3, 2], np.int64)),
            out_type=tf.variant)

    def use(v):
        return list(tf.raw_ops.DeserializeSparse(
            serialized_sparse=v, dtype=tf.float64))
    return make, use


def serialized(tf):
    make, use = lists_in_a_list(tf)

    def parse(text):
        return use(tf.io.parse_tensor(text, tf.variant))
    return lambda: tf.io.serialize_tensor(make()), parse


VALUES = [floats, texts, partly_set, nothing, lists_in_a_list, optionals,
          ragged, sparse, serialized]


def alone(tf, make, use):
    """What TensorFlow gives in its own process."""
    with tf.Graph().as_default(), tf.Session() as s:
        return s.run(use(make()))


def same(want, got):
    if not isinstance(want, list):
        want, got = [want], [got]
    assert len(want) == len(got)
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", VALUES)
def test_values_cross_between_all_tasks(tf, target, value):
    make, use = value(tf)
    want = alone(tf, make, use)
    with tf.Graph().as_default():
        outs = []
        for maker, user in PAIRS:
            with tf.device(maker):
                v = make()
            with tf.device(user):
                outs.append(use(v))
        with tf.Session(target) as s:
            for _ in range(3):
                for got in s.run(outs):
                    same(want, got)


# ---- loops ----

def test_a_gradient_takes_the_lists_of_a_loop_on_another_task(tf, target):
    """The loop keeps what its gradient needs in lists, on the task where it
    runs; the gradient is a loop on another."""
    from tensorflow.python.ops import while_v2

    def build(forward, backward):
        with tf.device(forward):
            x = fed(tf, np.linspace(0.5, 1.5, 40).astype(np.float32))
            _, y = while_v2.while_loop(
                lambda i, y: i < 20, lambda i, y: (i + 1, tf.sin(y) * x),
                (tf.constant(0), x), return_same_structure=True)
        with tf.device(backward):
            return [y, tf.gradients(y, x)[0]]

    with tf.Graph().as_default(), tf.Session() as s:
        want = s.run(build("", ""))
    for maker, user in PAIRS:
        with tf.Graph().as_default():
            outs = build(maker, user)
            devices = {n.device for n in tf.get_default_graph()
                       .as_graph_def().node if n.op in ("While",
                                                        "StatelessWhile")}
            assert len(devices) == 2
            with tf.Session(target) as s:
                for _ in range(2):
                    for a, b in zip(want, s.run(outs)):
                        np.testing.assert_allclose(a, b, rtol=1e-5)


# ---- what cannot be sent ----

def dataset(tf):
    def make():
        return tf.raw_ops.RangeDataset(
            start=fed(tf, np.int64(0)), stop=tf.constant(5, tf.int64),
            step=tf.constant(1, tf.int64), output_types=[tf.int64],
            output_shapes=[[]])
    return make, lambda d: tf.raw_ops.DatasetCardinality(input_dataset=d)


def lock(tf):
    def make():
        return tf.raw_ops.MutexLock(mutex=tf.raw_ops.MutexV2(
            container="", shared_name=""))

    def use(v):
        with tf.control_dependencies([tf.raw_ops.ConsumeMutexLock(
                mutex_lock=v)]):
            return tf.constant(1)
    return make, use


def too_deep(tf):
    def make():
        l = push_all(tf, empty(tf, tf.float32), [fed(tf, 1.)])
        for _ in range(60):
            l = push_all(tf, empty(tf, tf.variant), [l])
        return l
    return make, lambda l: tf.raw_ops.TensorListLength(input_handle=l)


@pytest.mark.parametrize("value", [dataset, lock, too_deep])
def test_what_cannot_be_sent_fails_its_step_alone(tf, target, value):
    make, use = value(tf)
    fine, use_fine = texts(tf)
    want = alone(tf, fine, use_fine)
    for maker, user in PAIRS:
        with tf.Graph().as_default():
            with tf.device(maker):
                v, good = make(), fine()
            with tf.device(user):
                out, good = use(v), use_fine(good)
            with tf.Session(target) as s:
                for _ in range(2):
                    with pytest.raises(tf.errors.InternalError,
                                       match="could not parse rpc response"):
                        s.run(out)
                    same(want, s.run(good))


# ---- constants, feeds and fetches ----

VARIANT = 21
LIST = "tensorflow::TensorList"
ANY = b"\xff" * 9 + b"\x01"  # -1
ONE = wire.f(1, wire.FLOAT) + wire.f(5, 1.)


def variant(name, metadata=b"", *tensors):
    return (wire.f(1, VARIANT) + wire.f(2, b"") + wire.f(
        15, wire.f(1, name) + wire.f(2, metadata)
        + b"".join(wire.f(3, t) for t in tensors)))


# Three floats, of which the second is not set.
GOOD = variant(LIST, b"\1\1\1" + ANY + b"\x18\1", ONE, ONE)


def length_nodes(m, value):
    return [m.n("c", "Const", dtype=wire.Type(VARIANT),
                value=wire.Tensor(value)),
            m.n("n", "TensorListLength", "c"),
            m.send_node("out", "n", wire.INT32, client=True)]


def test_a_list_may_be_a_constant(shared):
    with wire.Master(shared.ports["ps"][0].address) as m:
        handle = m.register(*length_nodes(m, GOOD))
        key = m.key("out")
        got = wire.parse(m.run(handle, recv=[key])[key])
        # The one as raw content, the other in a typed field.
        assert got.get(4) == [b"\3\0\0\0"] or got.get(7) == [b"\3"]


# What TensorFlow reads all the same, or dies of, is in the unit test.
BROKEN = [
    variant("nosuch"), variant("tensorflow::DatasetVariantWrapper"),
    variant(LIST, b"\1\5\1" + ANY + b"\x18\1", ONE),
    variant(LIST, b"\2\2\0\1" + ANY + b"\x18\1", ONE),
    variant(LIST, b"\5\0\1", ONE),
    variant("tensorflow::data::Optional", b"", ONE),
    variant("tensorflow::data::Optional", b"\1\1", ONE),
    variant("RaggedTensorVariant"), variant("int", b"\1\2\3"),
]


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_constant_is_an_invalid_argument(shared, value):
    with wire.Master(shared.ports["ps"][0].address) as m:
        with pytest.raises((wire.Answer, wire.StepError)) as e:
            m.run(m.register(*length_nodes(m, value)), recv=[m.key("out")])
        assert e.value.number == 3
        assert "Cannot parse tensor from proto" in e.value.text
        # The task goes on.
        m.run(m.register(*length_nodes(m, GOOD)), recv=[m.key("out")])


def test_lists_are_fed_and_fetched(shared):
    with wire.Master(shared.ports["ps"][0].address) as m:
        handle = m.register(
            m.recv_node("in", VARIANT, client=True),
            m.n("one", "Const", dtype=wire.Type(wire.FLOAT),
                value=wire.Tensor(ONE)),
            m.n("more", "TensorListPushBack", "in", "one",
                element_dtype=wire.Type(wire.FLOAT)),
            m.send_node("out", "more", VARIANT, client=True))
        key = m.key("out")
        value = GOOD
        for _ in range(3):
            value = m.run(handle, send=[(m.key("in"), value)],
                          recv=[key])[key]
        got = wire.parse(value)
        assert got[1] == [VARIANT]
        if 4 in got:  # the length of the one element, and the element
            size = len(wire.varint(len(got[4][0])))
            got = wire.parse(got[4][0][size:])
        else:
            got = wire.parse(got[15][0])
        assert got[1] == [LIST.encode()]
        assert got[2] == [b"\1\1\1" + ANY + b"\x18\1"]
        assert len(got[3]) == 5


def test_a_feed_that_is_broken_is_an_invalid_argument(shared):
    with wire.Master(shared.ports["ps"][0].address) as m:
        handle = m.register(
            m.recv_node("in", VARIANT, client=True),
            m.n("n", "TensorListLength", "in"),
            m.send_node("out", "n", wire.INT32, client=True))
        for value in BROKEN:
            with pytest.raises((wire.Answer, wire.StepError)) as e:
                m.run(handle, send=[(m.key("in"), value)],
                      recv=[m.key("out")])
            assert e.value.number == 3
        m.run(handle, send=[(m.key("in"), GOOD)], recv=[m.key("out")])
