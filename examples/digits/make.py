"""Makes digits.meta and digits.npz, which lie beside it.

    python make.py digits.csv.gz

The images are those of scikit-learn's load_digits(), whose file is given (it is
sklearn/datasets/data/digits.csv.gz of its package); README.md says where they
come from.  The graph is plain TensorFlow 1 and names no devices: whoever trains
it places it.  TensorFlow is needed to make it, and for nothing else.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

HERE = pathlib.Path(__file__).resolve().parent
TEST = 360  # images that are kept for the end


def make_data(path):
    rows = np.loadtxt(path, delimiter=",", dtype=np.int64)
    images = rows[:, :64].astype(np.uint8).reshape(-1, 8, 8)
    labels = rows[:, 64].astype(np.uint8)
    order = np.random.default_rng(1).permutation(len(rows))
    test, train = order[:TEST], order[TEST:]
    np.savez_compressed(
        HERE / "digits.npz",
        train_images=images[train], train_labels=labels[train],
        test_images=images[test], test_labels=labels[test])


def dense(x, name, width):
    n = int(x.shape[1])
    w = tf.get_variable(name + "/w", [n, width],
                        initializer=tf.truncated_normal_initializer(
                            stddev=n ** -0.5))
    b = tf.get_variable(name + "/b", [width],
                        initializer=tf.zeros_initializer())
    return tf.matmul(x, w) + b


def make_graph():
    tf.disable_v2_behavior()
    tf.disable_resource_variables()
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 8, 8], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    x = tf.reshape(images / 16.0, [-1, 64])
    logits = dense(tf.nn.relu(dense(x, "hidden", 128)), "out", 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits), name="loss")
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train_op)
    tf.add_to_collection(tf.GraphKeys.LOSSES, loss)
    scaffold = tf.train.Scaffold().finalize()
    meta = tf.train.export_meta_graph(saver_def=scaffold.saver.saver_def)
    (HERE / "digits.meta").write_bytes(meta.SerializeToString())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make_data(sys.argv[1])
    make_graph()


main()
