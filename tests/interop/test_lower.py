"""Functional control flow on our master: bodies that are spread over tasks.

TensorFlow 2 makes If, While, Case and calls of functions; the master takes
them apart before it places the graph.  Each test runs over two ps of ours and
over one of ours and one of TensorFlow.
"""
import pytest

import cluster as cl

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


@pytest.fixture(scope="module", params=["muster", "tensorflow"])
def tasks(request, tmp_path_factory):
    with cl.Cluster(tmp_path_factory.mktemp("lower"),
                    ("muster", request.param), 1, (0,)) as c:
        yield c


@pytest.fixture
def target(tasks):
    return "grpc://" + tasks.ports["worker"][0].address


@pytest.fixture
def graph(tf):
    tf.enable_control_flow_v2()
    with tf.Graph().as_default() as g:
        yield g
    tf.disable_control_flow_v2()


def ps(tf, i):
    return tf.device("/job:ps/task:%d" % i)


def test_a_branch_runs_where_it_says(tf, graph, target):
    p = tf.placeholder(tf.bool)
    with ps(tf, 0):
        a = tf.constant(2.)

    def there():
        with ps(tf, 1):
            return tf.multiply(a, 3., name="product")

    r = tf.cond(p, there, lambda: a + 10., name="choice")
    with tf.Session(target) as s:
        meta = tf.RunMetadata()
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert s.run(r, {p: True}, options=full, run_metadata=meta) == 6.
        assert s.run(r, {p: False}) == 12.
    where = {n.node_name: d.device for d in meta.step_stats.dev_stats
             for n in d.node_stats}
    made = [n for n in where if n.startswith("choice/then/_0/product")]
    assert "/job:ps/replica:0/task:1" in where[min(made, key=len)]


def test_only_the_taken_branch_has_effects(tf, graph, target):
    with ps(tf, 0):
        v = tf.get_variable("v", initializer=1., use_resource=True)
    with ps(tf, 1):
        w = tf.get_variable("w", initializer=1., use_resource=True)
    p = tf.placeholder(tf.bool)
    r = tf.cond(p, lambda: v.assign_add(1.).op, lambda: w.assign_add(10.).op)
    with tf.control_dependencies([r]):
        after = tf.identity(p)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for taken in (True, False, False):
            s.run(after, {p: taken})
        assert s.run([v, w]) == [2., 21.]
        s.run(r, {p: True})
        assert s.run([v, w]) == [3., 21.]


def test_a_loop_with_state_on_two_ps(tf, graph, target):
    with ps(tf, 0):
        v = tf.get_variable("a", initializer=0., use_resource=True)
    with ps(tf, 1):
        w = tf.get_variable("b", initializer=3., use_resource=True)

    def body(i, x):
        with tf.control_dependencies([v.assign_add(1.)]):
            with ps(tf, 1):
                return i + 1, x + w

    n = tf.placeholder(tf.int32)
    _, r = tf.while_loop(lambda i, x: i < n, body, [0, tf.constant(1.)])
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        for count in (0, 1, 5, 30):
            s.run(v.initializer)
            assert s.run(r, {n: count}) == 1. + 3. * count
            assert s.run(v) == count


def test_a_body_does_not_run_once_too_often(tf, graph, target):
    """In the last iteration there is a condition, but no body."""
    with ps(tf, 1):
        q = tf.FIFOQueue(10, tf.float32, shapes=[[]])

    def body(i, x):
        return i + 1, x + q.dequeue()

    _, r = tf.while_loop(lambda i, x: i < 3, body, [0, tf.constant(0.)])
    with tf.Session(target) as s:
        s.run(q.enqueue_many([[1., 2., 4., 8., 16.]]))
        assert s.run(r) == 7.
        assert s.run(q.size()) == 2


def test_a_branch_in_a_loop_in_a_branch(tf, graph, target):
    def odd(x):
        with ps(tf, 0):
            return x * 3. + 1.

    def even(x):
        with ps(tf, 1):
            return x / 2.

    def body(i, x):
        return i + 1, tf.cond(tf.equal(tf.floormod(x, 2.), 0.),
                              lambda: even(x), lambda: odd(x))

    x = tf.placeholder(tf.float32)
    n, r = tf.cond(x > 0., lambda: tf.while_loop(lambda i, x: x > 1., body,
                                                 [0, x]),
                   lambda: [tf.constant(-1), x])
    with tf.Session(target) as s:
        assert s.run([n, r], {x: 7.}) == [16, 1.]
        assert s.run([n, r], {x: -2.}) == [-1, -2.]
        assert s.run(n, {x: 1.}) == 0


