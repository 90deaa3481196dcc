"""Broken input, by hand: every answer is TensorFlow's, and serving goes on.

Each probe sends something wrong to the ps under test and to a ps of
TensorFlow, and the code and the text of the answers must agree, names of hosts
and incarnations aside.  Where we differ on purpose, the probe says how and why.
After each probe a new session runs a healthy step on the ps under test.
"""
import re
import socket
import struct

import pytest

import cluster as cl
import wire
from wire import FLOAT, INT32, Master, Peer, Shape, Tensor, Type, f

pytestmark = pytest.mark.sanitize
OK = (0, "")


@pytest.fixture(scope="module")
def pair(tmp_path_factory, kind):
    """(ps under test, ps of TensorFlow), each in a cluster of its own."""
    with cl.Cluster(tmp_path_factory.mktemp("mine"), [kind], 1) as mine, \
            cl.Cluster(tmp_path_factory.mktemp("tf"), ["tensorflow"],
                       1) as reference:
        yield mine, reference


def healthy(address):
    """A new session on this ps works: (2, 3) + (2, 3) = (4, 6)."""
    with Master(address) as m:
        handle = m.register(
            m.n("c", "Const", dtype=Type(FLOAT),
                value=Tensor(wire.floats(2, 3))),
            m.n("s", "AddV2", "c", "c", T=Type(FLOAT)),
            m.send_node("out", "s", client=True))
        key = m.key("out")
        got = m.run(handle, recv=[key])
        assert wire.floats_of(got[key]) == [4.0, 6.0]
        m.call("DeleteWorkerSession", f(1, m.session))


def end(call):
    """(number, text) that a call comes to."""
    try:
        call()
    except wire.Answer as a:
        return a.number, a.text
    except wire.StepError as e:
        return e.number, e.text
    return OK


def plain(outcome):
    """Without what may differ between two servers."""
    number, text = outcome
    text = re.sub(r"vs\. \d+", "vs. N", text)
    text = re.sub(r"running on \S+\.", "running on HOST.", text)
    text = re.sub(r"Make sure the Op.*", "", text, flags=re.S)
    text = re.sub(r"step \d+", "step N", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "HEX", text)
    # The signature of an op; and what the allocator adds.
    text = re.sub(r"(Op<name=\w+);.*?>+(?=; NodeDef|\n|$)", r"\1>", text)
    text = re.sub(r"(OOM when .* and type \w+).*", r"\1", text, flags=re.S)
    # A message printed by protobuf, with spaces that vary on purpose.
    text = re.sub(r"(from proto:|received twice\.).*", r"\1", text,
                  flags=re.S)
    return number, text.strip()


PROBES = {}


def probe(ours=None):
    """A function of a Master or address; `ours`: what we answer instead."""
    def decorate(function):
        PROBES[function.__name__] = (function, ours)
        return function
    return decorate


# --- Graphs -----------------------------------------------------------------


def const(m, name="c", **kw):
    attrs = {"dtype": Type(FLOAT), "value": Tensor(wire.floats(1, 2))}
    attrs.update(kw)
    return m.n(name, "Const", **attrs)


@probe()
def graph_with_a_cycle(m):
    m.register(m.n("a", "AddV2", "b", "b", T=Type(FLOAT)),
               m.n("b", "AddV2", "a", "a", T=Type(FLOAT)))


@probe()
def graph_with_a_node_that_feeds_itself(m):
    m.register(m.n("a", "Identity", "a", T=Type(FLOAT)))


@probe()
def graph_with_a_missing_input(m):
    m.register(m.n("a", "Identity", "nobody", T=Type(FLOAT)))


@probe()
def graph_with_a_missing_control_input(m):
    m.register(const(m), m.n("a", "Identity", "c", "^nobody",
                             T=Type(FLOAT)))


@probe()
def graph_with_an_output_that_is_not_there(m):
    m.register(const(m), m.n("a", "Identity", "c:1", T=Type(FLOAT)))


@probe()
def graph_with_too_few_inputs(m):
    m.register(const(m), m.n("a", "AddV2", "c", T=Type(FLOAT)))


@probe()
def graph_with_too_many_inputs(m):
    m.register(const(m), m.n("a", "AddV2", "c", "c", "c", T=Type(FLOAT)))


