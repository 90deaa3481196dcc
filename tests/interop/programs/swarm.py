"""Many workers of one job, as threads of this process, that come and go.

Each is a client of its own `muster serve` worker, added to the running job and
removed from it by a call on a ps.  A step sends a gradient from the worker to
every ps and then counts one up on the first.  Answer: how many steps were
acknowledged to each worker, what errors they saw, and what the ps counted.

    swarm.py --ps_hosts=... --workers=a:1,b:1,... --out=FILE
"""
import argparse
import json
import threading

import tensorflow.compat.v1 as tf

import muster

HOLD_S = 0.25  # between two changes


class Worker(threading.Thread):
    """Steps until somebody stops it or an error does."""

    def __init__(self, index, address, ps_count):
        super().__init__()
        self.index, self.steps, self.error = index, 0, None
        self.begun, self.enough = threading.Event(), threading.Event()
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(
                tf.train.replica_device_setter(
                    ps_tasks=ps_count,
                    worker_device="/job:worker/task:%d" % index)):
            self.count = tf.get_variable(
                "count", [], tf.int64, tf.zeros_initializer(), trainable=False)
            weights = [tf.get_variable("w%d" % i, [1000],
                                       initializer=tf.zeros_initializer())
                       for i in range(ps_count)]
            updates = [w.assign_add(tf.random.uniform([1000]))
                       for w in weights]
            with tf.control_dependencies(updates):
                self.step = tf.assign_add(self.count, 1).op
            self.init = tf.global_variables_initializer()
        self.target = "grpc://" + address
        self.config = tf.ConfigProto(device_filters=[
            "/job:ps", "/job:worker/task:%d" % index])

    def session(self):
        return tf.Session(self.target, self.graph, self.config)

    def run(self):
        try:
            with self.session() as session:
                while not self.enough.is_set():
                    session.run(self.step)
                    self.steps += 1
                    self.begun.set()
        except tf.errors.OpError as e:
            self.error = "%s: %s" % (type(e).__name__, e.message)
        self.begun.set()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--workers")
    p.add_argument("--out")
    a = p.parse_args()
    tf.disable_v2_behavior()
    ps, addresses = a.ps_hosts.split(","), a.workers.split(",")
    workers = [Worker(i, address, len(ps))
               for i, address in enumerate(addresses)]
    pause = threading.Event()
    for w in workers:
        if w.index:
            muster.add_onlineworker(ps[w.index % len(ps)], w.index,
                                    addresses[w.index])
        else:
            with w.session() as session:
                session.run(w.init)
        w.start()
        w.begun.wait(60)
        pause.wait(HOLD_S)
    removed = {}
    for w in reversed(workers[1:]):
        muster.remove_onlineworker(ps[w.index % len(ps)], w.index)
        w.join(60)
        removed[w.index] = w.error
        pause.wait(HOLD_S)
    workers[0].enough.set()
    workers[0].join(60)
    with workers[0].session() as session:
        counted = int(session.run(workers[0].count))
    with open(a.out, "w") as f:
        json.dump({"counted": counted, "removed": removed,
                   "steps": [w.steps for w in workers],
                   "first": workers[0].error,
                   "hung": [w.index for w in workers if w.is_alive()]}, f)


if __name__ == "__main__":
    main()
