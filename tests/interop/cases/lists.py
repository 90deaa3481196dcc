"""Tensor lists, optionals, and what is done with them as variants."""
import inspect

from cases import X, f32, graph, i32, i64, n0, s

TYPES = ["float32", "int64", "string", "bool"]
ANY = n0(-1, "int32")


def num(k, value):
    return k.x(n0(value, "int32"))


def shape(k, *dims):
    """A partial shape; without dimensions the unknown one."""
    return k.x(i32(list(dims)) if dims else ANY)


def empty(k, dtype="float32", dims=(), most=-1):
    return k.raw.EmptyTensorList(element_shape=shape(k, *dims),
                                 max_num_elements=num(k, most),
                                 element_dtype=dtype)


def reserve(k, n, dtype="float32", dims=()):
    return k.raw.TensorListReserve(element_shape=shape(k, *dims),
                                   num_elements=num(k, n),
                                   element_dtype=dtype)


def push(k, lst, *items, dtype=None):
    for i, item in enumerate(items):
        lst = k.raw.TensorListPushBack(input_handle=lst,
                                       tensor=k.x(item, dtype, i))
    return lst


def two(k, dtype="float32"):
    return push(k, empty(k, dtype), X(2), X(2, seed=1), dtype=dtype)


def stack(k, lst, dtype="float32", dims=(), n=-1):
    return k.raw.TensorListStack(
        input_handle=lst, element_shape=shape(k, *dims), element_dtype=dtype,
        num_elements=n)


def length(k, lst):
    return k.raw.TensorListLength(input_handle=lst)


def get(k, lst, i, dtype="float32", dims=()):
    return k.raw.TensorListGetItem(input_handle=lst, index=num(k, i),
                                   element_shape=shape(k, *dims),
                                   element_dtype=dtype)


def put(k, lst, i, item, **kw):
    return k.raw.TensorListSetItem(input_handle=lst, index=num(k, i),
                                   item=k.x(item), **kw)


def gather(k, lst, indices, dims=(), dtype="float32"):
    return k.raw.TensorListGather(
        input_handle=lst, indices=k.x(i32(list(indices))),
        element_shape=shape(k, *dims), element_dtype=dtype)


def concat(k, lst, dims=(), lengths=(), dtype="float32"):
    return list(k.raw.TensorListConcatV2(
        input_handle=lst, element_shape=shape(k, *dims),
        leading_dims=k.x(i64(list(lengths))), element_dtype=dtype))




# --- Values of all types ----------------------------------------------------


@graph("EmptyTensorList TensorListPushBack TensorListPopBack TensorListStack "
       "TensorListLength", types=TYPES)
def basic(k, dtype):
    lst = two(k, dtype)
    popped = k.raw.TensorListPopBack(input_handle=lst, element_dtype=dtype,
                                     element_shape=shape(k))
    return stack(k, lst, dtype), popped.tensor, length(
        k, popped.output_handle), length(k, lst)


@graph("TensorListPushBack", "a list that two ops push to", types=TYPES)
def shared(k, dtype):
    lst = two(k, dtype)
    a, b = push(k, lst, X(2, seed=2), dtype=dtype), push(
        k, lst, X(2, seed=3), dtype=dtype)
    return [stack(k, x, dtype) for x in (a, b, lst)]


@graph("TensorListReserve TensorListSetItem TensorListGetItem", types=TYPES)
def places(k, dtype):
    lst = k.raw.TensorListSetItem(
        input_handle=reserve(k, 3, dtype, (2,)), index=num(k, 1),
        item=k.x(X(2), dtype))
    return get(k, lst, 1, dtype), get(k, lst, 0, dtype), stack(
        k, lst, dtype), length(k, lst)


@graph("TensorListFromTensor TensorListGather TensorListScatter "
       "TensorListScatterV2 TensorListScatterIntoExistingList", types=TYPES)
def rows(k, dtype):
    t, kinds = k.x(X(3, 2), dtype), {"tensor": k.x(X(2, 2), dtype),
                                     "indices": k.x(i32([2, 0])),
                                     "element_shape": shape(k, 2)}
    lst = k.raw.TensorListFromTensor(tensor=t, element_shape=shape(k))
    one = k.raw.TensorListScatter(**kinds)
    two_ = k.raw.TensorListScatterV2(num_elements=num(k, 5), **kinds)
    into = k.raw.TensorListScatterIntoExistingList(
        input_handle=lst, tensor=k.x(X(2, 2, seed=5), dtype),
        indices=k.x(i32([1, 2])))
    return gather(k, lst, [2, 0, 2], dtype=dtype), stack(k, one, dtype), \
        stack(k, two_, dtype), stack(k, into, dtype), stack(k, lst, dtype)