@probe()
def graph_with_inputs_of_another_type(m):
    m.register(const(m), m.n("a", "Identity", "c", T=Type(INT32)))


@probe()
def graph_with_an_unknown_op(m):
    m.register(m.n("a", "NoSuchOp"))


@probe()
def graph_with_a_doubled_name(m):
    m.register(const(m), const(m))


@probe()
def graph_with_a_bad_name(m):
    m.register(m.n("a b", "NoOp"))


@probe()
def graph_without_a_device(m):
    m.register(wire.node("a", "NoOp"))


@probe()
def graph_with_an_attr_of_another_kind(m):
    m.register(m.n("c", "Const", dtype=3,
                   value=Tensor(wire.floats(1, 2))))


@probe()
def graph_with_a_missing_attr(m):
    m.register(m.n("c", "Const", dtype=Type(FLOAT)))


@probe()
def graph_with_a_type_that_is_not_allowed(m):
    m.register(m.n("c", "Const", dtype=Type(wire.STRING),
                   value=Tensor(wire.tensor(wire.STRING, [1], b"\1a"))),
               m.n("a", "Sqrt", "c", T=Type(wire.STRING)))


@probe()
def graph_with_a_type_that_does_not_exist(m):
    m.register(m.n("p", "Placeholder", dtype=Type(9999)))


@probe()
def constant_of_another_type(m):
    m.register(const(m, dtype=Type(INT32)))


@probe()
def constant_with_too_few_bytes(m):
    m.register(const(m, value=Tensor(wire.tensor(FLOAT, [4], b"12345678"))))


@probe()
def constant_with_too_many_bytes(m):
    m.register(const(m, value=Tensor(wire.tensor(FLOAT, [1], b"12345678"))))


@probe()
def constant_of_2_to_the_62_elements(m):
    m.register(const(m, value=Tensor(wire.tensor(FLOAT, [2**31, 2**31]))))


@probe()
def constant_whose_size_overflows(m):
    m.register(const(m, value=Tensor(wire.tensor(
        FLOAT, [2**40, 2**40, 2**40]))))


@probe()
def constant_with_a_negative_dimension(m):
    m.register(const(m, value=Tensor(wire.tensor(FLOAT, [-3]))))


@probe()
def constant_of_300_dimensions(m):
    m.register(const(m, value=Tensor(wire.tensor(FLOAT, [1] * 300,
                                                 b"1234"))))


@probe()
def fill_of_2_to_the_62_elements(m):
    import numpy as np
    shape = np.array([2**31, 2**31], np.int64).tobytes()
    h = m.register(
        m.n("d", "Const", dtype=Type(wire.INT64),
            value=Tensor(wire.tensor(wire.INT64, [2], shape))),
        m.n("v", "Const", dtype=Type(FLOAT),
            value=Tensor(wire.floats(1, dims=[]))),
        m.n("f", "Fill", "d", "v", T=Type(FLOAT),
            index_type=Type(wire.INT64)))
    m.run(h)


@probe()
def variable_of_2_to_the_62_elements(m):
    m.register(m.n("v", "VariableV2", dtype=Type(FLOAT),
                   shape=Shape((2**31, 2**31))))


@probe()
def graph_of_a_newer_version(m):
    m.register(raw=f(1, m.n("a", "NoOp")) + f(4, f(1, 10**6) + f(2, 10**6)))


@probe()
def graph_that_is_no_graph(m):
    m.register(raw=b"\xff\xff\xff\xff")


@probe()
def graph_for_another_task(m):
    m.register(wire.node("a", "NoOp",
                         device="/job:ps/replica:0/task:7/device:CPU:0"))


@probe()
def graph_for_a_device_we_lack(m):
    m.register(wire.node("a", "NoOp",
                         device="/job:ps/replica:0/task:0/device:GPU:0"))


@probe()
def empty_graph(m):
    m.run(m.register())


# --- Sessions ---------------------------------------------------------------


@probe()
def session_without_a_name(m):
    m.call("CreateWorkerSession", b"")


@probe()
def session_created_twice(m):
    m.call("CreateWorkerSession", f(1, m.session))
    m.run(m.register(m.n("a", "NoOp")))


@probe()
def unknown_session_deleted(m):
    m.call("DeleteWorkerSession", f(1, "nobody"))


