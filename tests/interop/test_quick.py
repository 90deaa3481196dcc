"""The quick path between our own tasks: on, off and without shared memory.

What TensorFlow's client sees must be the same.  Sessions are on a worker of
ours; how many bytes lie in memory that is shared is in /proc/PID/maps.
"""
import threading

import numpy as np
import pytest

import cluster as cl

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


def start(tmp_path, mode, workers=1):
    return cl.Cluster(tmp_path, ("muster", "muster"), workers,
                      range(workers), {"MUSTER_QUICK": mode})


def target(c, i=0):
    return "grpc://" + c.ports["worker"][i].address


def shared(task):
    """Segments of shared memory that the process has mapped."""
    with open("/proc/%d/maps" % task.pid) as f:
        return sum("memfd:muster" in line for line in f)


@pytest.fixture(scope="module", params=["off", "tcp", "shm"])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def tasks(tmp_path_factory, mode):
    with start(tmp_path_factory.mktemp("quick"), mode) as c:
        yield c


VALUES = [
    np.float32(1.5), np.arange(6, dtype=np.int64).reshape(2, 3),
    np.zeros([0, 3], np.float64), np.array([True, False]),
    np.array([b"", b"text", b"\0" * 1000], object),
    np.array(b"alone", object), np.arange(5, dtype=np.complex64),
    np.arange(4096, dtype=np.float32), np.arange(4097, dtype=np.float32),
    np.arange(1 << 20, dtype=np.uint8), np.ones([1000, 1001], np.float64),
    np.array([b"long" * 5000] * 3, object),
]


def test_values_of_all_kinds_go_there_and_back(tf, tasks):
    with tf.Graph().as_default(), tf.Session(target(tasks)) as s:
        outs = []
        for v in VALUES:
            with tf.device("/job:worker/task:0"):
                x = tf.identity(tf.constant(v))
            with tf.device("/job:ps/task:0"):
                y = tf.identity(x)
            with tf.device("/job:ps/task:1"):
                z = tf.identity(y)
            with tf.device("/job:worker/task:0"):
                outs.append(tf.identity(z))
        for _ in range(5):
            for want, got in zip(VALUES, s.run(outs)):
                np.testing.assert_array_equal(want, got)
                assert np.asarray(want).dtype == np.asarray(got).dtype or \
                    isinstance(got, bytes)


@pytest.mark.parametrize("resource", [False, True])
def test_a_read_behind_an_update_sees_it(tf, tasks, resource):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(0, dtype=tf.int64, use_resource=resource,
                            name="count%d" % resource)
            w = tf.Variable(tf.zeros([100]), use_resource=resource,
                            name="w%d" % resource)
        with tf.device("/job:worker/task:0"):
            with tf.device("/job:ps/task:0"):
                update = tf.assign_sub(w, tf.ones([100]) * 2.)
            with tf.control_dependencies([tf.group(update)]):
                with tf.device("/job:ps/task:0"):
                    count = tf.assign_add(v, 1)
            with tf.control_dependencies([count]):
                seen = tf.identity(v.read_value())
        with tf.Session(target(tasks)) as s:
            s.run(tf.global_variables_initializer())
            assert [s.run(seen) for _ in range(100)] == list(range(1, 101))


