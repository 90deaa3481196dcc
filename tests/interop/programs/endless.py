"""A client that reads from a pipeline without end until it is killed."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def main():
    d = tf.data.Dataset.range(1 << 60).map(
        lambda x: tf.reduce_sum(tf.random.uniform([64, 64])) + tf.cast(
            x, tf.float32), num_parallel_calls=4)
    d = d.shuffle(64).batch(8).prefetch(1 << 20)
    it = tf.data.make_initializable_iterator(d, shared_name="endless")
    element = it.get_next()
    with tf.Session(sys.argv[1]) as session:
        session.run(it.initializer)
        while True:
            session.run(element)
            print("read", flush=True)


main()
