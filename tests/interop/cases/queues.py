"""Queues, accumulators, barriers, stacks, tensor arrays, tables."""
from cases import V, X, each, f32, graph, i32, i64, n0, s, s0

# --- Queues -----------------------------------------------------------------

KINDS = {
    "FIFOQueueV2": {},
    "RandomShuffleQueueV2": {"min_after_dequeue": 0, "seed": 1, "seed2": 2},
    "PaddingFIFOQueueV2": {},
}


def queue(k, op, types, shapes=(), capacity=10, **kw):
    old = not op.endswith("V2")
    args = {**KINDS.get(op if not old else op + "V2", {}), **kw}
    return getattr(k.raw, op)(component_types=list(types),
                              shapes=list(shapes), capacity=capacity,
                              shared_name=k.name(), **args)


for op in KINDS:
    @graph(op + " QueueEnqueueV2 QueueDequeueV2", "one by one",
           types=["float32", "int64", "string", "bool", "bfloat16"])
    def one_by_one(k, dtype, op=op):
        q = queue(k, op, [dtype, "int32"], [[2], []])
        put = k.raw.QueueEnqueueV2(handle=q, components=[
            k.x(X(2), dtype), k.x(n0(7, "int32"))])
        with k.after(put):
            return k.raw.QueueDequeueV2(handle=q,
                                        component_types=[dtype, "int32"])

    @graph(op + " QueueEnqueueManyV2 QueueDequeueManyV2", "many",
           types=["float32", "string"])
    def many(k, dtype, op=op):
        q = queue(k, op, [dtype], [[2]])
        put = k.raw.QueueEnqueueManyV2(handle=q, components=[
            k.x(X(5, 2), dtype)])
        with k.after(put):
            got = k.raw.QueueDequeueManyV2(handle=q, n=k.x(n0(3, "int32")),
                                           component_types=[dtype])
        with k.after(*got):
            return got, k.raw.QueueSizeV2(handle=q)

    @graph(op + " QueueDequeueUpToV2 QueueCloseV2", "up to")
    def up_to(k, op=op):
        q = queue(k, op, ["float32"], [[]])
        put = k.raw.QueueEnqueueManyV2(handle=q, components=[
            k.x(X(3), "float32")])
        with k.after(put):
            close = k.raw.QueueCloseV2(handle=q)
        with k.after(close):
            got = k.raw.QueueDequeueUpToV2(
                handle=q, n=k.x(n0(5, "int32")), component_types=["float32"])
        with k.after(*got):
            return got, k.raw.QueueIsClosedV2(handle=q)

    @graph(op + " QueueCloseV2", "dequeue from a closed one", fails=True)
    def closed(k, op=op):
        q = queue(k, op, ["float32"], [[]])
        with k.after(k.raw.QueueCloseV2(handle=q)):
            return k.raw.QueueDequeueV2(handle=q,
                                        component_types=["float32"])

    @graph(op + " QueueEnqueueV2", "enqueue to a closed one", fails=True)
    def shut(k, op=op):
        q = queue(k, op, ["float32"], [[]])
        with k.after(k.raw.QueueCloseV2(handle=q)):
            put = k.raw.QueueEnqueueV2(handle=q,
                                       components=[k.x(n0(1, "float32"))])
        with k.after(put):
            return k.raw.QueueSizeV2(handle=q)

    @graph(op + " QueueEnqueueV2", "wrong shape", fails=True)
    def shape(k, op=op):
        q = queue(k, op, ["float32"], [[2]])
        with k.after(k.raw.QueueEnqueueV2(handle=q,
                                          components=[k.x(f32(1, 2, 3))])):
            return k.raw.QueueSizeV2(handle=q)

    @graph(op + " QueueDequeueManyV2", "too few for ever", fails=True)
    def too_few(k, op=op):
        q = queue(k, op, ["float32"], [[]])
        put = k.raw.QueueEnqueueV2(handle=q,
                                   components=[k.x(n0(1, "float32"))])
        with k.after(put):
            close = k.raw.QueueCloseV2(handle=q)
        with k.after(close):
            return k.raw.QueueDequeueManyV2(
                handle=q, n=k.x(n0(2, "int32")), component_types=["float32"])


