"""TensorFlow's server, for clients that are not TensorFlow's.

Writes a graph to the folder that it is given: y = -x, and a counter that op
`add` counts up and `count:0` reads; prints its target, and ends with its input.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.disable_resource_variables()


def main():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None], name="x")
        tf.negative(x, name="y")
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(v, 1.0)
        with tf.control_dependencies([add]):
            tf.identity(v.read_value(), name="count")
        tf.group(v.initializer, name="init")
        (pathlib.Path(sys.argv[1]) / "graph.pb").write_bytes(
            graph.as_graph_def().SerializeToString())
    server = tf.train.Server.create_local_server()
    print(server.target, flush=True)
    sys.stdin.read()


main()
