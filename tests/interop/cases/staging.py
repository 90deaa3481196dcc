"""Staging areas, mutexes, old stacks, and the rest of the tensor arrays."""
from cases import X, f32, graph, i32, n0, s


def area(k, **kw):
    return {"dtypes": ["float32", "string"], "shared_name": k.name(), **kw}


@graph("Stage Unstage StagePeek StageSize StageClear")
def stage(k):
    a = area(k, capacity=3)
    last = k.raw.NoOp()
    for i in range(3):
        with k.after(last):
            last = k.raw.Stage(values=[k.x(X(2, seed=i), "float32"),
                                       k.x(s("a%d" % i))], **rest(a))
    with k.after(last):
        size, far = k.raw.StageSize(**a), k.raw.StagePeek(
            index=k.x(n0(2, "int32")), **a)
    with k.after(size, *far):
        first = k.raw.Unstage(**a)
    with k.after(*first):
        clear = k.raw.StageClear(**a)
    with k.after(clear):
        return size, far, first, k.raw.StageSize(**a)


def rest(a):
    return {key: v for key, v in a.items() if key != "dtypes"}


@graph("Stage Unstage", "a full one waits")
def stage_full(k):
    a = area(k, capacity=1)
    puts = [k.raw.Stage(values=[k.x(f32(1)), k.x(s("a"))], **rest(a))
            for _ in range(2)]
    one = k.raw.Unstage(**a)
    with k.after(*one):
        two = k.raw.Unstage(**a)
    with k.after(*puts, *two):
        return one, two, k.raw.StageSize(**a)


@graph("Stage", "too many bytes", fails=True)
def stage_bytes(k):
    a = area(k, memory_limit=100)
    with k.after(k.raw.Stage(values=[k.x(X(99), "float32"), k.x(s("a"))],
                             **rest(a))):
        return k.raw.StageSize(**a)


@graph("MutexV2 MutexLock ConsumeMutexLock")
def mutex(k):
    m, h, one = k.raw.MutexV2(shared_name=k.name()), k.var(f32(0)), k.x(f32(1))
    done = []
    for _ in range(3):
        lock = k.raw.MutexLock(mutex=m)
        with k.after(lock):
            old = k.read(h, "float32")
        with k.after(old):
            new = k.raw.AssignVariableOp(resource=h, value=old + one)
        with k.after(new):
            done.append(k.raw.ConsumeMutexLock(mutex_lock=lock))
    with k.after(*done):
        return k.read(h, "float32")


@graph("Stack StackPush StackPop StackClose", "old form")
def stack(k):
    h = k.raw.Stack(elem_type="float32", stack_name=k.name())
    with k.after(k.raw.StackPush(handle=h, elem=k.x(f32(1, 2)))):
        two = k.raw.StackPush(handle=h, elem=k.x(f32(3)))
    with k.after(two):
        a = k.raw.StackPop(handle=h, elem_type="float32")
    with k.after(a):
        b = k.raw.StackPop(handle=h, elem_type="float32")
    with k.after(b):
        close = k.raw.StackClose(handle=h)
    with k.after(close):
        return a, b, k.tf.identity(a)


@graph("FakeQueue")
def fake_queue(k):
    q = k.raw.FIFOQueueV2(component_types=["float32"], shared_name=k.name())
    old = k.raw.FakeQueue(resource=q)
    with k.after(k.raw.QueueEnqueue(handle=old, components=[k.x(f32(1, 2))])):
        return k.raw.QueueDequeueV2(handle=q, component_types=["float32"])


def array(k, n=2, **kw):
    t = k.raw.TensorArrayV3(size=k.x(n0(n, "int32")), dtype="float32",
                            tensor_array_name="a", **kw)
    return t.handle, t.flow


def write(k, h, i, value, flow):
    return k.raw.TensorArrayWriteV3(handle=h, index=k.x(n0(i, "int32")),
                                    value=k.x(value), flow_in=flow)


def read(k, h, i, flow):
    return k.raw.TensorArrayReadV3(handle=h, index=k.x(n0(i, "int32")),
                                   flow_in=flow, dtype="float32")


@graph("TensorArrayGradWithShape")
def grad_with_shape(k):
    h, flow = array(k)
    flow = write(k, h, 0, f32(1, 2), flow)
    g = k.raw.TensorArrayGradWithShape(
        handle=h, flow_in=flow, shape_to_prepend=k.x(i32([3])), source="g")
    flow = write(k, g.grad_handle, 0, f32([[1, 2]] * 3), g.flow_out)
    return read(k, g.grad_handle, 0, flow)


FAIL = {
    "written twice": lambda k, h, f: write(k, h, 0, f32(1), write(
        k, h, 0, f32(1), f)),
    "past the end": lambda k, h, f: write(k, h, 2, f32(1), f),
    "below 0": lambda k, h, f: write(k, h, -1, f32(1), f),
    "wrong type": lambda k, h, f: write(k, h, 0, i32(1), f),
}
for why, what in FAIL.items():
    @graph("TensorArrayWriteV3", why, fails=True)
    def write_fails(k, what=what):
        return what(k, *array(k))

FAIL = {
    "not written": lambda k, h, f: read(k, h, 0, f),
    "past the end": lambda k, h, f: read(k, h, 2, f),
}
for why, what in FAIL.items():
    @graph("TensorArrayReadV3", why, fails=True)
    def read_fails(k, what=what):
        return what(k, *array(k))


@graph("TensorArrayWriteV3", "wrong shape", fails=True)
def write_shape(k):
    h, flow = array(k, element_shape=[2])
    return write(k, h, 0, f32(1, 2, 3), flow)


@graph("TensorArrayReadV3", "twice", fails=True)
def read_twice(k):
    h, flow = array(k)
    a = read(k, h, 0, write(k, h, 0, f32(1), flow))
    with k.after(a):
        return read(k, h, 0, flow)


@graph("TensorArrayGatherV3", "other shapes", fails=True)
def gather_shapes(k):
    h, flow = array(k)
    flow = write(k, h, 1, f32(1), write(k, h, 0, f32(1, 2), flow))
    return k.raw.TensorArrayGatherV3(handle=h, indices=k.x(i32([0, 1])),
                                     flow_in=flow, dtype="float32")