@graph("QueueSizeV2 QueueIsClosedV2")
def size(k):
    q = queue(k, "FIFOQueueV2", ["float32"], [[]])
    put = k.raw.QueueEnqueueManyV2(handle=q, components=[k.x(f32(1, 2))])
    with k.after(put):
        a, b = k.raw.QueueSizeV2(handle=q), k.raw.QueueIsClosedV2(handle=q)
    with k.after(a, b):
        close = k.raw.QueueCloseV2(handle=q, cancel_pending_enqueues=True)
    with k.after(close):
        return a, b, k.raw.QueueSizeV2(handle=q), \
            k.raw.QueueIsClosedV2(handle=q)


@graph("FIFOQueueV2 QueueEnqueueV2", "a full one waits for a dequeue")
def full(k):
    q = queue(k, "FIFOQueueV2", ["float32"], [[]], capacity=1)
    first = k.raw.QueueEnqueueV2(handle=q, components=[k.x(n0(1, "float32"))])
    with k.after(first):
        second = k.raw.QueueEnqueueV2(handle=q,
                                      components=[k.x(n0(2, "float32"))])
        got = k.raw.QueueDequeueV2(handle=q, component_types=["float32"])
    with k.after(second):
        again = k.raw.QueueDequeueV2(handle=q, component_types=["float32"])
    return got, again


@graph("FIFOQueueV2", "meets another of its name", fails=True)
def mismatch(k):
    name = k.name()
    q = k.raw.FIFOQueueV2(component_types=["float32"], shared_name=name)
    with k.after(k.raw.QueueSizeV2(handle=q)):
        other = k.raw.FIFOQueueV2(component_types=["int32"],
                                  shared_name=name)
        return k.raw.QueueSizeV2(handle=other)


@graph("PaddingFIFOQueueV2", "pads", types=["float32", "int64", "string"])
def pads(k, dtype):
    q = queue(k, "PaddingFIFOQueueV2", [dtype], [[None]])
    last = k.raw.NoOp()
    for n in (1, 3, 2):
        with k.after(last):
            last = k.raw.QueueEnqueueV2(handle=q,
                                        components=[k.x(X(n), dtype)])
    with k.after(last):
        return k.raw.QueueDequeueManyV2(handle=q, n=k.x(n0(3, "int32")),
                                        component_types=[dtype])


@graph("PriorityQueueV2")
def priority(k):
    q = k.raw.PriorityQueueV2(component_types=["string"], shapes=[[]],
                              capacity=9, shared_name=k.name())
    put = k.raw.QueueEnqueueManyV2(handle=q, components=[
        k.x(i64([3, 1, 2])), k.x(s("c", "a", "b"))])
    with k.after(put):
        return k.raw.QueueDequeueManyV2(handle=q, n=k.x(n0(3, "int32")),
                                        component_types=["int64", "string"])


@graph("FIFOQueue QueueEnqueue QueueDequeue QueueSize QueueClose "
       "QueueEnqueueMany QueueDequeueMany QueueDequeueUpTo QueueIsClosed",
       "old form")
def old(k):
    q = k.raw.FIFOQueue(component_types=["float32"], shapes=[[]],
                        capacity=9, shared_name=k.name())
    put = k.raw.QueueEnqueue(handle=q, components=[k.x(n0(1, "float32"))])
    with k.after(put):
        more = k.raw.QueueEnqueueMany(handle=q,
                                      components=[k.x(f32(2, 3, 4))])
    with k.after(more):
        one = k.raw.QueueDequeue(handle=q, component_types=["float32"])
    with k.after(*one):
        two = k.raw.QueueDequeueMany(handle=q, n=k.x(n0(2, "int32")),
                                     component_types=["float32"])
    with k.after(*two):
        close = k.raw.QueueClose(handle=q)
    with k.after(close):
        rest = k.raw.QueueDequeueUpTo(handle=q, n=k.x(n0(2, "int32")),
                                      component_types=["float32"])
    with k.after(*rest):
        return one, two, rest, k.raw.QueueSize(handle=q), \
            k.raw.QueueIsClosed(handle=q)


