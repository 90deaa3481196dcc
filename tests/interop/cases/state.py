"""Variables: ref and resource, assignments, scatter and gather."""
from cases import FLOATS, PLAIN, V, X, f32, graph, i32, i64, n0

NUMBERS = [t for t in PLAIN if t not in ("bool", "string")]

# --- Ref variables ----------------------------------------------------------


@graph("Assign VariableV2 Variable RefIdentity", types=PLAIN)
def assign(k, dtype):
    return k.tf.identity(k.ref(X(3, 2), dtype))


@graph("Assign", types=["float32"])
def of_another_shape(k, dtype):
    v = k.ref(X(3, 2), dtype)
    return k.tf.identity(k.raw.Assign(ref=v, value=k.x(X(4), dtype),
                                      validate_shape=False))


@graph("Assign", fails=True)
def shape_must_fit(k):
    v = k.raw.VariableV2(shape=[2], dtype="float32", shared_name=k.name())
    return k.tf.identity(k.raw.Assign(ref=v, value=k.x(f32(1, 2, 3))))


@graph("Assign VariableV2", "a scalar", types=["int64"])
def scalar(k, dtype):
    return k.tf.identity(k.ref(V(7), dtype))


@graph("VariableV2 IsVariableInitialized")
def not_yet(k):
    v = k.raw.VariableV2(shape=[2], dtype="float32", shared_name=k.name())
    before = k.raw.IsVariableInitialized(ref=v)
    with k.after(before):
        a = k.raw.Assign(ref=v, value=k.x(f32(1, 2)))
    return before, k.raw.IsVariableInitialized(ref=a)


@graph("VariableV2", fails=True)
def read_before_it_has_a_value(k):
    v = k.raw.VariableV2(shape=[2], dtype="float32", name="never",
                         shared_name="never_" + k.name())
    return k.tf.identity(v)


@graph("Variable")
def old_one(k):
    v = k.raw.Variable(shape=[2], dtype="float32", shared_name=k.name())
    return k.tf.identity(k.raw.Assign(ref=v, value=k.x(f32(1, 2))))


for op in ("AssignAdd", "AssignSub"):
    @graph(op, types="kernel")
    def add(k, dtype, op=op):
        v = k.ref(X(3, 2), dtype)
        return k.tf.identity(getattr(k.raw, op)(
            ref=v, value=k.x(X(3, 2, seed=1), dtype)))

    @graph(op, fails=True)
    def shapes_differ(k, op=op):
        return k.tf.identity(getattr(k.raw, op)(
            ref=k.ref(f32(1, 2)), value=k.x(f32(1, 2, 3))))

    @graph(op, fails=True)
    def no_value(k, op=op):
        v = k.raw.VariableV2(shape=[2], dtype="float32", name="never",
                             shared_name="no_" + k.name())
        return k.tf.identity(getattr(k.raw, op)(ref=v, value=k.x(f32(1, 2))))


@graph("CountUpTo", types=["int32", "int64"], runs=1)
def count(k, dtype):
    v = k.ref(V(3), dtype)
    c = k.raw.CountUpTo(ref=v, limit=5)
    with k.after(c):
        return c, k.tf.identity(v)


@graph("CountUpTo", fails=True)
def enough(k):
    return k.raw.CountUpTo(ref=k.ref(n0(5, "int32")), limit=5)


@graph("TemporaryVariable DestroyTemporaryVariable", types=["float32"])
def temporary(k, dtype):
    name = k.name()
    v = k.raw.TemporaryVariable(shape=[2], dtype=dtype, var_name=name)
    v = k.raw.Assign(ref=v, value=k.x(X(2), dtype))
    v = k.raw.AssignAdd(ref=v, value=k.x(X(2, seed=1), dtype))
    return k.raw.DestroyTemporaryVariable(ref=v, var_name=name)


# --- Scatter on ref variables -----------------------------------------------

SCATTER = ("ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv",
           "ScatterMin", "ScatterMax", "ScatterUpdate")


def scatter(op, shape, indices, updates, lo=1):
    @graph(op, "%s %s %s" % (list(shape), indices.tolist(), list(updates)),
           types="kernel")
    def _(k, dtype):
        v = k.ref(X(*shape, lo=lo), dtype)
        return k.tf.identity(getattr(k.raw, op)(
            ref=v, indices=k.x(indices),
            updates=k.x(X(*updates, lo=lo, seed=1), dtype)))


for op in SCATTER:
    scatter(op, (5, 3), i32([4, 0, 4]), (3, 3))
    scatter(op, (5, 3), i64([[1, 2], [1, 3]]), (2, 2, 3))
    scatter(op, (5,), n0(2, "int32"), ())
    scatter(op, (5, 2), i32([1, 1]), ())  # one scalar for all
    scatter(op, (5, 2), i32([]), (0, 2))

    for what, indices, updates in (
            ("out_of_range", [0, 5], (2, 3)), ("negative", [-1], (1, 3)),
            ("wrong_shape", [0, 1], (2, 2))):
        @graph(op, what, fails=True)
        def bad(k, op=op, indices=indices, updates=updates):
            return k.tf.identity(getattr(k.raw, op)(
                ref=k.ref(X(5, 3), "float32"), indices=k.x(i32(indices)),
                updates=k.x(X(*updates), "float32")))

