"""The script of the seeds: add a worker online, on every ps.

    add_worker.py 2 worker2.example.com:2222 ps0.example.com:2222 ps1...
"""
import sys

import tensorflow.compat.v1 as tf

import muster.tensorflow  # noqa: F401


def main(_):
    index, address, *servers = sys.argv[1:]
    for ps in servers:
        with tf.Session("grpc://" + ps) as sess:
            sess.add_onlineworker(int(index), address)


if __name__ == "__main__":
    tf.app.run(argv=sys.argv[:1])