for op in ("RandomShuffleQueue", "PaddingFIFOQueue"):
    @graph(op, "old form")
    def old_kind(k, op=op):
        q = queue(k, op, ["float32"], [[]])
        put = k.raw.QueueEnqueue(handle=q,
                                 components=[k.x(n0(1, "float32"))])
        with k.after(put):
            return k.raw.QueueDequeue(handle=q, component_types=["float32"])


@graph("PriorityQueue", "old form")
def old_priority(k):
    q = k.raw.PriorityQueue(component_types=["string"], shapes=[[]],
                            shared_name=k.name())
    put = k.raw.QueueEnqueueMany(handle=q, components=[
        k.x(i64([3, 1])), k.x(s("c", "a"))])
    with k.after(put):
        return k.raw.QueueDequeue(handle=q,
                                  component_types=["int64", "string"])


# --- Accumulators -----------------------------------------------------------

NUMBERS = ["float32", "float64", "float16"]
DENSE = {
    "": ("ConditionalAccumulator", "AccumulatorApplyGradient",
         "AccumulatorTakeGradient", "AccumulatorNumAccumulated",
         "AccumulatorSetGlobalStep"),
    "resource": ("ResourceConditionalAccumulator",
                 "ResourceAccumulatorApplyGradient",
                 "ResourceAccumulatorTakeGradient",
                 "ResourceAccumulatorNumAccumulated",
                 "ResourceAccumulatorSetGlobalStep"),
}


def step(k, value):
    return k.x(n0(value, "int64"))


for _, (make, apply_, take, number, set_step) in DENSE.items():
    for reduction in ("MEAN", "SUM"):
        @graph(" ".join((make, apply_, take, number)), reduction,
               types=NUMBERS)
        def average(k, dtype, make=make, apply_=apply_, take=take,
                    number=number, reduction=reduction):
            a = getattr(k.raw, make)(dtype=dtype, shape=[2, 3],
                                     shared_name=k.name(),
                                     reduction_type=reduction)
            last = k.raw.NoOp()
            for i in range(3):
                with k.after(last):
                    last = getattr(k.raw, apply_)(
                        handle=a, local_step=step(k, 0),
                        gradient=k.x(X(2, 3, seed=i), dtype))
            with k.after(last):
                count = getattr(k.raw, number)(handle=a)
            with k.after(count):
                got = getattr(k.raw, take)(
                    handle=a, num_required=k.x(n0(2, "int32")), dtype=dtype)
            with k.after(got):
                return count, got, getattr(k.raw, number)(handle=a)

    @graph(" ".join((apply_, set_step)), "stale gradients are dropped")
    def stale(k, make=make, apply_=apply_, number=number, set_step=set_step):
        a = getattr(k.raw, make)(dtype="float32", shape=[2],
                                 shared_name=k.name())
        with k.after(getattr(k.raw, set_step)(
                handle=a, new_global_step=step(k, 5))):
            old = getattr(k.raw, apply_)(handle=a, local_step=step(k, 4),
                                         gradient=k.x(f32(1, 2)))
        with k.after(old):
            count = getattr(k.raw, number)(handle=a)
        with k.after(count):
            new = getattr(k.raw, apply_)(handle=a, local_step=step(k, 5),
                                         gradient=k.x(f32(1, 2)))
        with k.after(new):
            return count, getattr(k.raw, number)(handle=a)

    @graph(take, "counts steps")
    def steps(k, make=make, apply_=apply_, take=take, number=number):
        a = getattr(k.raw, make)(dtype="float32", shape=[2],
                                 shared_name=k.name())
        with k.after(getattr(k.raw, apply_)(
                handle=a, local_step=step(k, 0), gradient=k.x(f32(1, 2)))):
            got = getattr(k.raw, take)(
                handle=a, num_required=k.x(n0(1, "int32")), dtype="float32")
        with k.after(got):
            late = getattr(k.raw, apply_)(
                handle=a, local_step=step(k, 0), gradient=k.x(f32(3, 4)))
        with k.after(late):
            return got, getattr(k.raw, number)(handle=a)

    @graph(apply_, "wrong shape", fails=True)
    def wrong(k, make=make, apply_=apply_, number=number):
        a = getattr(k.raw, make)(dtype="float32", shape=[2],
                                 shared_name=k.name())
        with k.after(getattr(k.raw, apply_)(
                handle=a, local_step=step(k, 0),
                gradient=k.x(f32(1, 2, 3)))):
            return getattr(k.raw, number)(handle=a)


