"""Tasks with several CPUs, ours and TensorFlow's: ConfigProto.device_count."""
import sys

import pytest

import cluster as cl


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


@pytest.fixture(scope="module", params=["muster", "tensorflow"])
def target(request, tf):
    """The worker is ours, the ps as the parameter says; two CPUs each."""
    sys.path.insert(0, cl.package())
    try:
        import muster
    finally:
        sys.path.pop(0)
    ports = [cl.Port(), cl.Port()]
    spec = {"ps": [ports[0].address], "worker": [ports[1].address]}
    config = tf.ConfigProto(device_count={"CPU": 2})
    kinds = {"muster": muster.Server, "tensorflow": tf.train.Server}
    ps = kinds[request.param](spec, job_name="ps", task_index=0,
                              config=config)
    worker = muster.Server(spec, job_name="worker", task_index=0,
                           config=config)
    yield worker.target
    worker.stop()
    if request.param == "muster":
        ps.stop()
    for p in ports:
        p.release()


@pytest.fixture
def graph(tf):
    with tf.Graph().as_default() as g:
        yield g


def name(job, cpu):
    return "/job:%s/replica:0/task:0/device:CPU:%d" % (job, cpu)


def test_all_devices_are_listed(tf, graph, target):
    tf.constant(1.)
    with tf.Session(target) as s:
        assert sorted(d.name for d in s.list_devices()) == [
            name(j, i) for j in ("ps", "worker") for i in (0, 1)]


def test_nodes_run_where_they_were_put(tf, graph, target):
    x = tf.placeholder(tf.float32)
    places = ["/job:ps/cpu:1", "/cpu:1", "/job:ps/device:CPU:0",
              "/job:worker/task:0/cpu:0", "/job:ps/task:0/cpu:1"]
    for d in places:
        with tf.device(d):
            x = x + 1.
    with tf.Session(target) as s:
        meta = tf.RunMetadata()
        assert s.run(x, {"Placeholder:0": 1.}, options=tf.RunOptions(
            output_partition_graphs=True), run_metadata=meta) == 6.
    where = {n.name: n.device for g in meta.partition_graphs for n in g.node}
    assert [where[n] for n in ("add", "add_1", "add_2", "add_3", "add_4")] == [
        name("ps", 1), name("worker", 1), name("ps", 0), name("worker", 0),
        name("ps", 1)]


def test_loops_and_variables_over_devices(tf, graph, target):
    with tf.device("/job:ps/cpu:1"):
        v = tf.get_variable("v", initializer=2., use_resource=True)

    def body(i, x):
        with tf.device("/job:worker/cpu:1"):
            y = x * v
        with tf.device("/job:ps/cpu:0"):
            return i + 1, y + 1.

    _, r = tf.while_loop(lambda i, x: i < 5, body, [0, tf.constant(1.)])
    with tf.Session(target) as s:
        s.run(v.initializer)
        assert s.run(r) == 63.


def test_what_is_not_there(tf, graph, target):
    with tf.device("/job:ps/cpu:2"):
        a = tf.constant(1.) + 1.
    with tf.Session(target) as s:
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            s.run(a)
    assert "was explicitly assigned to /job:ps/device:CPU:2 but available " \
        "devices are [ " + ", ".join(
            name(j, i) for j in ("ps", "worker") for i in (0, 1)) \
        in e.value.message
    soft = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(target, config=soft) as s:
        assert s.run(a) == 2.
