"""Control flow that lives on the ps, or runs between it and the worker.

Cases here leave some ops on the worker on purpose: loops and branches whose
parts are on two tasks, and the dead values that travel between them.
"""
from cases import X, f32, graph, n0


@graph("Switch Merge", types=["float32", "int64", "string"])
def branch(k, dtype):
    outs = []
    for pred in (True, False):
        a, b = k.raw.Switch(data=k.x(X(2), dtype),
                            pred=k.x(n0(pred, "bool")))
        m = k.raw.Merge(inputs=[k.raw.Identity(input=a),
                                k.raw.Identity(input=b)])
        outs += list(m)
    return outs


@graph("Switch Merge", "across tasks")
def across(k):
    """Each branch on another task: a dead value travels each way."""
    outs = []
    for pred in (True, False):
        a, b = k.raw.Switch(data=k.x(f32(1, 2)), pred=k.x(n0(pred, "bool")))
        with k.tf.device(k.task):
            a = a * 2
            b = b * 3
        m = k.raw.Merge(inputs=[a, b])
        with k.tf.device(k.task):
            c, d = k.raw.Switch(data=m.output, pred=k.x(n0(pred, "bool")))
        c, d = c + 10, d + 20
        with k.tf.device(k.task):
            outs += list(k.raw.Merge(inputs=[c, d]))
    return outs


@graph("RefSwitch RefMerge RefIdentity")
def references(k):
    v, w = k.ref(f32(1, 2)), k.ref(f32(3, 4))
    _, a = k.raw.RefSwitch(data=v, pred=k.x(n0(True, "bool")))
    b, _ = k.raw.RefSwitch(data=w, pred=k.x(n0(True, "bool")))
    m = k.raw.RefMerge(inputs=[a, b])
    return k.tf.identity(m.output), m.value_index


@graph("RefSelect", "one of three")
def select(k):
    refs = [k.ref(f32(i)) for i in range(3)]
    return k.tf.identity(k.raw.RefSelect(index=k.x(n0(1, "int32")),
                                         inputs=refs))


@graph("ControlTrigger", "runs whatever is dead")
def trigger(k):
    dead, live = k.raw.Switch(data=k.x(f32(1)), pred=k.x(n0(True, "bool")))
    with k.after(dead, live):
        t = k.raw.ControlTrigger()
    with k.after(t):
        return k.raw.Identity(input=k.x(f32(7)))


LOOP = "Enter Exit NextIteration LoopCond"


def start(k, *values):
    """Loop variables: 0, and the values, with the shapes they have."""
    out = []
    for v in (n0(0, "int32"), *values):
        t = k.raw.Identity(input=k.x(v))
        t.set_shape(v.shape)
        out.append(t)
    return out


def loop(k, count, place_body=None, place_cond=None):
    """while i < count: i += 1, x = 2 x + i; parts where they are told."""
    def cond(i, x):
        with k.tf.device(place_cond or k.device):
            return k.tf.less(i, count)

    def body(i, x):
        with k.tf.device(place_body or k.device):
            y = x * 2.0 + k.tf.cast(i, k.tf.float32)
        return i + 1, y + 0.0

    return k.tf.while_loop(cond, body, start(k, f32(1, -2)))


for count in (0, 1, 5, 40):
    @graph(LOOP, "%d times" % count)
    def on_one_task(k, count=count):
        return loop(k, count)

    @graph(LOOP, "%d times, body on the worker" % count)
    def body_there(k, count=count):
        return loop(k, count, place_body=k.task)

    @graph(LOOP, "%d times, condition on the worker" % count)
    def condition_there(k, count=count):
        return loop(k, count, place_cond=k.task)


@graph(LOOP, "loop of the worker, body on the ps")
def of_the_worker(k):
    def body(i, x):
        with k.tf.device(k.device):
            y = x * 2.0
        return i + 1, y

    with k.tf.device(k.task):
        return k.tf.while_loop(lambda i, x: i < 4, body,
                               start(k, f32(1, 2)))


@graph(LOOP, "a variable read in the loop, its frame spans tasks")
def variable_in_the_loop(k):
    h = k.var(f32(1, 2))

    def body(i, x):
        with k.tf.device(k.device):
            v = k.read(h, "float32")
            v.set_shape([2])
        return i + 1, x + v

    with k.tf.device(k.task):
        return k.tf.while_loop(lambda i, x: i < 3, body,
                               start(k, f32(0, 0)))


