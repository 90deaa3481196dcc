"""The transport beside grpcio: their client on our server, and ours on theirs.

Our side is tests/interop/rpc_peer.c; what it can be told stands there.
"""
import concurrent.futures
import os
import pathlib
import queue
import subprocess
import threading

import grpc
import pytest

import cluster as cl

BIG = [("grpc.max_receive_message_length", -1),
       ("grpc.max_send_message_length", -1)]
WAIT_S = 60


def program():
    path = os.environ.get("RPC_PEER")
    if path:
        return path
    # The builds, the newest first.
    found = [p for p in pathlib.Path(cl.ROOT).glob("build*/tests/rpc_peer")
             if "fuzz" not in str(p)]
    if not found:
        pytest.skip("rpc_peer is not built")
    return str(max(found, key=lambda p: p.stat().st_mtime))


def pattern(size):
    block = bytes((i * 7 + (i >> 8)) & 255 for i in range(65536))
    return (block * (size // 65536 + 1))[:size]


def make_crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ 0x82f63b78 if i & 1 else i >> 1
        table.append(i)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return "%08x" % (crc ^ 0xffffffff)


class Peer:
    """The program, its lines in and out. It ends with its standard input."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [program(), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)  # no preexec_fn: gRPC's threads mind a fork
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")

    def hear(self, word):
        """The rest of the next line that begins with this word."""
        while True:
            line = self.lines.get(timeout=WAIT_S)
            assert line is not None, "rpc_peer has ended"
            if line.split(" ")[0] == word:
                return line[len(word) + 1:]

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        self.reader.join()
        return code


# ------------------------------------------------- their client, our server

@pytest.fixture
def server():
    peer = Peer("serve")
    peer.target = "127.0.0.1:" + peer.hear("port")
    yield peer
    assert peer.end() == 0


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.target, BIG) as ch:
        yield ch


def method(channel, name):
    return channel.unary_unary("/peer.Test/" + name)


@pytest.mark.parametrize("size", [0, 1, 1000, 16384, 1 << 20, 64 << 20])
def test_echo(channel, size):
    data = pattern(size)
    assert method(channel, "Echo")(data, timeout=WAIT_S) == data


@pytest.mark.parametrize("how", [grpc.Compression.Gzip,
                                 grpc.Compression.Deflate])
@pytest.mark.parametrize("size", [0, 100, 3 << 20])
def test_compressed_request(server, how, size):
    with grpc.insecure_channel(server.target, BIG, compression=how) as ch:
        data = pattern(size)
        assert method(ch, "Echo")(data, timeout=WAIT_S) == data


@pytest.mark.parametrize("size", [0, 32 << 20])
def test_unknown_method(channel, size):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Nope")(bytes(size), timeout=WAIT_S)
    assert e.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert e.value.details() == ""
    assert method(channel, "Echo")(b"x") == b"x"


def test_failure_with_details(channel):
    text = "café 100%\nsecond line \U0001f600 " + "y" * 1500
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Fail")(("10 " + text).encode(), timeout=WAIT_S)
    assert e.value.code() == grpc.StatusCode.ABORTED
    assert e.value.details() == text
    found = dict(e.value.trailing_metadata())
    assert found["grpc-status-details-bin"] == b"\0\1\2\xff"


@pytest.mark.parametrize("code", list(range(1, 17)))
def test_every_code(channel, code):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Fail")(b"%d why" % code, timeout=WAIT_S)
    assert e.value.code().value[0] == code


def test_request_too_large(channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Small")(bytes(5 << 20), timeout=WAIT_S)
    assert e.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in e.value.details()
    assert method(channel, "Small")(bytes(1000)) == bytes(1000)


def test_deadline(server, channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Park")(b"", timeout=1)
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert server.hear("cancelled") == "/peer.Test/Park"
    assert server.hear("done") == "/peer.Test/Park"


def test_deadline_and_peer_are_seen(channel):
    left, peer = method(channel, "About")(b"", timeout=30).split()
    assert 0 < int(left) <= 30100
    assert peer.startswith(b"ipv4:127.0.0.1:")
    assert method(channel, "About")(b"").split()[0] == b"-1"


def test_cancel(server, channel):
    call = method(channel, "Park").future(b"")
    server.hear("started")
    call.cancel()
    assert server.hear("cancelled") == "/peer.Test/Park"
    assert method(channel, "Echo")(b"x") == b"x"


def test_cancel_in_a_large_reply(channel):
    for _ in range(5):
        call = method(channel, "Echo").future(bytes(64 << 20))
        threading.Event().wait(0.02)  # anywhere in the transfer will do
        call.cancel()
    assert method(channel, "Echo")(b"x") == b"x"


def test_thousand_parked(server, channel):
    calls = [method(channel, "Park").future(b"p%d" % i) for i in range(1000)]
    for _ in calls:
        server.hear("started")
    assert method(channel, "Echo")(b"x") == b"x"
    assert method(channel, "Release")(b"") == b""
    for i, call in enumerate(calls):
        assert call.result(WAIT_S) == b"p%d" % i


@pytest.mark.parametrize("count, size", [(0, 0), (1, 0), (3, 20), (500, 100),
                                         (20, 1 << 20), (2, 32 << 20)])
def test_stream(channel, count, size):
    got = channel.unary_stream("/peer.Test/Count")(b"%d %d 0" % (count, size),
                                                   timeout=WAIT_S)
    assert list(got) == [pattern(size)] * count
    assert got.code() == grpc.StatusCode.OK


@pytest.mark.parametrize("count", [0, 1, 5])
def test_stream_that_fails(channel, count):
    got = channel.unary_stream("/peer.Test/Count")(b"%d 9 10" % count,
                                                   timeout=WAIT_S)
    with pytest.raises(grpc.RpcError) as e:
        for _ in range(count + 1):
            assert next(got) == pattern(9)
    assert e.value.code() == grpc.StatusCode.ABORTED
    assert e.value.details() == "no more"
    found = dict(e.value.trailing_metadata())
    assert found["grpc-status-details-bin"] == b"\0\1\2\xff"


def test_stream_waits_for_its_reader(server, channel):
    """A thousand megabytes, of which one is read: few are ever made."""
    got = channel.unary_stream("/peer.Test/Count")(b"1000 1048576 0")
    assert next(got) == pattern(1 << 20)
    assert method(channel, "Echo")(b"x") == b"x"
    got.cancel()
    assert server.hear("cancelled") == "/peer.Test/Count"
    assert int(server.hear("sent")) < 100


def test_stream_has_a_deadline(server, channel):
    got = channel.unary_stream("/peer.Test/Count")(b"1000 1048576 0",
                                                   timeout=1)
    server.hear("started")
    assert server.hear("cancelled") == "/peer.Test/Count"
    with pytest.raises(grpc.RpcError) as e:
        list(got)
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_many_headers(channel):
    few = [("x-number-%d" % i, "v" * 100) for i in range(100)]
    assert method(channel, "Echo")(b"x", metadata=few) == b"x"


def test_eager_pings(server):
    options = BIG + [("grpc.keepalive_time_ms", 100),
                     ("grpc.keepalive_permit_without_calls", 1),
                     ("grpc.http2.max_pings_without_data", 0)]
    with grpc.insecure_channel(server.target, options) as ch:
        call = method(ch, "Park").future(b"x")
        server.hear("started")
        with pytest.raises(grpc.FutureTimeoutError):
            call.result(1)
        method(ch, "Release")(b"")
        assert call.result(WAIT_S) == b"x"


def test_drain(server):
    with grpc.insecure_channel(server.target, BIG) as ch:
        parked = method(ch, "Park").future(b"still here")
        server.hear("started")
        server.tell("drain", 60000)
        # The notice is out when new calls fail, as nobody listens any more.
        while True:
            try:
                method(ch, "Echo")(b"x", timeout=WAIT_S)
            except grpc.RpcError as e:
                assert e.code() == grpc.StatusCode.UNAVAILABLE
                break
        assert not parked.done()
        parked.cancel()
        server.hear("cancelled")
        server.hear("stopped")


# ------------------------------------------------- our client, their server

class Handler(grpc.GenericRpcHandler):
    def __init__(self):
        self.parked = queue.Queue()
        self.cancelled = queue.Queue()
        self.release = threading.Event()

    def service(self, details):
        name = details.method.split("/")[-1]
        fn = getattr(self, "on_" + name, None)
        if name.startswith("Count"):
            return grpc.unary_stream_rpc_method_handler(fn)
        return fn and grpc.unary_unary_rpc_method_handler(fn)

    def on_Echo(self, request, context):
        return request

    def on_Size(self, request, context):
        return pattern(len(request) * 1000)

    def on_Fail(self, request, context):
        context.set_trailing_metadata(
            [("grpc-status-details-bin", b"\0\1\2\xff")])
        context.abort(grpc.StatusCode.ABORTED, "café 100%\nsecond")

    def on_Headers(self, request, context):
        context.send_initial_metadata([("x-%d" % i, "v" * 100)
                                       for i in range(40)])
        return request

    def on_Gzip(self, request, context):
        context.set_compression(grpc.Compression.Gzip)
        return pattern(100000)

    def on_Count(self, request, context):
        for i in range(len(request)):
            yield pattern(i * i * 1000)

    def on_CountGzip(self, request, context):
        context.set_compression(grpc.Compression.Gzip)
        yield pattern(100000)
        yield b""
        context.abort(grpc.StatusCode.ABORTED, "no more")

    def on_CountPark(self, request, context):
        context.add_callback(lambda: self.cancelled.put(1))
        yield b"first"
        self.release.wait(WAIT_S)

    def on_Park(self, request, context):
        context.add_callback(lambda: self.cancelled.put(1))
        self.parked.put(1)
        self.release.wait(WAIT_S)
        return request


def grpcio_server(port=0, options=()):
    handler = Handler()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64),
                         options=BIG + list(options))
    server.add_generic_rpc_handlers((handler,))
    server.port = server.add_insecure_port("127.0.0.1:%d" % port)
    server.handler = handler
    server.start()
    return server


class Client(Peer):
    count = 0

    def start(self, name, size=1, deadline_ms=0, wait=0, place=0):
        self.count += 1
        self.tell("call", self.count, "/peer.Test/" + name, size, deadline_ms,
                  wait, place)
        return self.count

    def stream(self, name, size=1, deadline_ms=0):
        self.count += 1
        self.tell("stream", self.count, "/peer.Test/" + name, size, deadline_ms)
        return self.count

    def messages(self, count):
        """The lengths and checksums of the next ones."""
        return [tuple(self.hear("message").split()[1:]) for _ in range(count)]

    def result(self):
        number, code, size, crc, details, text = \
            self.hear("result").split(" ", 5)
        return (int(number), int(code), int(size), crc, details, text)

    def call(self, *args, **kwargs):
        self.start(*args, **kwargs)
        return self.result()[1:]


@pytest.fixture
def theirs():
    server = grpcio_server()
    yield server
    server.handler.release.set()
    server.stop(0).wait()


@pytest.fixture
def client(theirs):
    peer = Client("call", "127.0.0.1:%d" % theirs.port)
    yield peer
    assert peer.end() == 0


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 20, 16384, 1 << 20])
def test_client_echo(client, size, place):
    code, got, crc, _, _ = client.call("Echo", size, place=place)
    assert (code, got) == (0, size)
    assert crc == crc32c(pattern(size))


@pytest.mark.parametrize("place", [0, 1])
def test_client_large(client, place):
    for size in (10 << 20, 100 << 20):
        assert client.call("Echo", size, place=place)[:2] == (0, size)


def test_client_failure(client):
    code, size, _, details, text = client.call("Fail")
    assert (code, size) == (10, 0)
    assert details == "000102ff"
    assert text == "café 100%\\nsecond"


def test_client_unknown_method(client):
    assert client.call("Nope")[0] == 12


def test_client_many_headers(client):
    assert client.call("Headers", 10)[:2] == (0, 10)


def test_client_takes_compressed_replies(client):
    # It does not say that it would; then nobody may compress.
    code, size, crc, _, _ = client.call("Gzip")
    assert (code, size, crc) == (0, 100000, crc32c(pattern(100000)))


def test_client_deadline(client, theirs):
    code, _, _, _, text = client.call("Park", deadline_ms=1000)
    assert (code, text) == (4, "Deadline Exceeded")
    assert theirs.handler.cancelled.get(timeout=WAIT_S)


def test_client_cancel(client, theirs):
    number = client.start("Park")
    theirs.handler.parked.get(timeout=WAIT_S)
    client.tell("cancel", number)
    assert client.result()[:2] == (number, 1)
    assert theirs.handler.cancelled.get(timeout=WAIT_S)


def test_client_many_outstanding(client, theirs):
    numbers = {client.start("Park", i + 1) for i in range(500)}
    theirs.handler.release.set()
    results = [client.result() for _ in numbers]
    assert {r[0] for r in results} == numbers
    assert all(r[1] == 0 and r[2] == r[0] for r in results)


def test_client_keeps_to_the_stream_limit():
    server = grpcio_server(options=[("grpc.max_concurrent_streams", 5)])
    client = Client("call", "127.0.0.1:%d" % server.port)
    server.handler.release.set()
    for i in range(200):
        client.start("Park", i + 1)
    results = [client.result() for _ in range(200)]
    assert [r for r in results if r[1]] == []
    assert client.end() == 0
    server.stop(0).wait()


def test_client_goes_to_a_new_server():
    server = grpcio_server()
    port = server.port
    client = Client("call", "127.0.0.1:%d" % port)
    assert client.call("Echo", 10)[0] == 0
    parked = client.start("Park", 5)
    server.handler.parked.get(timeout=WAIT_S)
    stopping = server.stop(WAIT_S)  # GOAWAY; the parked call may finish
    while client.call("Echo", 10)[0] != 14:
        pass
    waiting = client.start("Echo", 10, wait=1)
    server.handler.release.set()
    number, code = client.result()[:2]
    assert (number, code) == (parked, 0)
    stopping.wait()
    other = grpcio_server(port)
    assert client.result()[:2] == (waiting, 0)
    assert client.end() == 0
    other.stop(0).wait()


def test_client_loses_a_killed_server():
    server = Peer("serve")
    client = Client("call", "127.0.0.1:" + server.hear("port"))
    client.start("Park")
    server.hear("started")
    server.process.kill()
    assert client.result()[1] == 14
    code, _, _, _, text = client.call("Echo")
    assert code == 14
    assert text.startswith("failed to connect to all addresses; last error: ")
    assert client.end() == 0
    server.process.wait()
    server.process.stdin.close()


def expected(data):
    return (str(len(data)), crc32c(data))


def test_client_stream(client):
    client.stream("Count", 20)
    assert client.messages(20) == [expected(pattern(i * i * 1000))
                                   for i in range(20)]
    assert client.result()[1:3] == (0, 0)


def test_client_stream_compressed_that_fails(client):
    client.stream("CountGzip")
    assert client.messages(2) == [expected(pattern(100000)), expected(b"")]
    assert client.result()[1] == 10


def test_client_stream_cancelled(theirs, client):
    call = client.stream("CountPark")
    assert client.messages(1) == [expected(b"first")]
    client.tell("cancel", call)
    assert client.result()[1] == 1
    theirs.handler.cancelled.get(timeout=WAIT_S)


def test_client_stream_of_a_server_that_is_gone(theirs, client):
    client.stream("CountPark")
    assert client.messages(1) == [expected(b"first")]
    theirs.stop(0)
    assert client.result()[1] in (1, 14)