@probe()
def graph_in_an_unknown_session(m):
    m.call("RegisterGraph", f(1, "nobody") + f(2, wire.graph()) + f(6, True))


@probe()
def run_in_an_unknown_session(m):
    m.run_answer(m.call("RunGraph", f(1, "0") + f(2, 1) + f(8, "nobody")
                        + f(10, True)))


@probe()
def run_of_an_unknown_graph(m):
    m.run("123456")


@probe()
def unknown_graph_deregistered(m):
    m.call("DeregisterGraph", f(1, "123456") + f(2, m.session) + f(3, True))


@probe()
def graph_deregistered_twice(m):
    request = f(1, m.register(m.n("a", "NoOp"))) + f(2, m.session) + f(3, 1)
    m.call("DeregisterGraph", request)
    m.call("DeregisterGraph", request)


@probe()
def run_of_a_deregistered_graph(m):
    handle = m.register(m.n("a", "NoOp"))
    m.call("DeregisterGraph", f(1, handle) + f(2, m.session) + f(3, True))
    m.run(handle)


# --- Steps ------------------------------------------------------------------


@probe()
def unknown_step_cleaned_up(m):
    m.call("CleanupGraph", f(1, 12345))


@probe()
def same_run_twice(m):
    handle = m.register(m.n("a", "NoOp"))
    request = m.run_request(handle, wire.new_step(), request_id=4711)
    m.run_answer(m.call("RunGraph", request))
    m.run_answer(m.call("RunGraph", request))


@probe()
def fetch_of_a_key_that_is_no_key(m):
    handle = m.register(const(m), m.send_node("out", "c", client=True))
    m.run(handle, recv=["nonsense"])


@probe()
def placeholder_that_is_not_fed(m):
    m.run(m.register(m.n("p", "Placeholder", dtype=Type(FLOAT)),
                     m.send_node("out", "p", client=True)))


@probe()
def feed_of_another_type(m):
    handle = m.register(
        m.recv_node("in", client=True),
        m.n("a", "Neg", "in", T=Type(FLOAT)),
        m.send_node("out", "a", client=True))
    m.run(handle, send=[(m.key("in"), wire.tensor(INT32, [1], b"\1\0\0\0"))],
          recv=[m.key("out")])


@probe()
def op_that_fails(m):
    handle = m.register(
        const(m), const(m, "d", value=Tensor(wire.floats(1, 2, 3))),
        m.n("a", "AddV2", "c", "d", T=Type(FLOAT)))
    m.run(handle)


@probe()
def variable_without_a_value(m):
    m.run(m.register(
        m.n("broken/v", "VariableV2", dtype=Type(FLOAT), shape=Shape((2,))),
        m.n("a", "Identity", "broken/v", T=Type(FLOAT)),
        m.send_node("out", "a")))


# In a session TensorFlow says the same; to this bare step its worker answers
# OK.
@probe(ours=(9, re.compile(r"Could not find variable broken/r\. (?s:.*)"
                           r"uninitialized(?s:.*)")))
def resource_without_a_value(m):
    m.run(m.register(const(m), m.n(  # so that the container exists
        "h", "VarHandleOp", dtype=Type(FLOAT), shape=Shape((2,)),
        shared_name="broken/exists"), m.n(
            "s", "AssignVariableOp", "h", "c", dtype=Type(FLOAT))))
    m.run(m.register(
        m.n("h", "VarHandleOp", dtype=Type(FLOAT), shape=Shape((2,)),
            shared_name="broken/r"),
        m.n("a", "ReadVariableOp", "h", dtype=Type(FLOAT)),
        m.send_node("out", "a")))


# TensorFlow ends training here; UNAVAILABLE lets its clients try again until
# the task has joined.
@probe(ours=(14, re.compile(r"No worker known as /job:worker/replica:0/"
                            r"task:9(?s:.*)")))
def tensor_of_a_task_that_is_not_in_the_cluster(m):
    m.run(m.register(
        m.recv_node("g", incarnation=1,
                    src="/job:worker/replica:0/task:9/device:CPU:0"),
        m.n("a", "Neg", "g", T=Type(FLOAT))))


# --- RecvTensor -------------------------------------------------------------


def recv(m, key, step=None, request_id=0, timeout=5):
    m.call("RecvTensor", f(1, wire.new_step() if step is None else step)
           + f(2, key) + f(7, request_id), timeout)


