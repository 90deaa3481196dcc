"""A worker of TensorFlow that trains when it is told to, for train.py.

It answers as `muster train --bench` does: each line on its input is a number of
seconds and is answered, when these are over, with the steps of that time.  The
graph is the one that `tests/interop/export.py` writes for ours.  With --master
it is only the client of a server that runs already.
"""
import argparse
import json
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "interop")]

import export  # noqa: E402
import trainer  # noqa: E402

np, tf = trainer.np, trainer.tf


class Trainer:
    """Steps on a thread, while the gate is open."""

    def __init__(self, step):
        self.count, self.gate, self.step = 0, threading.Event(), step
        threading.Thread(target=self.train, daemon=True).start()

    def train(self):
        while True:
            self.gate.wait()
            self.step(self.count)
            self.count += 1

    def rate(self, seconds):
        """A step that waits for other workers at the end is not waited for."""
        before, begin = self.count, time.perf_counter()
        self.gate.set()
        time.sleep(seconds)
        steps, took = self.count - before, time.perf_counter() - begin
        self.gate.clear()
        return {"steps": steps, "seconds": took, "steps_per_s": steps / took}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ps_hosts", required=True)
    p.add_argument("--worker_hosts", required=True)
    p.add_argument("--task_index", type=int, required=True)
    p.add_argument("--master")
    p.add_argument("--model", required=True)
    p.add_argument("--sync", action="store_true")
    p.add_argument("--resource", action="store_true")
    p.add_argument("--data", required=True, help="folder of x.npy and y.npy")
    p.add_argument("--batch", type=int, required=True)
    f = p.parse_args()
    tf.disable_v2_behavior()
    trainer.look_every(0.2)
    cluster = {"ps": f.ps_hosts.split(","), "worker": f.worker_hosts.split(",")}
    server = None if f.master else tf.train.Server(
        cluster, job_name="worker", task_index=f.task_index)
    x, y, loss, _, train_op, replicas = export.build(
        f.model, ps=len(cluster["ps"]), workers=len(cluster["worker"]),
        sync=f.sync, devices=True, resource=f.resource, task=f.task_index)
    chief = f.task_index == 0
    folder = pathlib.Path(f.data)
    rows = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    batches = [{x: rows[0][i:i + f.batch], y: rows[1][i:i + f.batch]}
               for i in range(0, len(rows[0]), f.batch)]
    wanted = [train_op, loss, tf.train.get_global_step()]
    config = tf.ConfigProto(device_filters=[
        "/job:ps", "/job:worker/task:%d" % f.task_index])
    with tf.train.MonitoredTrainingSession(
            master=f.master or server.target, is_chief=chief, config=config,
            hooks=[replicas.make_session_run_hook(chief)] if f.sync else [],
            log_step_count_steps=None) as session:
        steps = Trainer(lambda n: session.run(wanted,
                                              batches[n % len(batches)]))
        print('{"ready": true}', flush=True)
        for line in sys.stdin:
            print(json.dumps(steps.rate(float(line))), flush=True)
        os._exit(0)  # the step under way may wait for ever


main()