for op in ("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate",
           "ScatterNdMin", "ScatterNdMax"):
    @graph(op, types="kernel")
    def rows(k, dtype, op=op):
        return k.tf.identity(getattr(k.raw, op)(
            ref=k.ref(X(5, 3), dtype), indices=k.x(i32([[4], [0]])),
            updates=k.x(X(2, 3, seed=1), dtype)))

    @graph(op, types="kernel")
    def points(k, dtype, op=op):
        return k.tf.identity(getattr(k.raw, op)(
            ref=k.ref(X(5, 3), dtype), indices=k.x(i64([[4, 1], [0, 2]])),
            updates=k.x(X(2, seed=1), dtype)))

    @graph(op, fails=True)
    def outside(k, op=op):
        return k.tf.identity(getattr(k.raw, op)(
            ref=k.ref(X(5, 3), "float32"), indices=k.x(i32([[5]])),
            updates=k.x(X(1, 3), "float32")))


@graph("StridedSliceAssign", types=FLOATS + ["int32"])
def slice_of_a_ref(k, dtype):
    return k.tf.identity(k.raw.StridedSliceAssign(
        ref=k.ref(X(4, 5), dtype), begin=k.x(i32([1, 0])),
        end=k.x(i32([3, 5])), strides=k.x(i32([1, 2])),
        value=k.x(X(2, 3, seed=1), dtype)))


# --- Resource variables -----------------------------------------------------


@graph("VarHandleOp AssignVariableOp ReadVariableOp", types=PLAIN)
def assigned(k, dtype):
    return k.read(k.var(X(3, 2), dtype), dtype)


@graph("VarIsInitializedOp AssignVariableOp")
def initialized(k):
    h = k.raw.VarHandleOp(dtype="float32", shape=[2], shared_name=k.name())
    before = k.raw.VarIsInitializedOp(resource=h)
    with k.after(before):
        a = k.raw.AssignVariableOp(resource=h, value=k.x(f32(1, 2)))
    with k.after(a):
        return before, k.raw.VarIsInitializedOp(resource=h)


@graph("ReadVariableOp", fails=True)
def of_nothing(k):
    h = k.raw.VarHandleOp(dtype="float32", shape=[2],
                          shared_name="nothing_" + k.name())
    return k.read(h, "float32")


@graph("AssignVariableOp", types=["float32"])
def another_shape(k, dtype):
    h = k.var(X(3, 2), dtype)
    with k.after(k.raw.AssignVariableOp(resource=h, value=k.x(X(4), dtype))):
        return k.read(h, dtype)


@graph("AssignVariableOp", fails=True)
def shape_that_does_not_fit(k):
    h = k.raw.VarHandleOp(dtype="float32", shape=[2], shared_name=k.name())
    with k.after(k.raw.AssignVariableOp(resource=h, value=k.x(f32(1, 2)))):
        with k.after(k.raw.AssignVariableOp(
                resource=h, value=k.x(f32(1, 2, 3)), validate_shape=True)):
            return k.read(h, "float32")


@graph("AssignVariableOp", fails=True)
def another_type(k):
    name = k.name()
    h = k.raw.VarHandleOp(dtype="float32", shape=[2], shared_name=name)
    with k.after(k.raw.AssignVariableOp(resource=h, value=k.x(f32(1, 2)))):
        i = k.raw.VarHandleOp(dtype="int32", shape=[2], shared_name=name)
    with k.after(k.raw.AssignVariableOp(resource=i, value=k.x(i32(1, 2)))):
        return k.read(i, "int32")


for op in ("AssignAddVariableOp", "AssignSubVariableOp"):
    @graph(op, types="kernel", attr="dtype")
    def plus(k, dtype, op=op):
        h = k.var(X(3, 2), dtype)
        with k.after(getattr(k.raw, op)(
                resource=h, value=k.x(X(3, 2, seed=1), dtype))):
            return k.read(h, dtype)

    @graph(op, types=["float32", "int64"])
    def plus_scalar(k, dtype, op=op):
        h = k.var(X(), dtype)
        with k.after(getattr(k.raw, op)(
                resource=h, value=k.x(X(seed=1), dtype))):
            return k.read(h, dtype)

    @graph(op, fails=True)
    def other_shape(k, op=op):
        h = k.var(f32(1, 2))
        with k.after(getattr(k.raw, op)(
                resource=h, value=k.x(f32(1, 2, 3)))):
            return k.read(h, "float32")

    @graph(op, fails=True)
    def not_there(k, op=op):
        h = k.raw.VarHandleOp(dtype="float32", shape=[2],
                              shared_name="no_" + k.name())
        with k.after(getattr(k.raw, op)(resource=h, value=k.x(f32(1, 2)))):
            return k.read(h, "float32")


