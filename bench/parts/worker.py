"""A worker of TensorFlow for the benches; see worker.c for what it answers.

    python worker.py SERVER_DEF GRAPH CONFIG [TARGET]

Its server is in this process, as tf.train.Server starts it; with a TARGET it is
only the client of the session there.
"""
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf  # noqa: E402


def message(kind, path):
    return kind.FromString(pathlib.Path(path).read_bytes())


def answer(run, seconds):
    took, begin = [], time.monotonic()
    last, end = begin, begin + seconds
    while seconds > 0 and (last < end or not took):
        run()
        now = time.monotonic()
        took.append(now - last)
        last = now
    order = sorted(took) or [0]
    return {"steps": len(took), "begin": begin, "seconds": last - begin,
            **{name: order[int((len(order) - 1) * q)] * 1e6
               for name, q in (("p50_us", 0.5), ("p99_us", 0.99),
                               ("p999_us", 0.999), ("max_us", 1))}}


def main():
    def_ = message(tf.train.ServerDef, sys.argv[1])
    config = message(tf.ConfigProto, sys.argv[3])
    target = sys.argv[4] if len(sys.argv) > 4 else None
    tf.disable_v2_behavior()
    tf.import_graph_def(message(tf.GraphDef, sys.argv[2]), name="")
    if not target:
        server = tf.train.Server(def_)
        target = server.target
    steps, graph = {}, tf.get_default_graph()
    with tf.Session(target, config=config) as session:
        print('{"ready": true}', flush=True)
        for line in sys.stdin:
            seconds, *ops = line.split()
            run = steps.get(tuple(ops))
            if not run:
                run = steps[tuple(ops)] = session.make_callable(
                    [graph.get_operation_by_name(op) for op in ops])
                run()
            print(json.dumps(answer(run, float(seconds))), flush=True)


main()
