"""Sessions on our master service, as TensorFlow's client uses them."""
import json
import threading
import time

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
    """Two ps and one worker, all ours; sessions are on the worker."""
    with cl.Cluster(tmp_path_factory.mktemp("master"), ("muster", "muster"),
                    1, (0,)) as c:
        yield c


@pytest.fixture
def target(tasks):
    return "grpc://" + tasks.ports["worker"][0].address


@pytest.fixture
def graph(tf):
    with tf.Graph().as_default() as g:
        yield g


def test_values_cross_tasks(tf, graph, target):
    with tf.device("/job:ps/task:0"):
        a = tf.constant([1., 2.])
    with tf.device("/job:ps/task:1"):
        b = a * 3.
    with tf.device("/job:worker/task:0"):
        c = b + 1.
    with tf.Session(target) as s:
        assert list(s.run(c)) == [4., 7.]
        assert list(s.run(b, {a: [5., 6.]})) == [15., 18.]


@pytest.mark.parametrize("v2", [False, True])
def test_a_loop_over_three_tasks(tf, graph, target, v2):
    def body(i, x):
        with tf.device("/job:ps/task:0"):
            y = x * 2.
        with tf.device("/job:ps/task:1"):
            z = y + 1.
        return i + 1, z

    toggle = tf.enable_control_flow_v2 if v2 else tf.disable_control_flow_v2
    toggle()
    try:
        n = tf.placeholder(tf.int32)
        with tf.device("/job:worker/task:0"):
            r = tf.while_loop(lambda i, x: i < n, body, [0, tf.constant(1.)])
    finally:
        tf.disable_control_flow_v2()
    with tf.Session(target) as s:
        for steps in (0, 1, 7, 40):
            assert [*s.run(r, {n: steps})] == [steps,
                                               2. ** (steps + 1) - 1.]


def test_a_loop_in_a_loop_over_tasks(tf, graph, target):
    def inner(j, x):
        with tf.device("/job:ps/task:1"):
            return j + 1, x + 1.

    def outer(i, x):
        with tf.device("/job:ps/task:0"):
            y = x * 2.
        _, z = tf.while_loop(lambda j, x: j < i, inner, [0, y])
        return i + 1, z

    with tf.device("/job:worker/task:0"):
        r = tf.while_loop(lambda i, x: i < 6, outer, [0, tf.constant(1.)])
    want = 1.
    for i in range(6):
        want = want * 2. + i
    with tf.Session(target) as s:
        assert [*s.run(r)] == [6, want]


def test_a_branch_on_another_task(tf, graph, target):
    p = tf.placeholder(tf.bool)

    def there():
        with tf.device("/job:ps/task:1"):
            return tf.constant(1.) + 1.

    r = tf.cond(p, there, lambda: tf.constant(5.))
    with tf.Session(target) as s:
        assert s.run(r, {p: True}) == 2. and s.run(r, {p: False}) == 5.


def test_gradients_through_a_loop_over_tasks(tf, graph, target):
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(3., use_resource=True)
    with tf.device("/job:worker/task:0"):
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w),
                             [0, tf.constant(1.)])
        g, = tf.gradients(y, w)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        assert s.run([y, g]) == [27., 27.]


def test_metadata_makes_a_timeline(tf, graph, target):
    from tensorflow.python.client import timeline
    with tf.device("/job:ps/task:0"):
        a = tf.random_uniform([50, 50])
    b = tf.matmul(a, a, name="product")
    with tf.Session(target) as s:
        metadata = tf.RunMetadata()
        s.run(b, options=tf.RunOptions(
            trace_level=tf.RunOptions.FULL_TRACE,
            output_partition_graphs=True), run_metadata=metadata)
    devices = {d.device for d in metadata.step_stats.dev_stats}
    assert any("/job:ps" in d for d in devices)
    assert any("/job:worker" in d for d in devices)
    trace = json.loads(timeline.Timeline(
        metadata.step_stats).generate_chrome_trace_format())
    names = {e.get("args", {}).get("name") for e in trace["traceEvents"]}
    assert "product" in names
    assert len(metadata.partition_graphs) == 2


@pytest.mark.parametrize("rows", [[[1., 2.], [3., 4.]], [["a"], ["b"]]])
def test_parallel_stack(tf, graph, target, rows):
    with tf.Session(target) as s:
        got = s.run(tf.parallel_stack([tf.constant(r) for r in rows]))
    assert got.tolist() == tf.nest.map_structure(
        lambda v: v.encode() if isinstance(v, str) else v, rows)


def test_extend_and_fetch_anew(tf, graph, target):
    a = tf.constant(1.)
    with tf.Session(target) as s:
        for i in range(20):
            a = a + 1.
            assert s.run(a) == i + 2.


def test_sessions_share_variables_unless_isolated(tf, graph, target):
    v = tf.get_variable("shared", initializer=1., use_resource=True)
    isolated = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(target) as s, tf.Session(target) as t, \
            tf.Session(target, config=isolated) as u:
        s.run(v.initializer)
        s.run(v.assign_add(1.))
        assert t.run(v) == 2.
        with pytest.raises(tf.errors.FailedPreconditionError):
            u.run(v)