@probe()
def tensor_with_an_empty_key(m):
    recv(m, "")


@probe()
def tensor_with_a_key_of_three_parts(m):
    recv(m, "a;b;c")


@probe()
def tensor_with_a_key_of_a_bad_device(m):
    recv(m, "x;%016x;y;t;0:0" % m.incarnation)


@probe()
def tensor_with_a_key_of_a_bad_incarnation(m):
    recv(m, "%s;zz;%s;t;0:0" % (m.device, m.device))


# TensorFlow does not look at it and waits for ever.
@probe(ours=(3, re.compile(r"Invalid  rendezvous key: .*;t;0")))
def tensor_with_a_key_of_a_bad_frame(m):
    recv(m, "%s;%016x;%s;t;0" % (m.device, m.incarnation, m.device))


@probe()
def tensor_of_a_device_we_lack(m):
    recv(m, m.key("t", src=m.device.replace("CPU:0", "GPU:0")))


@probe()
def tensor_of_another_incarnation(m):
    recv(m, m.key("t", incarnation=1234))


@probe()
def same_tensor_asked_for_twice(m):
    handle = m.register(const(m), m.send_node("out", "c"))
    step = wire.new_step()
    m.run_answer(m.call("RunGraph", m.run_request(handle, step)))
    request = m.recv_request("out", step, request_id=4712)
    m.call("RecvTensor", request)
    try:
        m.call("RecvTensor", request)
    finally:
        m.call("CleanupGraph", f(1, step))


@probe()
def tensor_of_a_step_that_failed(m):
    handle = m.register(
        const(m), const(m, "d", value=Tensor(wire.floats(1, 2, 3))),
        m.n("a", "AddV2", "c", "d", T=Type(FLOAT)), m.send_node("out", "a"))
    step = wire.new_step()
    future = m.start("RecvTensor", m.recv_request("out", step), timeout=10)
    m.call("RunGraph", m.run_request(handle, step))
    try:
        wire.outcome(future)
    finally:
        m.call("CleanupGraph", f(1, step))


# --- Calls ------------------------------------------------------------------


METHODS = ["CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph",
           "DeregisterGraph", "RunGraph", "CleanupGraph", "CleanupAll",
           "RecvTensor", "MarkRecvFinished", "Logging"]


def unparsable(method, body):
    def probe_(m):
        m.call(method, body)
    probe_.__name__ = "garbage_%s_%s" % (body[:3].hex(), method)
    probe()(probe_)


for method in METHODS:
    unparsable(method, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
    unparsable(method, b"\x0a\x7fabc")     # a string cut off
    unparsable(method, b"\x0a\xff\xff\xff\xff\x7f")   # an absurd length


@probe()
def tracing(m):
    m.call("Tracing")


@probe()
def unknown_method(m):
    m.call("NoSuchMethod")


@probe()
def unknown_service(m):
    m.call("/tensorflow.grpc.WorkerService/GetStatus")


@probe()
def unknown_fields(m):
    m.call("CleanupGraph", f(1, 5) + f(900, "x") + f(901, 3) + f(902, 1.5))


# Whether the client or the server notices first decides about the text.
@probe(ours=(4, re.compile(r"(Stream removed \()?Deadline Exceeded\)?")))
def deadline_passes(m):
    recv(m, m.key("never"), timeout=0.2)


# --- The test ---------------------------------------------------------------


DIED = (None, "it died")


def ask(c, function):
    """What the ps of this cluster answers; TensorFlow's may die of it."""
    address = c.ports["ps"][0].address
    if not c.ps[0].alive():
        c.restart_ps(0)
    try:
        with Master(address) as m:
            got = plain(end(lambda: function(m)))
            m.call("DeleteWorkerSession", f(1, m.session))
    except wire.Answer:
        got = None
    if got is None or got[0] == 14:
        # Unavailable: did the server say so, or is there none?
        try:
            healthy(address)
        except wire.Answer:
            cl.wait("the ps is gone", lambda: not c.ps[0].alive(), 30)
            got = DIED
    return got


@pytest.mark.parametrize("name", sorted(PROBES))
def test_broken_input(pair, kind, name):
    function, ours = PROBES[name]
    mine, reference = pair
    got = ask(mine, function)
    if kind == "muster":
        assert got != DIED, mine.ps[0].text()[-3000:]
        healthy(mine.ports["ps"][0].address)
    want = ask(reference, function)
    if ours and kind == "muster":
        assert got[0] == ours[0]
        assert ours[1].fullmatch(got[1]), got[1]
    elif want != DIED:
        assert got == want


def test_lost_session_is_told_with_a_payload(pair):
    """WorkerPossiblyRestarted travels in grpc-status-details-bin."""
    with Master(pair[0].ports["ps"][0].address) as m:
        for call in (lambda: m.call("RegisterGraph", f(1, "nobody")
                                    + f(2, wire.graph()) + f(6, True)),
                     lambda: recv(m, m.key("t", incarnation=1234))):
            with pytest.raises(wire.Answer) as caught:
                call()
            assert caught.value.number == 10
            assert b"WorkerPossiblyRestarted" in caught.value.metadata[
                "grpc-status-details-bin"]


# --- Frames -----------------------------------------------------------------


def h2(kind_, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind_, flags]) \
        + struct.pack(">I", stream) + payload


