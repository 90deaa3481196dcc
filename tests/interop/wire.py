"""TensorFlow's WorkerService spoken by hand: for tests that need no TensorFlow.

Messages are written field by field, so that a test can send what no correct
client would.  A message is bytes; `f(number, value)` writes one field: an int
as varint, a bool too, a float as fixed32, bytes or str length-delimited.
Master is a small master over one ps: the calls that the real one makes, in
the form in which it makes them.
"""
import os
import random
import struct
import threading

# Tests start processes beside open channels, by fork and exec at once.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc  # noqa: E402

FLOAT, DOUBLE, INT32, STRING, INT64, BOOL, RESOURCE = 1, 2, 3, 7, 9, 10, 20
PRODUCER = 1286  # GraphDef version that 2.12 and later accept


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def f(number, value):
    """One field."""
    if isinstance(value, (bool, int)):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + bytes(value)


def parse(data):
    """{field number: [values]}; nested messages stay bytes."""
    out, p = {}, 0

    def number():
        nonlocal p
        v = shift = 0
        while True:
            c = data[p]
            p += 1
            v |= (c & 0x7F) << shift
            shift += 7
            if c < 0x80:
                return v

    while p < len(data):
        tag = number()
        kind = tag & 7
        if kind == 0:
            value = number()
        elif kind == 2:
            n = number()
            value = data[p:p + n]
            p += n
        else:
            n = {1: 8, 5: 4}[kind]
            value = data[p:p + n]
            p += n
        out.setdefault(tag >> 3, []).append(value)
    return out


# --- GraphDef ---------------------------------------------------------------


def shape(*dims):
    """TensorShapeProto."""
    return b"".join(f(2, f(1, d)) for d in dims)


def tensor(dtype, dims, content=b""):
    """TensorProto with tensor_content."""
    return f(1, dtype) + f(2, shape(*dims)) + f(4, content)


def floats(*values, dims=None):
    return tensor(FLOAT, [len(values)] if dims is None else dims,
                  struct.pack("<%df" % len(values), *values))


class Type(int):
    """An attr of kind type."""


class Shape(tuple):
    """An attr of kind shape."""


class Tensor(bytes):
    """An attr of kind tensor."""


def attr(value):
    """AttrValue, its kind by the Python type."""
    if isinstance(value, Type):
        return f(6, int(value))
    if isinstance(value, bool):
        return f(5, value)
    if isinstance(value, int):
        return f(3, value)
    if isinstance(value, float):
        return f(4, value)
    if isinstance(value, Shape):
        return f(7, shape(*value))
    if isinstance(value, Tensor):
        return f(8, value)
    return f(2, value)


def node(name, op, inputs=(), device="", **attrs):
    """NodeDef."""
    out = f(1, name) + f(2, op)
    out += b"".join(f(3, i) for i in inputs)
    out += f(4, device)
    for key, value in attrs.items():
        out += f(5, f(1, key) + f(2, attr(value)))
    return out


def graph(*nodes, library=b"", producer=PRODUCER):
    """GraphDef."""
    return b"".join(f(1, n) for n in nodes) + (
        f(2, library) if library else b"") + f(4, f(1, producer))


# --- Calls ------------------------------------------------------------------


class Answer(Exception):
    """A call that failed: code (grpc.StatusCode), number and text."""

    def __init__(self, error):
        super().__init__("%s: %s" % (error.code(), error.details()))
        self.code = error.code()
        self.number = error.code().value[0]
        self.text = error.details() or ""
        self.metadata = {k: v for k, v in error.trailing_metadata() or ()}


def channel(address):
    """A connection of its own."""
    return grpc.insecure_channel(address, options=[
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0)])


class Peer:
    """Calls of one server by name, with messages as bytes."""

    def __init__(self, address):
        self.address = address
        self.channel = channel(address)
        self.methods = {}

    def method(self, name):
        if name not in self.methods:
            path = name if "/" in name else "/tensorflow.WorkerService/" + name
            self.methods[name] = self.channel.unary_unary(
                path, request_serializer=bytes, response_deserializer=bytes)
        return self.methods[name]

    def call(self, name, request=b"", timeout=20, **kw):
        """The answer's bytes, or Answer is raised."""
        try:
            return self.method(name)(request, timeout=timeout, **kw)
        except grpc.RpcError as e:
            raise Answer(e) from None

    def start(self, name, request=b"", timeout=None):
        """A call under way: a grpc future."""
        return self.method(name).future(request, timeout=timeout)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def outcome(future, timeout=20):
    """What a started call came to: bytes, or Answer is raised."""
    try:
        return future.result(timeout=timeout)
    except grpc.RpcError as e:
        raise Answer(e) from None


class StepError(Exception):
    """A RunGraph that failed, reported in the response's body."""

    def __init__(self, number, text):
        super().__init__("%d: %s" % (number, text))
        self.number = number
        self.text = text


