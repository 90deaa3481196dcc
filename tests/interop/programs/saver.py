"""Variables on all ps, saved or restored by a sharded Saver.

--do=save gives them random bits and saves; --do=restore restores.  Answer: for
each number of parts in --parts {name: digest of the value's bytes}, a
partitioned variable as one value.
"""
import argparse
import hashlib
import json

import numpy as np
import tensorflow.compat.v1 as tf

TYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8",
         "bool", "complex64", "complex128"]


def build(parts):
    """{name: the variables that are its parts}"""
    found = {}
    for kind in "ref", "resource":
        for dtype in TYPES:
            name = "%s/%s" % (kind, dtype)
            found[name] = [tf.get_variable(
                name, initializer=tf.zeros((4, 3), dtype),
                use_resource=kind == "resource")]
        name = kind + "/partitioned"
        found[name] = list(tf.get_variable(
            name, (23, 5), use_resource=kind == "resource",
            partitioner=tf.fixed_size_partitioner(parts)))
    found["scalar"] = [tf.get_variable(
        "scalar", initializer=tf.zeros((), tf.int64), use_resource=True)]
    return found


def random(variable, rng):
    dtype = variable.dtype.base_dtype.as_numpy_dtype
    shape = variable.shape.as_list()
    if dtype == np.bool_:
        return rng.randint(0, 2, shape).astype(bool)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(rng.bytes(size), dtype).reshape(shape)


def set_all(session, found):
    rng = np.random.RandomState(5)
    session.run(tf.global_variables_initializer())
    for name in sorted(found):
        for variable in found[name]:
            value = tf.placeholder(variable.dtype.base_dtype, variable.shape)
            session.run(tf.assign(variable, value).op,
                        {value: random(variable, rng)})


def digests(session, found):
    answer = {}
    for name, variables in found.items():
        values = session.run([tf.identity(v) for v in variables])
        data = b"".join(np.ascontiguousarray(v).tobytes() for v in values)
        answer[name] = hashlib.sha1(data).hexdigest()
    return answer


def run(a, cluster, target, parts):
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(
            cluster=cluster, worker_device="/job:worker/task:0")):
        found = build(parts)
        saver = tf.train.Saver(sharded=True)
        with tf.Session(target) as session:
            if a.do == "save":
                set_all(session, found)
                saver.save(session, a.prefix, write_meta_graph=False)
            else:
                saver.restore(session, a.prefix)
            answer = digests(session, found)
    # The same names come again with other shapes.
    tf.Session.reset(target)
    return answer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index", type=int)
    p.add_argument("--out")
    p.add_argument("--do", choices=["save", "restore"])
    p.add_argument("--prefix")
    p.add_argument("--parts", type=int, nargs="+")
    a = p.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": a.ps_hosts.split(","),
                                    "worker": a.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name="worker",
                             task_index=a.task_index)
    answers = [run(a, cluster, server.target, parts) for parts in a.parts]
    with open(a.out, "w") as f:
        json.dump(answers, f)


if __name__ == "__main__":
    main()
