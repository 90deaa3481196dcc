"""What a ps weighs: memory when idle and with variables, time to readiness.

Resident memory as the kernel counts it (VmRSS); ready is from exec until the
port takes a connection, asked every half millisecond.
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import figures
from cluster import TRAINER, Cluster, Port, muster, python

KINDS = ("muster", "tensorflow")
MB = 1 << 20


def takes_connections(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port.number)) == 0


def ready_ms(kind):
    """From exec to the first connection of one ps of this kind."""
    head = {"muster": [muster(), "serve"],
            "tensorflow": [python(), TRAINER]}[kind]
    port, other = Port(), Port()
    argv = [*map(str, head), "--ps_hosts=" + port.address,
            "--worker_hosts=" + other.address, "--job_name=ps",
            "--task_index=0"]
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while not takes_connections(port):
        time.sleep(0.0005)
    taken = time.monotonic() - start
    process.kill()
    process.wait()
    port.release()
    other.release()
    return taken * 1e3


def with_variables(tf, cluster, megabytes):
    """RSS after variables of so much were made, updated once and left."""
    hosts = {"ps": [cluster.hosts("ps")], "worker": [cluster.hosts("worker")]}
    server = tf.train.Server(hosts, job_name="worker", task_index=0)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            made = [tf.get_variable("v%d" % i, [MB // 4], use_resource=True)
                    for i in range(megabytes)]
        config = tf.ConfigProto()
        with tf.Session(server.target, config=config) as session:
            session.run(tf.global_variables_initializer())
    end = time.monotonic() + 20
    least = cluster.ps[0].rss_all()
    while time.monotonic() < end:
        least = min(least, cluster.ps[0].rss_all())
        time.sleep(0.5)
    del made
    return least


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--megabytes", type=int, default=256)
    args = p.parse_args()
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    idle, ready, full = ([[], []] for _ in range(3))
    with tempfile.TemporaryDirectory() as directory:
        for r in range(args.rounds):
            for i, kind in enumerate(KINDS):
                where = pathlib.Path(directory) / ("%s%d" % (kind, r))
                ready[i].append(ready_ms(kind))
                with Cluster(where, ps=(kind,), workers=1) as cluster:
                    idle[i].append(cluster.ps[0].rss_all() / MB)
                    if r == 0:
                        full[i].append(with_variables(
                            tf, cluster, args.megabytes) / MB)
    figures.table(("ps", "idle MB", "with %d MB of variables, MB" %
                   args.megabytes, "ready ms"),
                  [(kind, figures.spread(idle[i], "%.1f"),
                    figures.spread(full[i], "%.0f"),
                    figures.spread(ready[i], "%.1f"))
                   for i, kind in enumerate(KINDS)])


if __name__ == "__main__":
    main()