def sparse(k, dtype, a, indices, seed, shape=(), at=0):
    return k.raw.SparseAccumulatorApplyGradient(
        handle=a, local_step=step(k, at), gradient_indices=k.x(i64(indices)),
        gradient_values=k.x(X(len(indices), 3, seed=seed), dtype),
        gradient_shape=k.x(i64(shape)), has_known_shape=bool(shape))


for reduction in ("MEAN", "SUM"):
    @graph("SparseConditionalAccumulator SparseAccumulatorApplyGradient "
           "SparseAccumulatorTakeGradient", reduction, types=NUMBERS)
    def rows(k, dtype, reduction=reduction):
        a = k.raw.SparseConditionalAccumulator(
            dtype=dtype, shape=[9, 3], shared_name=k.name(),
            reduction_type=reduction)
        last = k.raw.NoOp()
        for i, indices in enumerate(([4, 0], [4, 7, 8], [2])):
            with k.after(last):
                last = sparse(k, dtype, a, sorted(indices), i, (9, 3))
        with k.after(last):
            count = k.raw.AccumulatorNumAccumulated(handle=a)
        with k.after(count):
            return count, list(k.raw.SparseAccumulatorTakeGradient(
                handle=a, num_required=k.x(n0(3, "int32")), dtype=dtype))


@graph("SparseAccumulatorApplyGradient AccumulatorSetGlobalStep",
       "stale gradients are dropped")
def sparse_stale(k):
    a = k.raw.SparseConditionalAccumulator(dtype="float32", shape=[9, 3],
                                           shared_name=k.name())
    with k.after(k.raw.AccumulatorSetGlobalStep(
            handle=a, new_global_step=step(k, 2))):
        old = sparse(k, "float32", a, [1], 0, at=1)
    with k.after(old):
        return k.raw.AccumulatorNumAccumulated(handle=a)


# --- Barriers ---------------------------------------------------------------


@graph("Barrier BarrierInsertMany BarrierTakeMany BarrierReadySize "
       "BarrierIncompleteSize BarrierClose")
def barrier(k):
    h = k.raw.Barrier(component_types=["float32", "int32"],
                      shapes=[[], []], shared_name=k.name())
    one = k.raw.BarrierInsertMany(handle=h, keys=k.x(s("a", "b", "c")),
                                  values=k.x(f32(1, 2, 3)),
                                  component_index=0)
    with k.after(one):
        two = k.raw.BarrierInsertMany(handle=h, keys=k.x(s("b", "a")),
                                      values=k.x(i32([20, 10])),
                                      component_index=1)
    with k.after(two):
        ready = k.raw.BarrierReadySize(handle=h)
        waiting = k.raw.BarrierIncompleteSize(handle=h)
    with k.after(ready, waiting):
        got = k.raw.BarrierTakeMany(handle=h, num_elements=k.x(
            n0(2, "int32")), component_types=["float32", "int32"])
    with k.after(got.keys):
        close = k.raw.BarrierClose(handle=h, cancel_pending_enqueues=True)
    with k.after(close):
        return ready, waiting, got.keys, list(got.values), k.x(f32(0)) + 0