class Master(Peer):
    """A master with one session on one ps."""

    def __init__(self, address, session=None, cluster=None, isolate=False,
                 task=None, incarnation=0):
        super().__init__(address)
        status = parse(self.call("GetStatus"))
        device = parse(status[1][0])
        self.device = device[1][0].decode()
        self.incarnation = struct.unpack("<Q", device[6][0])[0]
        self.session = session or "%016x" % random.getrandbits(64)
        server_def = b""
        if cluster:
            jobs = b""
            for job, tasks in cluster.items():
                entries = b"".join(f(2, f(1, i) + f(2, a))
                                   for i, a in tasks.items())
                jobs += f(1, f(1, job) + entries)
            server_def = f(1, jobs) + f(2, "ps") + f(3, 0) + f(5, "grpc")
        request = f(1, self.session) + f(2, server_def) + f(3, isolate)
        if task:
            request += f(5, task) + f(6, incarnation)
        self.call("CreateWorkerSession", request)

    def register(self, *nodes, library=b"", timeout=20, raw=None):
        """Register a graph (device filled in by caller); its handle."""
        request = (f(1, self.session) + f(2, raw or graph(
            *nodes, library=library)) + f(6, True))
        return parse(self.call("RegisterGraph", request, timeout))[1][0]

    def run_request(self, handle, step, request_id=None, send=(), recv=()):
        out = f(1, handle) + f(2, step)
        for key, value in send:
            out += f(3, f(1, key) + f(2, value))
        for key in recv:
            out += f(4, key)
        if request_id is None:
            request_id = random.getrandbits(63) | 1
        return (out + f(8, self.session) + f(9, True) + f(10, True)
                + f(11, request_id))

    @staticmethod
    def run_answer(data):
        """{key: TensorProto} of a RunGraphResponse, or StepError."""
        got = parse(data)
        if 5 in got:
            raise StepError(got[5][0], got.get(6, [b""])[0].decode())
        out = {}
        for item in got.get(1, []):
            pair = parse(item)
            out[pair[1][0].decode()] = pair.get(2, [b""])[0]
        return out

    def run(self, handle, step=None, timeout=20, **kw):
        """One step; {key: TensorProto} of what recv named."""
        step = new_step() if step is None else step
        try:
            return self.run_answer(self.call(
                "RunGraph", self.run_request(handle, step, **kw), timeout))
        finally:
            self.call("CleanupGraph", f(1, step))

    def start_run(self, handle, step, **kw):
        return self.start("RunGraph", self.run_request(handle, step, **kw))

    def key(self, name, frame="0:0", src=None, incarnation=None, dst=None):
        """A rendezvous key of a tensor that this ps sends."""
        return "%s;%016x;%s;%s;%s" % (
            src or self.device,
            self.incarnation if incarnation is None else incarnation,
            dst or self.device, name, frame)

    def recv_request(self, name, step, request_id=None, **kw):
        if request_id is None:
            request_id = random.getrandbits(63) | 1
        return (f(1, step) + f(2, self.key(name, **kw)) + f(7, request_id))

    # Nodes in the form in which the real master sends them.

    def n(self, name, op, *inputs, **attrs):
        return node(name, op, inputs, self.device, **attrs)

    def send_node(self, name, source, dtype=FLOAT, dst=None, client=False):
        attrs = {"client_terminated": True} if client else {}
        return self.n(name + "/send", "_Send", source, T=Type(dtype),
                      tensor_name=name, send_device=self.device,
                      send_device_incarnation=signed(self.incarnation),
                      recv_device=dst or self.device, **attrs)

    def recv_node(self, name, dtype=FLOAT, src=None, incarnation=None,
                  client=False):
        attrs = {"client_terminated": True} if client else {}
        return self.n(name, "_Recv", tensor_type=Type(dtype),
                      tensor_name=name, send_device=src or self.device,
                      send_device_incarnation=signed(
                          self.incarnation if incarnation is None
                          else incarnation),
                      recv_device=self.device, **attrs)


def signed(u64):
    return u64 - (1 << 64) if u64 >> 63 else u64


def new_step():
    return random.getrandbits(56)


def content(tensor_proto):
    """(dtype, raw bytes) of a TensorProto."""
    got = parse(tensor_proto)
    return got[1][0], got.get(4, [b""])[0]


def floats_of(tensor_proto):
    data = content(tensor_proto)[1]
    return list(struct.unpack("<%df" % (len(data) // 4), data))


class Worker:
    """A worker service that answers RecvTensor as a test wants.

    `answers` maps a tensor name to TensorProto bytes; a name that is not
    there is kept waiting, and `asked` is set when that happens.
    """

    def __init__(self, address, answers=None):
        from concurrent import futures
        self.answers = answers or {}
        self.asked = threading.Event()
        self.gone = threading.Event()
        self.calls = []
        self.server = grpc.server(futures.ThreadPoolExecutor(64), options=[
            ("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers([self._Handler(self)])
        self.server.add_insecure_port(address)
        self.server.start()

    class _Handler(grpc.GenericRpcHandler):
        def __init__(self, worker):
            self.worker = worker

        def service(self, details):
            method = details.method.rsplit("/", 1)[1]
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: self.worker.serve(
                    method, request, context))

    def serve(self, method, request, context):
        self.calls.append((method, request))
        if method != "RecvTensor":
            return b""
        name = parse(request)[2][0].decode().split(";")[3]
        if name not in self.answers:
            self.asked.set()
            over = threading.Event()
            if not context.add_callback(over.set):
                over.set()
            over.wait()
            self.gone.set()
            context.abort(grpc.StatusCode.CANCELLED, "gone")
        return f(1, self.answers[name])

    def stop(self):
        self.server.stop(0)