def test_a_loop_in_a_loop(tf, graph, target):
    def inner(j, x):
        with ps(tf, 1):
            return j + 1, x + 1.

    def outer(i, x):
        with ps(tf, 0):
            y = x * 2.
        _, z = tf.while_loop(lambda j, x: j < i, inner, [0, y])
        return i + 1, z

    r = tf.while_loop(lambda i, x: i < 6, outer, [0, tf.constant(1.)])
    want = 1.
    for i in range(6):
        want = want * 2. + i
    with tf.Session(target) as s:
        assert [*s.run(r)] == [6, want]


def test_gradients(tf, graph, target):
    with ps(tf, 0):
        w = tf.get_variable("w", initializer=3., use_resource=True)

    def body(i, y):
        with ps(tf, 1):
            return i + 1, y * w

    n = tf.placeholder(tf.int32)
    _, y = tf.while_loop(lambda i, y: i < n, body, [0, tf.constant(1.)])
    z = tf.cond(y > 10., lambda: y * y, lambda: y + w)
    g, = tf.gradients(z, w)
    with tf.Session(target) as s:
        s.run(w.initializer)
        assert s.run([y, z, g], {n: 3}) == [27., 729., 2 * 27. * 27.]
        assert s.run([y, z, g], {n: 2}) == [9., 12., 7.]


def test_one_of_many_branches(tf, graph, target):
    i = tf.placeholder(tf.int32)
    with ps(tf, 0):
        a = tf.constant(2.)

    def second():
        with ps(tf, 1):
            return a + 100.

    r = tf.switch_case(i, [lambda: a * 1., second, lambda: tf.constant(7.)])
    with tf.Session(target) as s:
        assert [s.run(r, {i: k}) for k in (0, 1, 2, 5)] == [2., 102., 7., 7.]


def test_a_function_over_tasks(tf, graph, target):
    with ps(tf, 0):
        v = tf.get_variable("v", initializer=1., use_resource=True)

    @tf.function(autograph=False)
    def twice(x):
        with ps(tf, 1):
            y = tf.multiply(x, 2., name="product")
        v.assign_add(1.)
        return y, y + v

    y, z = twice(tf.constant(5.))
    with tf.Session(target) as s:
        s.run(v.initializer)
        assert s.run([y, z]) == [10., 12.]
        assert s.run(y) == 10.
        s.run(y.op)
        assert s.run(v) >= 3.


def test_ops_that_were_taken_apart_go_by_their_names(tf, graph, target):
    p = tf.placeholder(tf.bool)
    a = tf.constant(2.)
    r = tf.cond(p, lambda: a * 3., lambda: a + 10., name="choice")
    out = tf.identity(r * 2.)
    graph._unfetchable_ops.clear()  # TensorFlow's client does not want to
    with tf.Session(target) as s:
        assert s.run("choice:0", {p: True}) == 6.
        s.run("choice", {p: True})
        assert s.run(out, {"choice:0": 4.}) == 8.
        later = r + 1.  # the graph grows
        assert s.run(later, {p: False}) == 13.


def test_errors_name_the_node_of_the_body(tf, graph, target):
    p = tf.placeholder(tf.bool)
    x = tf.placeholder(tf.float32)

    def there():
        with ps(tf, 1):
            return tf.debugging.check_numerics(x, "odd", name="check")

    r = tf.cond(p, there, lambda: x, name="choice")
    with tf.Session(target) as s:
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            s.run(r, {p: True, x: float("nan")})
        assert "{{node choice/then/_0/check" in e.value.message
        assert "From /job:ps/replica:0/task:1:" in e.value.message
        s.run(r, {p: False, x: float("nan")})


def test_a_recurrent_network_learns(tf, graph, target):
    with ps(tf, 0):
        w = tf.get_variable("w", [4, 4], use_resource=True,
                            initializer=tf.initializers.random_normal(seed=1))
    x = tf.random_uniform([6, 5, 4], seed=1)
    steps = tf.TensorArray(tf.float32, 6).unstack(x)
    states = tf.TensorArray(tf.float32, 6, element_shape=[5, 4])

    def body(i, h, out):
        x = steps.read(i)
        with ps(tf, 1):
            h = tf.tanh(tf.matmul(h, w) + x)
        return i + 1, h, out.write(i, h)

    _, _, out = tf.while_loop(lambda i, h, out: i < 6, body,
                              [0, tf.zeros([5, 4]), states])
    loss = tf.reduce_mean(tf.square(out.stack() - 0.5))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session(target) as s:
        s.run(tf.global_variables_initializer())
        first = s.run(loss)
        for _ in range(10):
            s.run(step)
        assert s.run(loss) < first