@graph(LOOP, "a variable counts the turns")
def counts(k):
    h, one = k.var(f32(0)), k.x(f32(1))

    def body(i):
        with k.after(k.raw.AssignAddVariableOp(resource=h, value=one)):
            return k.tf.identity(i) + 1

    i = k.tf.while_loop(lambda i: i < 6, body, start(k))
    with k.after(i):
        return i, k.read(h, "float32")


@graph(LOOP, "nested")
def nested(k):
    def inner(i, x):
        _, y = k.tf.while_loop(
            lambda j, y: j < i, lambda j, y: (j + 1, y * 1.5 + 1.0),
            [k.tf.constant(0), x])
        return i + 1, y

    return k.tf.while_loop(lambda i, x: i < 4, inner, start(k, f32(1, 2)))


@graph(LOOP, "nested, the inner one across tasks")
def nested_across(k):
    def inner(i, x):
        def body(j, y):
            with k.tf.device(k.task):
                y = y * 1.5
            return j + 1, y + 1.0
        _, y = k.tf.while_loop(lambda j, y: j < i, body,
                               [k.tf.constant(0), x])
        return i + 1, y

    return k.tf.while_loop(lambda i, x: i < 3, inner, start(k, f32(1, 2)))


@graph(LOOP, "a branch in a loop")
def branch_in_a_loop(k):
    def body(i, x):
        y = k.tf.cond(k.tf.equal(i % 2, 0), lambda: x + 1.0, lambda: x * 2.0)
        return i + 1, y

    return k.tf.while_loop(lambda i, x: i < 5, body, start(k, f32(1, 2)))


for taken in (True, False):
    @graph(LOOP, "a loop in a branch, %staken" % ("" if taken else "not "))
    def loop_in_a_branch(k, taken=taken):
        pred = k.x(n0(taken, "bool"))
        pred.set_shape([])
        i, x = start(k, f32(1, 2))
        return k.tf.cond(pred, lambda: k.tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0),
            [k.tf.identity(i), k.tf.identity(x)])[1], lambda: x - 1.0)

    @graph(LOOP, "a loop across tasks in a branch, %staken" % (
        "" if taken else "not "))
    def loop_across_in_a_branch(k, taken=taken):
        def body(i, x):
            with k.tf.device(k.task):
                return i + 1, x * 2.0

        pred = k.x(n0(taken, "bool"))
        pred.set_shape([])
        i, x = start(k, f32(1, 2))
        return k.tf.cond(pred, lambda: k.tf.while_loop(
            lambda i, x: i < 3, body,
            [k.tf.identity(i), k.tf.identity(x)])[1], lambda: x - 1.0)


@graph(LOOP, "one at a time")
def one_at_a_time(k):
    return k.tf.while_loop(lambda i, x: i < 9, lambda i, x: (i + 1, x + 1.0),
                           start(k, f32(1)), parallel_iterations=1)


@graph("RefEnter RefExit RefNextIteration RefMerge RefSwitch",
       "a reference goes round")
def ref_loop(k):
    """Three turns of a loop by hand; each adds 1 to the variable."""
    frame, v, one = k.name(), k.ref(f32(5, 6)), k.x(f32(1, 1))
    count = k.raw.Enter(data=k.x(n0(0, "int32")), frame_name=frame)
    limit = k.raw.Enter(data=k.x(n0(3, "int32")), frame_name=frame,
                        is_constant=True)
    add = k.raw.Enter(data=one, frame_name=frame, is_constant=True)
    ref = k.raw.RefEnter(data=v, frame_name=frame)
    i = k.raw.Merge(inputs=[count, count])
    r = k.raw.RefMerge(inputs=[ref, ref])
    more = k.raw.LoopCond(input=k.raw.Less(x=i.output, y=limit))
    out_i, in_i = k.raw.Switch(data=i.output, pred=more)
    out_r, in_r = k.raw.RefSwitch(data=r.output, pred=more)
    with k.after(in_i):
        step = k.tf.constant(1)
    i.output.op._update_input(1, k.raw.NextIteration(data=in_i + step))
    r.output.op._update_input(1, k.raw.RefNextIteration(
        data=k.raw.AssignAdd(ref=in_r, value=add)))
    return k.raw.Exit(data=out_i), k.tf.identity(k.raw.RefExit(data=out_r))