@pytest.mark.parametrize("resource", [False, True])
def test_third_tasks_meet(tf, tasks, resource):
    """What two ps need of each other: values of all sizes, control, and a
    reference variable that is read behind its update."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(0, dtype=tf.int64, use_resource=resource,
                            name="third%d" % resource)
            w = tf.Variable(tf.zeros([1 << 20]), use_resource=resource,
                            name="thirds%d" % resource)
            update = tf.assign_add(w, tf.ones([1 << 20]))
        with tf.device("/job:ps/task:1"):
            with tf.control_dependencies([update]):
                n = tf.Variable(0, dtype=tf.int64, use_resource=resource,
                                name="other%d" % resource)
                other = tf.assign_add(n, 1)
        with tf.device("/job:ps/task:0"):
            with tf.control_dependencies([other]):
                count = tf.assign_add(v, 1)
        with tf.device("/job:ps/task:1"):
            with tf.control_dependencies([count]):
                seen = tf.identity(v.read_value())
                total = tf.reduce_sum(tf.identity(w.read_value()))
        with tf.Session(target(tasks)) as s:
            s.run(tf.global_variables_initializer())
            for i in range(1, 51):
                assert s.run([seen, total]) == [i, i << 20]


def test_dead_values_and_loops_cross(tf, tasks):
    with tf.Graph().as_default():
        flag = tf.placeholder(tf.bool, [])
        tf.disable_control_flow_v2()

        def taken():
            with tf.device("/job:ps/task:0"):
                return tf.constant(2.) * 3.

        def other():
            with tf.device("/job:ps/task:1"):
                return tf.constant(5.) * 7.

        def body(i, x):
            with tf.device("/job:ps/task:0"):
                return i + 1, x * 2.

        picked = tf.cond(flag, taken, other)
        _, power = tf.while_loop(lambda i, x: i < 20, body,
                                 [tf.constant(0), picked])
        with tf.Session(target(tasks)) as s:
            for _ in range(3):
                assert s.run(power, {flag: True}) == 6. * 2 ** 20
                assert s.run(power, {flag: False}) == 35. * 2 ** 20


def test_large_values_are_shared_where_they_can_be(tf, tasks, mode):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(tf.ones([1 << 20]), use_resource=True, name="large")
        with tf.device("/job:worker/task:0"):
            pulled = tf.reduce_sum(tf.identity(v.read_value()))
        with tf.Session(target(tasks)) as s:
            s.run(tf.global_variables_initializer())
            s.run(pulled)
            cl.wait("the lane is there",
                    lambda: s.run(pulled) == 1 << 20 and
                    (shared(tasks.served[0]) > 0) == (mode == "shm"))


def pulls_and_pushes(tf):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.zeros([2 << 20]), use_resource=False)
    with tf.device("/job:worker/task:0"):
        grad = tf.identity(v) * 0. + 1.
    with tf.device("/job:ps/task:0"):
        return tf.assign_add(v, grad).op, v


def run_until_it_fails(tf, s, op, out):
    try:
        while True:
            s.run(op)
    except Exception as e:  # noqa: BLE001: whatever it is, is looked at
        out.append(e)


def test_a_ps_killed_in_a_transfer_is_told_and_leaves_nothing(tf, tmp_path,
                                                              mode):
    with start(tmp_path, mode) as c, tf.Graph().as_default():
        op, v = pulls_and_pushes(tf)
        with tf.Session(target(c)) as s:
            s.run(tf.global_variables_initializer())
            out = []
            t = threading.Thread(target=run_until_it_fails,
                                 args=(tf, s, op, out))
            t.start()
            cl.wait("it runs", lambda: mode != "shm" or
                    shared(c.served[0]) > 0, tasks=[c.served[0]])
            c.ps[0].stop()
            t.join(60)
            assert isinstance(out[0], (tf.errors.UnavailableError,
                                       tf.errors.AbortedError)), out
        cl.wait("nothing is shared any more", lambda: not shared(c.served[0]))
        c.restart_ps(0)
        with tf.Session(target(c)) as s:
            s.run(tf.global_variables_initializer())
            s.run(op)
            assert s.run(v)[-1] == 1.


@pytest.mark.parametrize("reader", ["worker/task:0", "ps/task:1"])
def test_a_ps_killed_when_its_part_has_ended_is_told(tf, tmp_path, mode,
                                                     reader):
    """A value that is still to be read there comes never."""
    def gate():
        return tf.FIFOQueue(1, tf.int32, [[]], shared_name="gate")

    others = tf.Graph()
    with others.as_default(), tf.device("/job:" + reader):
        open_gate = gate().enqueue(1)
    with start(tmp_path, mode) as c, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(0, use_resource=False)
            update = tf.assign_add(v, 1)
        with tf.device("/job:" + reader):
            with tf.control_dependencies([update]):
                opened = gate().dequeue()
            with tf.control_dependencies([opened]):
                seen = tf.identity(v.op.outputs[0])  # the reference
        init = tf.global_variables_initializer()
        alive = tf.ConfigProto(device_filters=["/job:worker", "/job:ps/task:1"])
        with tf.Session(target(c)) as s, \
                tf.Session(target(c), graph=others, config=alive) as other:
            s.run(init)
            other.run(open_gate)
            assert s.run(seen) == 1
            out = []
            t = threading.Thread(target=run_until_it_fails,
                                 args=(tf, s, seen, out))
            t.start()
            cl.wait("the update is made", lambda: s.run(v) == 2)
            c.ps[0].stop()
            other.run(open_gate)
            t.join(60)
            assert out and isinstance(out[0], (
                tf.errors.UnavailableError, tf.errors.AbortedError)), out


def test_a_worker_killed_in_a_transfer_leaves_nothing(tf, tmp_path, mode):
    with start(tmp_path, mode, workers=2) as c, tf.Graph().as_default():
        op, v = pulls_and_pushes(tf)
        s = tf.Session(target(c))
        s.run(tf.global_variables_initializer())
        # TensorFlow's client goes on asking a master that is gone.
        threading.Thread(target=run_until_it_fails, args=(tf, s, op, []),
                         daemon=True).start()
        cl.wait("it runs", lambda: mode != "shm" or shared(c.ps[0]) > 0,
                tasks=[c.ps[0]])
        c.served[0].stop()
        # Only the variable itself may lie where its last update lay.
        cl.wait("the ps lets go", lambda: shared(c.ps[0]) <= 1)
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(tf.zeros([2 << 20]), use_resource=False)
            with tf.device("/job:worker/task:1"):
                seen = tf.identity(v)
            with tf.Session(target(c, 1), config=tf.ConfigProto(
                    device_filters=["/job:ps", "/job:worker/task:1"])) as s:
                value = s.run(seen)
                assert (value == value[0]).all()
