"""Many connections and many calls that wait: nothing starves, nothing stays."""
import struct
import threading
import time

import pytest

import cluster as cl
import wire
from wire import FLOAT, INT32, Master, Peer, Tensor, Type, f

pytestmark = pytest.mark.sanitize
CONNECTIONS = 200
PARKED = 1000


def quantiles(seconds):
    s = sorted(seconds)
    return "%.2f ms (median), %.2f (99 of 100), %.2f (worst)" % tuple(
        1e3 * s[int(q * (len(s) - 1))] for q in (0.5, 0.99, 1))


def latency(peer, count=300):
    out = []
    for _ in range(count):
        start = time.perf_counter()
        peer.call("GetStatus")
        out.append(time.perf_counter() - start)
    return out


def senders(m, count):
    """A graph that sends count tensors, each its own number."""
    nodes = []
    for i in range(count):
        nodes.append(m.n("c%d" % i, "Const", dtype=Type(INT32),
                         value=Tensor(wire.tensor(INT32, [],
                                                  struct.pack("<i", i)))))
        nodes.append(m.send_node("t%d" % i, "c%d" % i, INT32))
    return m.register(*nodes, timeout=60)


def number(answer):
    return struct.unpack("<i", wire.content(wire.parse(answer)[1][0])[1])[0]


def test_thousand_parked_calls_on_200_connections(cluster, kind, note):
    c = cluster(ps=1, workers=1)
    ps, address = c.ps[0], c.ports["ps"][0].address
    with Master(address) as m:
        handle = senders(m, PARKED)
        idle = latency(m)
        before = ps.rss(), ps.sockets(), ps.threads()
        peers = [Peer(address) for _ in range(CONNECTIONS)]
        step = wire.new_step()
        calls = [peers[i % CONNECTIONS].start(
            "RecvTensor", m.recv_request("t%d" % i, step))
            for i in range(PARKED)]
        cl.wait("all connections are there", lambda: ps.sockets()
                >= before[1] + CONNECTIONS, tasks=[ps])
        for p in peers:  # by now each has read what came before
            p.call("GetStatus")
        assert not any(call.done() for call in calls)
        busy = latency(m)
        parked = ps.rss() - before[0], ps.threads() - before[2]
        start = time.perf_counter()
        m.run_answer(m.call("RunGraph", m.run_request(handle, step), 60))
        got = [number(wire.outcome(call, 60)) for call in calls]
        seconds = time.perf_counter() - start
        assert got == list(range(PARKED))
        m.call("CleanupGraph", f(1, step))
        for p in peers:
            p.close()
        cl.wait("the connections are gone",
                lambda: ps.sockets() <= before[1], tasks=[ps])
        assert ps.threads() <= before[2] + (0 if kind == "muster" else 100)
        note("%d calls parked on %d connections take %.1f MB and %d threads;"
             " all answered in %.0f ms\n    GetStatus: %s alone, %s beside"
             % (PARKED, CONNECTIONS, parked[0] / 1e6, parked[1],
                1e3 * seconds, quantiles(idle), quantiles(busy)))


