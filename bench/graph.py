"""A large graph: time and memory to create, compile, run and extend it.

Both sides in one run, one after the other, each in a fresh server.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import figures
from cluster import Cluster

KINDS = ("muster", "tensorflow")
MB = 1 << 20
LANES = 100


def make(tf, count):
    """A GraphDef of `count` nodes whose node "all" needs every other. It begins
    with a number that is fed, so that no optimizer can compute it before."""
    g = tf.GraphDef()
    g.versions.producer = 1000
    dtype = tf.AttrValue(type=tf.float32.as_datatype_enum)

    def node(name, op, inputs, **attrs):
        n = g.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            n.attr[key].CopyFrom(value)

    node("one", "Placeholder", (), dtype=dtype,
         shape=tf.AttrValue(shape=tf.TensorShape([]).as_proto()))
    for i in range(LANES):  # else all lanes would be one and the same
        node("c%d" % i, "Const", (), dtype=dtype,
             value=tf.AttrValue(tensor=tf.make_tensor_proto(float(i))))
    lanes = ["one"] * LANES
    for i in range(count - 2 - LANES):
        name = "n%d" % i
        other = lanes[(i + 1) % LANES] if i >= LANES else "c%d" % i
        node(name, "Maximum", (lanes[i % LANES], other), T=dtype)
        lanes[i % LANES] = name
    node("all", "NoOp", ["^" + lane for lane in lanes])
    return g


def measure(tf, target, task, definition, optimise):
    """Seconds and megabytes of each stage."""
    out = []

    def stage(fn):
        start = time.monotonic()
        fn()
        out.append(time.monotonic() - start)

    config = tf.ConfigProto(device_filters=["/job:ps"])
    if not optimise:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    before = task.rss_all()
    with tf.Graph().as_default() as g:
        tf.import_graph_def(definition, name="")
        every = g.get_operation_by_name("all")
        with tf.Session(target, config=config) as session:
            stage(lambda: session.run("c0:0"))
            stage(lambda: session.run(every, {"one:0": 2.0}))
            stage(lambda: [session.run(every, {"one:0": 2.0})
                           for _ in range(10)])
            more = tf.constant(1.0) + 1.0
            stage(lambda: session.run(more))
        memory = (task.rss_all() - before) / MB
    return [out[0], out[1], out[2] / 10, out[3], memory]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--nodes", type=int, default=100000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--optimise", action="store_true",
                   help="leave both sides' optimizers on")
    args = p.parse_args()
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    definition = make(tf, args.nodes)
    rows = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as directory:
        for r in range(args.rounds):
            for kind in KINDS:
                where = pathlib.Path(directory) / ("%s%d" % (kind, r))
                with Cluster(where, ps=(kind,), workers=1) as c:
                    rows[kind].append(measure(
                        tf, "grpc://" + c.ports["ps"][0].address, c.ps[0],
                        definition, args.optimise))
    heads = ("create s", "compile and run s", "run ms", "extend s", "MB")
    scale = (1, 1, 1000, 1, 1)
    figures.table(("%d nodes" % args.nodes, *heads), [
        (kind, *(figures.spread([row[i] * scale[i] for row in rows[kind]],
                                "%.2f") for i in range(len(heads))))
        for kind in KINDS])


if __name__ == "__main__":
    main()
