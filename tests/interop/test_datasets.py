"""Pipelines on a worker of ours: the values are TensorFlow's, elements are made
before they are asked for, and what is under way ends well."""
import numpy as np
import pytest

import cluster as cl

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    with cl.Cluster(tmp_path_factory.mktemp("datasets"), ("muster",), 1,
                    (0,)) as c:
        yield c


@pytest.fixture
def target(tasks):
    return "grpc://" + tasks.ports["worker"][0].address


@pytest.fixture
def graph(tf):
    with tf.Graph().as_default() as g:
        yield g


def records(tf, folder, files, each):
    paths = []
    for f in range(files):
        paths.append(str(folder / ("part%d" % f)))
        with tf.io.TFRecordWriter(paths[-1]) as w:
            for i in range(each):
                w.write(np.float32([f, i, f * i]).tobytes())
    return paths


def everything(tf, target, it):
    element, found = it.get_next(), []
    with tf.Session(target) as s:
        s.run(it.initializer)
        while True:
            try:
                found.append(s.run(element).tolist())
            except tf.errors.OutOfRangeError:
                return found


@pytest.mark.parametrize("readers", [1, 3])
def test_a_pipeline_gives_what_tensorflow_gives(tf, graph, target, tmp_path,
                                                readers):
    paths = records(tf, tmp_path, 5, 37)
    d = tf.data.Dataset.from_tensor_slices(paths).interleave(
        tf.data.TFRecordDataset, cycle_length=readers, block_length=4,
        num_parallel_calls=readers)
    d = d.map(lambda r: 2 * tf.io.decode_raw(r, tf.float32),
              num_parallel_calls=4)
    d = d.shuffle(50, seed=3).repeat(2).batch(16).prefetch(2)
    it = tf.data.make_initializable_iterator(d, shared_name="files%d" % readers)
    want = everything(tf, "", it)
    assert len(want) == 2 * 5 * 37 // 16 + 1
    assert everything(tf, target, it) == want


def test_elements_are_made_before_they_are_asked_for(tf, graph, target):
    """One is asked for; the queue tells of the four after it."""
    seen = tf.queue.FIFOQueue(100, [tf.int64], [[]], shared_name="seen")

    def tell(x):
        with tf.control_dependencies([seen.enqueue(x)]):
            return tf.identity(x)

    d = tf.data.Dataset.range(100).map(tell).prefetch(4)
    it = tf.data.make_initializable_iterator(d, shared_name="told")
    element, told = it.get_next(), seen.dequeue()
    with tf.Session(target) as s:
        s.run(it.initializer)
        assert s.run(element) == 0
        assert [s.run(told) for _ in range(5)] == [0, 1, 2, 3, 4]
        assert [s.run(element) for _ in range(99)] == list(range(1, 100))


def test_an_error_comes_in_its_turn(tf, graph, target):
    """The third place fails while it is opened, before the first element."""
    d = tf.data.Dataset.from_tensor_slices([1, 2, 0, 3]).interleave(
        lambda x: tf.data.Dataset.range(tf.cast(6 // x, tf.int64)),
        cycle_length=3, num_parallel_calls=2)
    it = tf.data.make_initializable_iterator(d, shared_name="third")
    element = it.get_next()
    with tf.Session(target) as s:
        s.run(it.initializer)
        assert [s.run(element), s.run(element)] == [0, 0]
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(element)
        assert s.run(element) == 1


def test_a_step_that_gives_up_leaves_its_element(tf, graph, target):
    source = tf.queue.FIFOQueue(100, [tf.int64], [[]], shared_name="slow")
    d = tf.data.Dataset.range(4).map(lambda x: x * 10 + source.dequeue(),
                                     num_parallel_calls=1).prefetch(2)
    it = tf.data.make_initializable_iterator(d, shared_name="gives up")
    element, more = it.get_next(), source.enqueue_many([[1, 2, 3, 4]])
    with tf.Session(target) as s:
        s.run(it.initializer)
        with pytest.raises((tf.errors.DeadlineExceededError,
                            tf.errors.CancelledError)):
            s.run(element, options=tf.RunOptions(timeout_in_ms=300))
        s.run(more)
        assert [s.run(element) for _ in range(4)] == [1, 12, 23, 34]


def test_a_new_beginning_ends_what_waits(tf, graph, target):
    """The calls of the first round wait for ever; they take nothing from the
    queue once their iterator has begun anew."""
    source = tf.queue.FIFOQueue(100, [tf.int64], [[]], shared_name="empty")
    d = tf.data.Dataset.range(4).map(lambda x: x * 10 + source.dequeue(),
                                     num_parallel_calls=2).prefetch(1)
    it = tf.data.make_initializable_iterator(d, shared_name="anew")
    element, more = it.get_next(), source.enqueue_many([[5] * 4])
    with tf.Session(target) as s:
        for _ in range(3):
            s.run(it.initializer)
            with pytest.raises((tf.errors.DeadlineExceededError,
                                tf.errors.CancelledError)):
                s.run(element, options=tf.RunOptions(timeout_in_ms=300))
        s.run(it.initializer)
        s.run(more)
        assert [s.run(element) for _ in range(4)] == [5, 15, 25, 35]
        assert s.run(source.size()) == 0


def test_a_client_that_is_killed_leaves_a_server_that_serves(tf, graph, tasks,
                                                             target):
    client = cl.Task("endless", [cl.python(), cl.PROGRAMS / "endless.py",
                                 target], tasks.directory / "endless.log")
    for _ in range(2):
        client.start()
        cl.wait("it reads", lambda: client.text().count("read") > 3,
                tasks=[client, *tasks.servers()])
        client.stop()
    it = tf.data.make_initializable_iterator(
        tf.data.Dataset.range(3).prefetch(2), shared_name="endless")
    assert everything(tf, target, it) == [0, 1, 2]