def test_thousand_parked_calls_on_one_connection(cluster, note):
    """A large tensor passes beside them, and the last parked is served."""
    c = cluster(ps=1, workers=1)
    ps, address = c.ps[0], c.ports["ps"][0].address
    with Master(address) as m:
        big = m.register(
            m.n("n", "Const", dtype=Type(INT32), value=Tensor(
                wire.tensor(INT32, [1], struct.pack("<i", 16 << 20)))),
            m.n("z", "Const", dtype=Type(FLOAT), value=Tensor(
                wire.floats(1, dims=[]))),
            m.n("f", "Fill", "n", "z", T=Type(FLOAT)),
            m.send_node("big", "f"))
        handle = senders(m, PARKED)
        step = wire.new_step()
        calls = [m.start("RecvTensor", m.recv_request("t%d" % i, step))
                 for i in range(PARKED)]
        other = wire.new_step()
        m.run_answer(m.call("RunGraph", m.run_request(big, other)))
        start = time.perf_counter()
        got = m.call("RecvTensor", m.recv_request("big", other), 60)
        seconds = time.perf_counter() - start
        assert len(got) >= 64 << 20
        assert not any(call.done() for call in calls)
        m.run_answer(m.call("RunGraph", m.run_request(handle, step), 60))
        assert [number(wire.outcome(call, 60)) for call in calls] == list(
            range(PARKED))
        note("64 MB beside %d parked calls: %.2f GB/s to grpcio" % (
            PARKED, (64 << 20) / seconds / 1e9))
        m.call("CleanupGraph", f(1, step))
        m.call("CleanupGraph", f(1, other))
    assert ps.alive()


def test_blocked_steps_do_not_block_others(cluster):
    """200 steps that wait in a queue, then one that fills it."""
    c = cluster(ps=1, workers=1)
    with Master(c.ports["ps"][0].address) as m:
        # An attr of kind list(type), which node() does not write.
        types = f(5, f(1, "component_types") + f(2, f(1, f(6, FLOAT))))
        queue = m.n("q", "FIFOQueueV2", shared_name="blocked",
                    capacity=1000) + types
        take = m.register(
            queue, m.n("d", "QueueDequeueV2", "q") + types,
            m.send_node("out", "d", client=True))
        key = m.key("out")
        runs = [m.start_run(take, wire.new_step(), recv=[key])
                for _ in range(200)]
        for _ in range(20):
            m.call("GetStatus")
        fill = m.register(
            m.n("c", "Const", dtype=Type(FLOAT), value=Tensor(
                wire.floats(*range(200)))), queue,
            m.n("e", "QueueEnqueueManyV2", "q", "c") + f(
                5, f(1, "Tcomponents") + f(2, f(1, f(6, FLOAT)))))
        m.run(fill, timeout=60)
        got = sorted(wire.floats_of(m.run_answer(wire.outcome(r, 60))[key])[0]
                     for r in runs)
        assert got == list(range(200))


@pytest.mark.memory
def test_cancelled_calls_leave_nothing(cluster, kind):
    """Calls given up by their clients: their waiters are gone, too."""
    if kind != "muster":
        pytest.skip("TensorFlow keeps them for ever")
    c = cluster(ps=1, workers=1)
    ps = c.ps[0]
    with Master(c.ports["ps"][0].address) as m:
        def round_():
            step = wire.new_step()
            calls = [m.start("RecvTensor", m.recv_request("x%d" % i, step))
                     for i in range(500)]
            m.call("GetStatus")
            for call in calls:
                call.cancel()
            m.call("CleanupGraph", f(1, step))
        for _ in range(3):
            round_()
        before = ps.rss()
        for _ in range(20):
            round_()
        cl.wait("memory is back", lambda: ps.rss() < before + (8 << 20), 30,
                tasks=[ps])


def test_clients_in_parallel_see_their_own_steps(cluster, note):
    """Eight masters run steps at once; each gets its own numbers back."""
    c = cluster(ps=1, workers=1)
    address, rounds, wrong = c.ports["ps"][0].address, 200, []

    def client(n):
        with Master(address) as m:
            handle = m.register(
                m.recv_node("in", client=True),
                m.n("a", "AddV2", "in", "in", T=Type(FLOAT)),
                m.send_node("out", "a", client=True))
            for i in range(rounds):
                value = float(n * 1000 + i)
                got = m.run(handle, recv=[m.key("out")],
                            send=[(m.key("in"), wire.floats(value))])
                if wire.floats_of(got[m.key("out")]) != [2 * value]:
                    wrong.append((n, i, got))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)
    assert not wrong
    note("%.0f steps/s of 8 Python clients" % (
        8 * rounds / (time.perf_counter() - start)))