def literal(name, value):
    """HPACK: literal without indexing, new name, no Huffman."""
    return (b"\0" + bytes([len(name)]) + name.encode()
            + bytes([len(value)]) + value.encode())


def headers(stream, path):
    block = b"".join(literal(*h) for h in (
        (":method", "POST"), (":scheme", "http"), (":path", path),
        (":authority", "x"), ("content-type", "application/grpc"),
        ("te", "trailers")))
    return h2(1, 4, stream, block)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2(4, 0, 0, b"")
STATUS = "/tensorflow.WorkerService/GetStatus"
BYTES = {
    "nothing": b"",
    "not http2": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "half a preface": PREFACE[:10],
    "frame cut off": PREFACE + headers(1, STATUS)[:20],
    "message cut off": PREFACE + headers(1, STATUS)
    + h2(0, 1, 1, b"\0\0\0\0\7ab"),
    "absurd message length": PREFACE + headers(1, STATUS)
    + h2(0, 1, 1, b"\0\xff\xff\xff\xffab"),
    "absurd frame length": PREFACE + b"\xff\xff\xff\0\0\0\0\0\1",
    "unknown compression": PREFACE + headers(1, STATUS)
    + h2(0, 1, 1, b"\1\0\0\0\2ab"),
    "flag that is no flag": PREFACE + headers(1, STATUS)
    + h2(0, 1, 1, b"\x7f\0\0\0\0"),
    "data without headers": PREFACE + h2(0, 1, 5, b"\0\0\0\0\0"),
    "garbage in the header block": PREFACE + h2(1, 5, 1, b"\xff" * 40),
    "no message at all": PREFACE + headers(1, STATUS) + h2(0, 1, 1, b""),
    "settings of a wrong size": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + h2(4, 0, 0, b"\0\3\0"),
    "a ping flood": PREFACE + h2(6, 0, 0, b"12345678") * 5000,
    "resets of streams that never were": PREFACE
    + b"".join(h2(3, 0, i, b"\0\0\0\x08") for i in range(1, 400, 2)),
}


@pytest.mark.parametrize("what", BYTES)
def test_broken_bytes_hurt_only_their_connection(pair, what):
    c = pair[0]
    address = c.ports["ps"][0].address
    with Peer(address) as other:
        other.call("GetStatus")
        before = c.ps[0].sockets()
        with socket.create_connection(("127.0.0.1",
                                       c.ports["ps"][0].number)) as s:
            s.sendall(BYTES[what])
            s.settimeout(0.3)
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass
        other.call("GetStatus")
        cl.wait("the connection is gone",
                lambda: c.ps[0].sockets() <= before, 30, tasks=c.ps)
    healthy(address)


def test_thousand_connections_come_and_go(pair, note):
    c = pair[0]
    healthy(c.ports["ps"][0].address)
    before = c.ps[0].sockets()
    for _ in range(1000):
        socket.create_connection(("127.0.0.1",
                                  c.ports["ps"][0].number)).close()
    cl.wait("they are gone", lambda: c.ps[0].sockets() <= before, 60,
            tasks=c.ps)
    healthy(c.ports["ps"][0].address)