@graph("TensorListSplit TensorListConcat TensorListConcatV2", types=TYPES)
def pieces(k, dtype):
    lst = k.raw.TensorListSplit(tensor=k.x(X(6, 2), dtype),
                                element_shape=shape(k, -1, 2),
                                lengths=k.x(i64([1, 0, 5])))
    return concat(k, lst, dtype=dtype), list(k.raw.TensorListConcat(
        input_handle=lst, element_dtype=dtype)), get(k, lst, 2, dtype)


@graph("TensorListResize TensorListConcatLists TensorListElementShape "
       "TensorListPushBackBatch")
def whole(k):
    lst = two(k)
    longer = k.raw.TensorListResize(input_handle=lst, size=num(k, 3))
    shorter = k.raw.TensorListResize(input_handle=lst, size=num(k, 1))
    both = k.raw.TensorListConcatLists(input_a=lst, input_b=shorter,
                                       element_dtype="float32")
    batch = k.raw.TensorListPushBackBatch(
        input_handles=k.raw.Pack(values=[lst, empty(k)]),
        tensor=k.x(X(2, 2), "float32"))
    pair = k.raw.Unpack(value=batch, num=2)
    return stack(k, longer), stack(k, shorter), stack(k, both), \
        [stack(k, x) for x in pair], \
        k.raw.TensorListElementShape(input_handle=empty(k, dims=(-1, 3)),
                                     shape_type="int64"), \
        k.raw.TensorListElementShape(input_handle=lst, shape_type="int32")


@graph("TensorListGetItem TensorListStack TensorListConcatV2 "
       "TensorListGather TensorListPopBack", "elements that are not set")
def unset(k):
    lst = put(k, reserve(k, 2), 1, f32(1, 2))
    known = reserve(k, 2, dims=(-1, 2))
    return get(k, lst, 0), stack(k, lst), concat(k, lst), gather(
        k, lst, [0, 1]), concat(k, known, lengths=[1, 2]), get(
            k, known, 0, dims=(3, -1)), k.raw.TensorListPopBack(
                input_handle=known, element_dtype="float32",
                element_shape=shape(k, 1, -1)).tensor


@graph("TensorListSetItem", "past the end")
def grows(k):
    name = "resize_if_index_out_of_bounds"
    if name not in inspect.signature(k.raw.TensorListSetItem).parameters:
        return stack(k, put(k, reserve(k, 4), 3, f32(1, 2)))  # 2.12
    return stack(k, put(k, reserve(k, 1), 3, f32(1, 2), **{name: True}))


@graph("TensorListStack TensorListGather TensorListConcatV2", "no elements")
def nothing(k):
    lst = empty(k, dims=(0, 3))
    return stack(k, lst), gather(k, lst, []), concat(
        k, empty(k, dims=(-1, 2)))


# --- Errors -----------------------------------------------------------------