# --- Stacks, tensor arrays --------------------------------------------------


@graph("StackV2 StackPushV2 StackPopV2 StackCloseV2",
       types=["float32", "int64", "bool"])
def stack(k, dtype):
    h = k.raw.StackV2(max_size=k.x(n0(-1, "int32")), elem_type=dtype,
                      stack_name=k.name())
    one = k.raw.StackPushV2(handle=h, elem=k.x(X(2), dtype))
    with k.after(one):
        two = k.raw.StackPushV2(handle=h, elem=k.x(X(3, seed=1), dtype))
    with k.after(two):
        a = k.raw.StackPopV2(handle=h, elem_type=dtype)
    with k.after(a):
        c = k.raw.StackPopV2(handle=h, elem_type=dtype)
    with k.after(c):
        close = k.raw.StackCloseV2(handle=h)
    with k.after(close):
        return a, c, k.tf.identity(a)


@graph("StackPopV2", "an empty one", fails=True)
def stack_empty(k):
    h = k.raw.StackV2(max_size=k.x(n0(2, "int32")), elem_type="float32",
                      stack_name="s")
    return k.raw.StackPopV2(handle=h, elem_type="float32")


@graph("StackPushV2", "a full one", fails=True)
def stack_full(k):
    h = k.raw.StackV2(max_size=k.x(n0(0, "int32")), elem_type="float32",
                      stack_name="s")
    return k.raw.StackPushV2(handle=h, elem=k.x(f32(1)))


@graph("TensorArrayV3 TensorArrayWriteV3 TensorArrayReadV3 "
       "TensorArrayGatherV3 TensorArraySizeV3 TensorArrayCloseV3 "
       "TensorArrayConcatV3", types=["float32", "int32", "string"])
def array(k, dtype):
    t = k.raw.TensorArrayV3(size=k.x(n0(3, "int32")), dtype=dtype,
                            clear_after_read=False,
                            tensor_array_name=k.name())
    flow = t.flow
    for i in range(3):
        flow = k.raw.TensorArrayWriteV3(
            handle=t.handle, index=k.x(n0(i, "int32")),
            value=k.x(X(2, seed=i), dtype), flow_in=flow)
    one = k.raw.TensorArrayReadV3(handle=t.handle, dtype=dtype, flow_in=flow,
                                  index=k.x(n0(1, "int32")))
    some = k.raw.TensorArrayGatherV3(
        handle=t.handle, indices=k.x(i32([2, 0])), flow_in=flow, dtype=dtype)
    row = k.raw.TensorArrayConcatV3(handle=t.handle, flow_in=flow,
                                    dtype=dtype)
    size = k.raw.TensorArraySizeV3(handle=t.handle, flow_in=flow)
    with k.after(one, some, row.value, size):
        close = k.raw.TensorArrayCloseV3(handle=t.handle)
    with k.after(close):
        return one, some, list(row), size, k.tf.identity(size)


@graph("TensorArrayScatterV3 TensorArraySplitV3 TensorArrayUnpack",
       types=["float32"])