@graph("ReadVariableOp", "a snapshot")
def snapshot(k):
    h = k.var(f32(1, 2))
    before = k.read(h, "float32")
    with k.after(before):
        add = k.raw.AssignAddVariableOp(resource=h, value=k.x(f32(1, 1)))
    with k.after(add):
        return before, k.read(h, "float32"), before + 0


@graph("DestroyResourceOp")
def destroyed(k):
    h = k.var(f32(1, 2))
    with k.after(k.raw.DestroyResourceOp(resource=h)):
        return k.raw.VarIsInitializedOp(resource=h)


@graph("DestroyResourceOp", fails=True)
def nothing_to_destroy(k):
    h = k.raw.VarHandleOp(dtype="float32", shape=[2],
                          shared_name="gone_" + k.name())
    return k.raw.DestroyResourceOp(resource=h, ignore_lookup_error=False)


@graph("VariableShape", types=["int32", "int64"])
def shape(k, dtype):
    return k.raw.VariableShape(input=k.var(X(3, 0, 2), "float32"),
                               out_type=dtype)


for indices in (i32([4, 0, 4]), i64([[1, 2], [0, 3]]), n0(2, "int32"),
                i32([])):
    @graph("ResourceGather", "rows %s" % indices.tolist(), types=PLAIN)
    def gather(k, dtype, indices=indices):
        return k.raw.ResourceGather(resource=k.var(X(5, 3), dtype),
                                    indices=k.x(indices), dtype=dtype)


@graph("ResourceGather", types=["float32"])
def batch(k, dtype):
    return k.raw.ResourceGather(
        resource=k.var(X(2, 4, 3), dtype), batch_dims=1,
        indices=k.x(i32([[0, 3], [2, 2]])), dtype=dtype)


@graph("ResourceGather", fails=True)
def gather_outside(k):
    return k.raw.ResourceGather(
        resource=k.var(X(5, 3), "float32"), indices=k.x(i32([0, 5])),
        dtype="float32")


@graph("ResourceGatherNd", types=["float32", "int64"])
def gather_nd(k, dtype):
    return k.raw.ResourceGatherNd(
        resource=k.var(X(5, 3), dtype), indices=k.x(i32([[4, 2], [0, 0]])),
        dtype=dtype)


for op in SCATTER:
    for indices, updates in ((i32([4, 0, 4]), (3, 3)),
                             (i64([[1, 2], [1, 3]]), (2, 2, 3)),
                             (i32([1, 1]), ()), (i32([]), (0, 3))):
        @graph("Resource" + op, "%s %s" % (indices.tolist(), list(updates)),
               types="kernel", attr="dtype")
        def rscatter(k, dtype, op=op, indices=indices, updates=updates):
            h = k.var(X(5, 3, lo=1), dtype)
            with k.after(getattr(k.raw, "Resource" + op)(
                    resource=h, indices=k.x(indices),
                    updates=k.x(X(*updates, lo=1, seed=1), dtype))):
                return k.read(h, dtype)

    for what, indices, updates in (
            ("out of range", [0, 5], (2, 3)), ("negative", [-1], (1, 3))):
        @graph("Resource" + op, what, fails=True)
        def rbad(k, op=op, indices=indices, updates=updates):
            h = k.var(X(5, 3), "float32")
            with k.after(getattr(k.raw, "Resource" + op)(
                    resource=h, indices=k.x(i32(indices)),
                    updates=k.x(X(*updates), "float32"))):
                return k.read(h, "float32")

for op in ("Add", "Sub", "Update", "Min", "Max"):
    @graph("ResourceScatterNd" + op, types="kernel")
    def rrows(k, dtype, op=op):
        h = k.var(X(5, 3), dtype)
        with k.after(getattr(k.raw, "ResourceScatterNd" + op)(
                ref=h, indices=k.x(i32([[4], [0]])),
                updates=k.x(X(2, 3, seed=1), dtype))):
            return k.read(h, dtype)


@graph("ResourceStridedSliceAssign", types=FLOATS + ["int32"])
def slice_of_a_variable(k, dtype):
    h = k.var(X(4, 5), dtype)
    with k.after(k.raw.ResourceStridedSliceAssign(
            ref=h, begin=k.x(i32([1, 0])), end=k.x(i32([3, 5])),
            strides=k.x(i32([1, 2])), value=k.x(X(2, 3, seed=1), dtype))):
        return k.read(h, dtype)


@graph("ResourceCountUpTo", types=["int32", "int64"])
def rcount(k, dtype):
    h = k.var(V(3), dtype)
    c = k.raw.ResourceCountUpTo(resource=h, limit=5, T=dtype)
    with k.after(c):
        return c, k.read(h, dtype)


assert NUMBERS
