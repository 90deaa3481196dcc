"""Five steps of every TensorFlow 1 optimizer on the ps and on this worker.

The same seeded gradients, dense and as IndexedSlices with repeated rows, go to
two copies of a variable: one on the ps, whose ops run there, one here.  The
answer has the values of the variable and of every slot of both copies after
each step.
"""
import argparse
import json
import os
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

STEPS = 5
ROWS, WIDTH = 6, 3

OPTIMIZERS = {
    "GradientDescent": lambda g: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda g: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda g: tf.train.MomentumOptimizer(0.1, 0.9,
                                                     use_nesterov=True),
    "Adagrad": lambda g: tf.train.AdagradOptimizer(0.1),
    "AdagradDA": lambda g: tf.train.AdagradDAOptimizer(
        0.1, g, l1_regularization_strength=0.01,
        l2_regularization_strength=0.02),
    "Adadelta": lambda g: tf.train.AdadeltaOptimizer(1.0),
    "Adam": lambda g: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda g: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "CenteredRMSProp": lambda g: tf.train.RMSPropOptimizer(
        0.1, momentum=0.5, centered=True),
    "Ftrl": lambda g: tf.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.01,
        l2_regularization_strength=0.02),
    "FtrlShrinkage": lambda g: tf.train.FtrlOptimizer(
        0.1, l2_shrinkage_regularization_strength=0.03),
    "ProximalAdagrad": lambda g: tf.train.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=0.01,
        l2_regularization_strength=0.02),
    "ProximalGradientDescent": lambda g: tf.train.
    ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.01,
        l2_regularization_strength=0.02),
}


class Copy:
    """One variable, its optimizer and update op on one device."""

    def __init__(self, name, make, device, resource, gradient):
        with tf.device(device), tf.variable_scope(name,
                                                  use_resource=resource):
            start = np.linspace(-1, 1, ROWS * WIDTH, dtype=np.float32)
            self.var = tf.get_variable(
                "v", initializer=start.reshape(ROWS, WIDTH))
            step = tf.get_variable("step", initializer=np.int64(0),
                                   trainable=False)
            optimizer = make(step)
            self.update = optimizer.apply_gradients(
                [(gradient, self.var)], global_step=step)
            slots = [optimizer.get_slot(self.var, s)
                     for s in sorted(optimizer.get_slot_names())]
            self.state = [self.var, step] + slots


def rule(op, slots, scalars):
    """An optimizer that only exists as an op, on resource variables."""
    def build(device, gradient):
        with tf.device(device):
            variables = [tf.Variable(np.full((ROWS, WIDTH), v, np.float32),
                                     use_resource=True)
                         for v in (0.5, *slots.values())]
            names = ["var", *slots]
            update = getattr(tf.raw_ops, op)(
                **{n: v.handle for n, v in zip(names, variables)},
                **{n: tf.constant(v) for n, v in scalars.items()},
                grad=gradient)
        return update, variables
    return build


RULES = {
    "AdaMax": rule("ResourceApplyAdaMax", {"m": 0.1, "v": 0.2}, {
        "beta1_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.99,
        "epsilon": 1e-7}),
    "AddSign": rule("ResourceApplyAddSign", {"m": 0.1}, {
        "lr": 0.1, "alpha": 1.0, "sign_decay": 0.9, "beta": 0.9}),
    "PowerSign": rule("ResourceApplyPowerSign", {"m": 0.1}, {
        "lr": 0.1, "logbase": 1.0, "sign_decay": 0.9, "beta": 0.9}),
}


def pieces(rng):
    """What one step feeds: a dense gradient, rows and their indices."""
    return (rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
            rng.standard_normal((4, WIDTH)).astype(np.float32),
            rng.integers(0, ROWS, 4))


def run(target, config, make, form, resource, ps, here):
    """[[values of the ps' copy, values of ours]] after each step."""
    with tf.Graph().as_default():
        with tf.device(here):
            dense = tf.placeholder(tf.float32, [ROWS, WIDTH])
            rows = tf.placeholder(tf.float32, [None, WIDTH])
            indices = tf.placeholder(tf.int64, [None])
        gradient = dense if form == "dense" else tf.IndexedSlices(
            rows, indices, tf.constant([ROWS, WIDTH], tf.int64))
        if form == "rule":
            a, b = make(ps, dense), make(here, dense)
            updates, states = [a[0], b[0]], [a[1], b[1]]
        else:
            copies = [Copy(n, make, d, resource, gradient)
                      for n, d in (("ps", ps), ("here", here))]
            updates = [c.update for c in copies]
            states = [c.state for c in copies]
        rng = np.random.default_rng(7)
        history = []
        with tf.Session(target, config=config) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                session.run(updates, dict(zip((dense, rows, indices),
                                              pieces(rng))))
                history.append([[np.asarray(v, np.float64).ravel().tolist()
                                 for v in side]
                                for side in session.run(states)])
        return history


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index", type=int)
    p.add_argument("--out")
    a = p.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": a.ps_hosts.split(","),
                                    "worker": a.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name="worker",
                             task_index=a.task_index)
    here = "/job:worker/task:%d" % a.task_index
    config = tf.ConfigProto(device_filters=["/job:ps", here])
    answer = {}
    todo = [("%s-%s-%s" % (name, form, kind), make, form, kind == "resource")
            for name, make in OPTIMIZERS.items()
            for form in ("dense", "sparse") for kind in ("ref", "resource")]
    todo += [(name + "-rule", make, "rule", True)
             for name, make in RULES.items()]
    for case, make, form, resource in todo:
        try:
            answer[case] = run(server.target, config, make, form, resource,
                               "/job:ps/task:0", here)
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            answer[case] = "%s: %s" % (type(e).__name__, str(e)[:600])
    with open(a.out, "w") as f:
        json.dump(answer, f)


if __name__ == "__main__":
    main()