def scattered(k, dtype):
    t = k.raw.TensorArrayV3(size=k.x(n0(3, "int32")), dtype=dtype,
                            tensor_array_name=k.name())
    flow = k.raw.TensorArrayScatterV3(
        handle=t.handle, indices=k.x(i32([2, 0, 1])),
        value=k.x(X(3, 2), dtype), flow_in=t.flow)
    got = k.raw.TensorArrayGatherV3(
        handle=t.handle, indices=k.x(i32([0, 1, 2])), flow_in=flow,
        dtype=dtype)
    u = k.raw.TensorArrayV3(size=k.x(n0(2, "int32")), dtype=dtype,
                            tensor_array_name=k.name())
    flow = k.raw.TensorArraySplitV3(
        handle=u.handle, value=k.x(X(5, 2), dtype),
        lengths=k.x(i64([2, 3])), flow_in=u.flow)
    return got, k.raw.TensorArrayReadV3(
        handle=u.handle, index=k.x(n0(1, "int32")), flow_in=flow,
        dtype=dtype)


@graph("TensorArrayGradV3", types=["float32"])
def gradient(k, dtype):
    t = k.raw.TensorArrayV3(size=k.x(n0(2, "int32")), dtype=dtype,
                            clear_after_read=False,
                            tensor_array_name=k.name())
    flow = t.flow
    for i in range(2):
        flow = k.raw.TensorArrayWriteV3(
            handle=t.handle, index=k.x(n0(i, "int32")),
            value=k.x(X(2, seed=i), dtype), flow_in=flow)
    g = k.raw.TensorArrayGradV3(handle=t.handle, flow_in=flow, source="grad")
    flow = g.flow_out
    for i in (0, 0):
        flow = k.raw.TensorArrayWriteV3(
            handle=g.grad_handle, index=k.x(n0(i, "int32")),
            value=k.x(X(2, seed=7), dtype), flow_in=flow)
    return k.raw.TensorArrayReadV3(
        handle=g.grad_handle, index=k.x(n0(0, "int32")), flow_in=flow,
        dtype=dtype)


# --- Tables -----------------------------------------------------------------

PAIRS = [("string", "int64"), ("int64", "string"), ("int64", "float32"),
         ("string", "float32"), ("int64", "int64"), ("string", "string")]


def keys_of(dtype, *n):
    return s(*["k%d" % i for i in n]) if dtype == "string" else i64(list(n))


for kt, vt in PAIRS:
    @graph("HashTableV2 LookupTableImportV2 LookupTableFindV2 "
           "LookupTableSizeV2", "%s %s" % (kt, vt))
    def table(k, kt=kt, vt=vt):
        h = k.raw.HashTableV2(key_dtype=kt, value_dtype=vt,
                              shared_name=k.name())
        fill = k.raw.LookupTableImportV2(
            table_handle=h, keys=k.x(keys_of(kt, 1, 2, 3)),
            values=k.x(X(3), vt))
        with k.after(fill):
            return k.raw.LookupTableFindV2(
                table_handle=h, keys=k.x(keys_of(kt, 3, 9, 1)),
                default_value=k.x(V(0), vt)), k.raw.LookupTableSizeV2(
                    table_handle=h)

    if (kt, vt) == ("string", "string"):
        continue

    @graph("MutableHashTableV2 LookupTableInsertV2 LookupTableRemoveV2",
           "%s %s" % (kt, vt))
    def mutable(k, kt=kt, vt=vt):
        h = k.raw.MutableHashTableV2(key_dtype=kt, value_dtype=vt,
                                     shared_name=k.name())
        one = k.raw.LookupTableInsertV2(
            table_handle=h, keys=k.x(keys_of(kt, 1, 2, 3)),
            values=k.x(X(3), vt))
        with k.after(one):
            two = k.raw.LookupTableInsertV2(
                table_handle=h, keys=k.x(keys_of(kt, 2, 4)),
                values=k.x(X(2, seed=1), vt))
        with k.after(two):
            out = k.raw.LookupTableRemoveV2(
                table_handle=h, keys=k.x(keys_of(kt, 1)))
        with k.after(out):
            return k.raw.LookupTableFindV2(
                table_handle=h, keys=k.x(keys_of(kt, 1, 2, 3, 4)),
                default_value=k.x(V(0), vt)), k.raw.LookupTableSizeV2(
                    table_handle=h)


assert each and s0
