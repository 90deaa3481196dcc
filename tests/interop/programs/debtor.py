"""A worker that owes: it makes a ps wait for it in every way, then is killed.

It is a worker service and the master of a session on the ps, by hand.  When the
ps waits for all that it owes, it prints `owing` and goes on owing: a gradient
that the ps has asked for, a step with a large feed, a value sent that nobody
fetches, a tensor that it waits for itself, a blocked dequeue and a blocked
take of a gradient.
"""
import argparse
import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import wire  # noqa: E402
from wire import FLOAT, INT32, INT64, Master, Tensor, Type, f  # noqa: E402

SIZE = 1 << 21  # floats in the feed: 8 MB


def list_of_types(name, *types):
    return f(5, f(1, name) + f(2, f(1, b"".join(f(6, t) for t in types))))


def queue(m):
    types = list_of_types("component_types", FLOAT)
    return m.n("q", "FIFOQueueV2", shared_name="debt", capacity=10) + types


def accumulator(m):
    return m.n("acc", "ResourceConditionalAccumulator", dtype=Type(FLOAT),
               shape=wire.Shape((2,)), shared_name="debt")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps")
    p.add_argument("--worker")
    p.add_argument("--index", type=int)
    a = p.parse_args()
    worker = wire.Worker(a.worker)
    task = "/job:worker/replica:0/task:%d" % a.index
    m = Master(a.ps, task=task, incarnation=os.getpid())
    step = m.register(
        m.recv_node("gradient", src=task + "/device:CPU:0", incarnation=77),
        m.recv_node("in", client=True),
        m.n("sum", "AddV2", "in", "gradient", T=Type(FLOAT)),
        m.n("copy", "Neg", "in", T=Type(FLOAT)),
        m.send_node("unread", "copy"),
        m.send_node("never", "sum"))
    feed = wire.tensor(FLOAT, [SIZE], bytes(4 * SIZE))
    number = wire.new_step()
    calls = [m.start("RecvTensor", m.recv_request("never", number)),
             m.start_run(step, number, send=[(m.key("in"), feed)])]
    types = list_of_types("component_types", FLOAT)
    take = m.register(queue(m), m.n("d", "QueueDequeueV2", "q") + types,
                      m.send_node("taken", "d"))
    grad = m.register(
        accumulator(m), m.n("one", "Const", dtype=Type(INT32), value=Tensor(
            wire.tensor(INT32, [], b"\1\0\0\0"))),
        m.n("t", "ResourceAccumulatorTakeGradient", "acc", "one",
            dtype=Type(FLOAT)), m.send_node("grad", "t"))
    calls += [m.start_run(h, wire.new_step()) for h in (take, grad)]
    assert worker.asked.wait(60), "the ps did not ask for the gradient"
    for _ in range(5):
        m.call("GetStatus")
    assert not any(c.done() for c in calls), [c.result() for c in calls
                                              if c.done()]
    print("owing", flush=True)
    threading.Event().wait()


assert INT64

if __name__ == "__main__":
    main()