# --- Functions, lowered by the master or called on the ps --------------------


@graph("PartitionedCall StatefulPartitionedCall", "a tf.function")
def function(k):
    tf = k.tf

    @tf.function(autograph=False)
    def f(x, y):
        return x * 2.0 + y, tf.reduce_sum(y)

    return f(k.x(f32(1, 2)), k.x(f32(3, 4)))


@graph("If StatelessIf", "as a function")
def functional_if(k):
    tf = k.tf

    @tf.function(autograph=False)
    def yes(x):
        return x + 1.0

    @tf.function(autograph=False)
    def no(x):
        return x * 3.0

    spec = tf.TensorSpec(None, tf.float32)
    outs = []
    for pred in (True, False):
        outs += k.raw.If(cond=k.x(n0(pred, "bool")), input=[k.x(f32(1, 2))],
                         Tout=["float32"],
                         then_branch=yes.get_concrete_function(spec),
                         else_branch=no.get_concrete_function(spec))
    return outs


@graph("While StatelessWhile", "as a function")
def functional_while(k):
    tf = k.tf

    @tf.function(autograph=False)
    def cond(i, x):
        return i < 4

    @tf.function(autograph=False)
    def body(i, x):
        return i + 1, x * 2.0

    specs = [tf.TensorSpec(None, tf.int32), tf.TensorSpec(None, tf.float32)]
    return k.raw.While(input=[k.x(n0(0, "int32")), k.x(f32(1, 2))],
                       cond=cond.get_concrete_function(*specs),
                       body=body.get_concrete_function(*specs))



@graph("Case StatelessCase", "as a function")
def functional_case(k):
    tf = k.tf
    spec = tf.TensorSpec(None, tf.float32)
    branches = [tf.function(f, autograph=False).get_concrete_function(spec)
                for f in (lambda x: x + 1.0, lambda x: x * 3.0,
                          lambda x: x - 5.0)]
    outs = []
    for i in (-1, 0, 1, 2, 7):
        outs += k.raw.Case(branch_index=k.x(n0(i, "int32")),
                           input=[k.x(f32(1, 2))], Tout=["float32"],
                           branches=branches)
    return outs


def both_ways(ops, label):
    """Decorator: once with Switch and Merge, once with functions."""
    def decorate(build):
        for functions in (False, True):
            def run(k, functions=functions):
                from tensorflow.python.ops import control_flow_util
                before = control_flow_util.ENABLE_CONTROL_FLOW_V2
                control_flow_util.ENABLE_CONTROL_FLOW_V2 = functions
                try:
                    return build(k)
                finally:
                    control_flow_util.ENABLE_CONTROL_FLOW_V2 = before
            graph(ops, label + (", functions" if functions else ""))(run)
        return build
    return decorate


@both_ways(LOOP + " If While", "a gradient through a loop")
def loop_gradient(k):
    x, start_ = k.x(f32(2, 3)), k.x(f32(1, 1))
    for t in (x, start_):
        t.set_shape([2])
    _, y = k.tf.while_loop(lambda i, y: i < 5,
                           lambda i, y: (i + 1, y * x + 1.0),
                           [k.tf.constant(0), start_])
    return y, k.tf.gradients(y, [x, start_])


@both_ways("Switch Merge If", "a gradient through a branch")
def branch_gradient(k):
    x = k.x(n0(2, "float32"))
    x.set_shape([])
    y = k.tf.cond(x > 1.0, lambda: x * x * x, lambda: x)
    return y, k.tf.gradients(y, [x])


@both_ways("TensorArrayV3 TensorListStack While", "a scan and its gradient")
def scan(k):
    # On the side under test: tensor arrays go where their first input is.
    x, w = (k.tf.identity(k.x(v, "float32"))
            for v in (X(4, 3), X(3, seed=2)))
    x.set_shape([4, 3])
    w.set_shape([3])
    y = k.tf.scan(lambda a, e: k.tf.tanh(a * w + e), x)
    return y, k.tf.gradients(y, [x, w])