FAIL = {
    ("TensorListPopBack", "an empty one"): lambda k: k.raw.TensorListPopBack(
        input_handle=empty(k), element_dtype="float32",
        element_shape=shape(k)).tensor,
    ("TensorListPushBack", "a full one"):
        lambda k: length(k, push(k, empty(k, most=1), f32(1), f32(2))),
    ("TensorListPushBack", "wrong shape"):
        lambda k: length(k, push(k, empty(k, dims=(2,)), f32(1, 2, 3))),
    ("TensorListGetItem", "out of range"): lambda k: get(k, two(k), 2),
    ("TensorListGetItem", "below 0"): lambda k: get(k, two(k), -1),
    ("TensorListGetItem", "no shape"): lambda k: get(k, reserve(k, 2), 0),
    ("TensorListGetItem", "shapes contradict"):
        lambda k: get(k, reserve(k, 1, dims=(2,)), 0, dims=(3,)),
    ("TensorListGetItem", "ranks contradict"):
        lambda k: get(k, reserve(k, 1, dims=(2,)), 0, dims=(2, 3)),
    ("TensorListSetItem", "out of range"):
        lambda k: length(k, put(k, reserve(k, 2), 2, f32(1))),
    ("TensorListSetItem", "wrong shape"):
        lambda k: length(k, put(k, reserve(k, 2, dims=(2,)), 0, f32(1))),
    ("TensorListStack", "not so many"): lambda k: stack(k, two(k), n=3),
    ("TensorListStack", "empty"): lambda k: stack(k, empty(k)),
    ("TensorListStack", "none set"): lambda k: stack(k, reserve(k, 2)),
    ("TensorListStack", "shapes differ"):
        lambda k: stack(k, push(k, two(k), f32(1))),
    ("TensorListGather", "out of range"):
        lambda k: gather(k, empty(k, dims=(2,)), [4]),
    ("TensorListGather", "none set"): lambda k: gather(k, reserve(k, 1), [0]),
    ("TensorListConcatV2", "scalars"):
        lambda k: concat(k, push(k, empty(k), n0(1, "float32"))),
    ("TensorListConcatV2", "empty"): lambda k: concat(k, empty(k)),
    ("TensorListConcatV2", "too few lengths"):
        lambda k: concat(k, reserve(k, 2, dims=(-1, 2)), lengths=[1]),
    ("TensorListConcatV2", "rows differ"): lambda k: concat(
        k, push(k, empty(k), f32([[1, 2]]), f32([[1]]))),
    ("TensorListFromTensor", "a scalar"):
        lambda k: length(k, k.raw.TensorListFromTensor(
            tensor=k.x(n0(1, "float32")), element_shape=shape(k))),
    ("TensorListFromTensor", "wrong shape"):
        lambda k: length(k, k.raw.TensorListFromTensor(
            tensor=k.x(f32([[1, 2]])), element_shape=shape(k, 3))),
    ("TensorListScatterV2", "below 0"):
        lambda k: length(k, k.raw.TensorListScatterV2(
            tensor=k.x(f32([[1, 2]])), indices=k.x(i32([-1])),
            element_shape=shape(k), num_elements=num(k, -1))),
    ("TensorListScatterV2", "past the end"):
        lambda k: length(k, k.raw.TensorListScatterV2(
            tensor=k.x(f32([[1, 2]])), indices=k.x(i32([2])),
            element_shape=shape(k), num_elements=num(k, 2))),
    ("TensorListSplit", "lengths of more"):
        lambda k: length(k, k.raw.TensorListSplit(
            tensor=k.x(f32(1, 2)), element_shape=shape(k),
            lengths=k.x(i64([1, 3])))),
    ("TensorListSplit", "lengths of less"):
        lambda k: length(k, k.raw.TensorListSplit(
            tensor=k.x(f32(1, 2)), element_shape=shape(k),
            lengths=k.x(i64([1])))),
    ("TensorListReserve", "below 0"): lambda k: length(k, reserve(k, -1)),
    ("TensorListResize", "below 0"):
        lambda k: length(k, k.raw.TensorListResize(input_handle=two(k),
                                                   size=num(k, -1))),
    ("TensorListConcatLists", "other shapes"):
        lambda k: length(k, k.raw.TensorListConcatLists(
            input_a=empty(k, dims=(2,)), input_b=empty(k, dims=(3,)),
            element_dtype="float32")),
    ("TensorListLength", "two lists"): lambda k: length(
        k, k.raw.Pack(values=[two(k), two(k)])),
}

for (name, why), what in FAIL.items():
    graph(name, why, fails=True)(what)


# --- As variants ------------------------------------------------------------


@graph("AddN ZerosLike", "lists")
def sums(k):
    unset_ = put(k, reserve(k, 2), 1, f32(5, 6))
    return stack(k, k.raw.AddN(inputs=[two(k), two(k), unset_])), \
        stack(k, k.raw.ZerosLike(x=two(k)))


@graph("AddN", "lists of other lengths", fails=True)
def sums_differ(k):
    return stack(k, k.raw.AddN(inputs=[two(k), empty(k)]))


@graph("OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone")
def optional(k):
    some = k.raw.OptionalFromValue(components=[k.x(f32(1, 2)), k.x(s("a"))])
    return k.raw.OptionalHasValue(optional=some), k.raw.OptionalHasValue(
        optional=k.raw.OptionalNone()), k.raw.OptionalGetValue(
            optional=some, output_types=["float32", "string"],
            output_shapes=[None, [1]])


@graph("OptionalGetValue", "nothing", fails=True)
def optional_nothing(k):
    return k.raw.OptionalGetValue(optional=k.raw.OptionalNone(),
                                  output_types=["float32"],
                                  output_shapes=[None])


@graph("OptionalGetValue", "wrong type", fails=True)
def optional_type(k):
    return k.raw.OptionalGetValue(
        optional=k.raw.OptionalFromValue(components=[k.x(f32(1))]),
        output_types=["int32"], output_shapes=[None])
