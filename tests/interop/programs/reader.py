"""Read a checkpoint with plain TensorFlow: no cluster, two ways.

With the checkpoint reader, and with a Saver in a local session of the graph
that the trainer saved.  Answer: {variable: [shape, digest by the reader, digest
in the session]}; parts of a partitioned variable are put together.
"""
import argparse
import hashlib
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402


def digest(value):
    return hashlib.sha1(np.ascontiguousarray(value).tobytes()).hexdigest()


def restored(prefix):
    """{name: value} of the variables in a local session."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(prefix + ".meta",
                                           clear_devices=True)
        saver.restore(session, prefix)
        for v in tf.global_variables():
            value = session.run(v)
            info = v._get_save_slice_info()
            if info is None:
                found[v.op.name] = value
                continue
            whole = found.setdefault(info.full_name, np.zeros(
                info.full_shape, value.dtype))
            at = tuple(slice(o, o + n) for o, n in zip(info.var_offset,
                                                       info.var_shape))
            whole[at] = value
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index")
    p.add_argument("--out")
    p.add_argument("--dir")
    a = p.parse_args()
    tf.disable_v2_behavior()
    prefix = tf.train.latest_checkpoint(a.dir)
    reader = tf.train.load_checkpoint(prefix)
    session = restored(prefix)
    answer = {}
    for name, shape in reader.get_variable_to_shape_map().items():
        answer[name] = [list(shape), digest(reader.get_tensor(name)),
                        digest(session[name]) if name in session else None]
    with open(a.out, "w") as f:
        json.dump(answer, f)


if __name__ == "__main__":
    main()
