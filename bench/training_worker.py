"""A worker of the trainer that runs when it is told to.

Each line on its input is a number of seconds; it trains for so long and
answers with its steps a second.  It ends with its input.
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "examples"))

import trainer

tf = trainer.tf


def main():
    f = trainer.flags()
    tf.disable_v2_behavior()
    if f.resource:
        tf.enable_resource_variables()
    else:
        tf.disable_resource_variables()
    trainer.look_every(0.2)
    cluster = tf.train.ClusterSpec({"ps": f.ps_hosts.split(","),
                                    "worker": f.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=f.job_name,
                             task_index=f.task_index)
    config = tf.ConfigProto(device_filters=[
        "/job:ps", "/job:worker/task:%d" % f.task_index])
    x, y, loss, step, train_op, hooks, data = trainer.build(f, cluster)
    batches = trainer.batches(f, data)
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=f.task_index == 0, hooks=hooks,
            config=config, log_step_count_steps=None) as session:
        print(0, flush=True)
        for line in sys.stdin:
            n, start = 0, time.perf_counter()
            while time.perf_counter() - start < float(line):
                bx, by = next(batches)
                session.run([train_op, loss], {x: bx, y: by})
                n += 1
            print(n / (time.perf_counter() - start), flush=True)


main()