def test_closing_ends_what_runs(tf, graph, target):
    q = tf.FIFOQueue(1, tf.float32)
    d = q.dequeue()
    s = tf.Session(target)
    s.run(q.size())
    seen = []

    def wait():
        try:
            s.run(d)
        except tf.errors.OpError as e:
            seen.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    with tf.Session(target) as other:
        cl.wait("the dequeue runs", lambda: other.run(q.size()) == 0)
    s.close()
    thread.join(30)
    assert seen and isinstance(seen[0], tf.errors.CancelledError)


def test_a_timeout_ends_the_step(tf, graph, target):
    q = tf.FIFOQueue(1, tf.float32)
    d = q.dequeue()
    with tf.Session(target) as s:
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(d, options=tf.RunOptions(timeout_in_ms=200))
        s.run(q.enqueue(3.))
        assert s.run(d) == 3.


def test_errors_name_task_and_node(tf, graph, target):
    with tf.device("/job:ps/task:1"):
        c = tf.debugging.check_numerics(tf.constant(0.) / 0., "odd",
                                        name="check")
    with tf.Session(target) as s:
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            s.run(c + 1.)
    assert "From /job:ps/replica:0/task:1:\nodd" in e.value.message
    assert "{{node check}}" in e.value.message


def test_errors_of_two_tasks_are_told_together(tf, graph, target):
    """Both fail at the same time; who is first is a matter of luck."""
    both = []
    for i in range(2):
        with tf.device("/job:ps/task:%d" % i):
            both.append(tf.debugging.check_numerics(
                tf.fill([300000], 1.) / 0., "odd", name="check%d" % i).op)
    one = "From /job:ps/replica:0/task:%d:\nodd : Tensor had Inf values\n" \
        "\t [[{{node check%d}}]]"
    joined = "\n=====================\nINVALID_ARGUMENT: " + one % (1, 1) + \
        "\nINVALID_ARGUMENT: " + one % (0, 0) + "\n=====================\n"
    seen = ""
    with tf.Session(target) as s:
        for _ in range(500):
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                s.run(both)
            seen = e.value.message
            assert one % (0, 0) in seen or one % (1, 1) in seen
            if "=====" in seen:
                break
    assert joined.rstrip() in seen


def test_filters_leave_tasks_out(tf, graph, target):
    a = tf.constant(1.)
    config = tf.ConfigProto(device_filters=["/job:ps/task:1"])
    with tf.Session(target, config=config) as s:
        names = {d.name for d in s.list_devices()}
        assert s.run(a) == 1.
    assert names == {"/job:ps/replica:0/task:1/device:CPU:0",
                     "/job:worker/replica:0/task:0/device:CPU:0"}


def test_create_session_waits_for_a_task(tf, graph, tmp_path):
    with cl.Cluster(tmp_path, ("muster",), 2, (0,)) as c:
        late = c._serve("worker", 1)
        with tf.device("/job:worker/task:1"):
            a = tf.constant(2.)
        got = []

        def run():
            with tf.Session("grpc://" + c.ports["worker"][0].address,
                            graph=graph) as s:
                got.append(s.run(a))

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.3)  # a moment in which it must not have got through
        assert not got
        c.served[1] = late.start()
        thread.join(60)
        assert got == [2.]


def test_callables_run_by_number(tf, graph, target):
    from tensorflow.core.protobuf import config_pb2
    x = tf.placeholder(tf.float32, name="x")
    y = tf.identity(x * 2., name="y")
    options = config_pb2.CallableOptions()
    options.feed.append("x:0")
    options.fetch.append("y:0")
    with tf.Session(target) as s:
        s.run(y, {x: 1.})
        call = s._make_callable_from_options(options)
        import numpy as np
        assert call(np.float32(21.)) == [42.]
        del call


def test_a_callable_connects_tensors(tf, graph, target):
    """Who reads y2 gets y1, which is computed on another task."""
    from tensorflow.core.protobuf import config_pb2
    import numpy as np
    x = tf.placeholder(tf.float32, name="x")
    with tf.device("/job:ps/task:0"):
        tf.multiply(x, 2., name="y1")
    y2 = tf.placeholder(tf.float32, name="y2")
    with tf.device("/job:ps/task:1"):
        tf.add(y2, 1., name="z")

    def options(a, b):
        o = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
        o.tensor_connection.add(from_tensor=a, to_tensor=b)
        return o

    with tf.Session(target) as s:
        s.run(x, {x: 1.})
        call = s._make_callable_from_options(options("y1:0", "y2:0"))
        assert call(np.float32(5.)) == [11.]
        assert call(np.float32(1.)) == [3.]
        del call
        for a, b in (("no:0", "y2:0"), ("y1:0", "x:0")):
            with pytest.raises((tf.errors.NotFoundError,
                                tf.errors.InvalidArgumentError)):
                s._make_callable_from_options(options(a, b))


def test_reset_empties_containers(tf, graph, target):
    with tf.container("mine"):
        v = tf.get_variable("kept", initializer=1., use_resource=True)
    s = tf.Session(target)
    s.run(v.initializer)
    tf.Session.reset(target, ["mine"])
    with pytest.raises(tf.errors.AbortedError):
        s.run(v)
    with tf.Session(target) as t:
        with pytest.raises(tf.errors.FailedPreconditionError):
            t.run(v)
