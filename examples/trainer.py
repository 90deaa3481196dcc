"""The trainer of the seeds, made real: between-graph replication over ps tasks.

Every task of a job runs this one program; only --job_name and --task_index
differ.  A ps task is a TensorFlow server that joins (or `muster serve` in its
place, with the same flags), a worker builds one of four small models, whose
variables replica_device_setter spreads over the ps tasks, and trains it under
MonitoredTrainingSession.  With --server=muster the server in its process is
ours (build/python in PYTHONPATH); nothing else changes.

    python trainer.py --ps_hosts=a:2222,b:2222 --worker_hosts=c:2222,d:2222 \
        --job_name=worker --task_index=0 --model=mlp --steps=1000

The data are synthetic and come from --seed, and so do the initial weights:
with one worker a run can be repeated, and its losses compared step by step.
It is plain tf.compat.v1 and runs on TensorFlow 2.12 as well as on 2.21.
"""
import argparse
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.logging.set_verbosity(tf.logging.ERROR)

BATCH = 32
POOL = 1024  # examples a worker makes at its start and draws batches from


# --- Models -----------------------------------------------------------------
# A model is a pair of functions: data(rng) -> (x, y) pools of examples, and
# net(x, y, init) -> loss.  `init` makes seeded initializers, in order.


class Init:
    """Initializers with op seeds 1, 2, 3... under the run's graph seed."""

    def __init__(self):
        self.count = 0

    def normal(self, stddev):
        self.count += 1
        return tf.random_normal_initializer(stddev=stddev, seed=self.count)

    def truncated(self, stddev):
        self.count += 1
        return tf.truncated_normal_initializer(stddev=stddev, seed=self.count)

    def uniform(self, bound):
        self.count += 1
        return tf.random_uniform_initializer(-bound, bound, seed=self.count)


def zeros():
    return tf.zeros_initializer()


def dense(x, name, width, init):
    """[batch, n] -> [batch, width]."""
    n = int(x.shape[-1])
    w = tf.get_variable(name + "/w", [n, width],
                        initializer=init.truncated(n ** -0.5))
    b = tf.get_variable(name + "/b", [width], initializer=zeros())
    return tf.matmul(x, w) + b


def cross_entropy(logits, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=y, logits=logits))


def mlp_data(rng):
    """Ten noisy classes in 784 dimensions."""
    centre = rng.standard_normal((10, 784)) * 0.08
    y = rng.integers(0, 10, POOL)
    x = centre[y] + rng.standard_normal((POOL, 784))
    return x.astype(np.float32), y.astype(np.int32)


def mlp_net(x, y, init):
    h = tf.nn.relu(dense(x, "hidden", 128, init))
    return cross_entropy(dense(h, "out", 10, init), y)


def cnn_data(rng):
    """Ten noisy patterns of 16 x 16 pixels."""
    centre = rng.standard_normal((10, 16, 16, 1))
    y = rng.integers(0, 10, POOL)
    x = centre[y] + rng.standard_normal((POOL, 16, 16, 1))
    return x.astype(np.float32), y.astype(np.int32)


def conv(x, name, width, init):
    """[batch, h, w, c] -> [batch, h/2, w/2, width]."""
    n = int(x.shape[-1])
    k = tf.get_variable(name + "/k", [3, 3, n, width],
                        initializer=init.truncated((9 * n) ** -0.5))
    b = tf.get_variable(name + "/b", [width], initializer=zeros())
    h = tf.nn.conv2d(x, k, strides=[1, 1, 1, 1], padding="SAME")
    h = tf.nn.relu(tf.nn.bias_add(h, b))
    return tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME")


def cnn_net(x, y, init):
    h = conv(conv(x, "conv1", 8, init), "conv2", 16, init)
    h = tf.reshape(h, [-1, 4 * 4 * 16])
    return cross_entropy(dense(h, "out", 10, init), y)


VOCABULARY = 500


def embedding_data(rng):
    """Bags of eight words, repeats included; a word votes for a class."""
    vote = rng.integers(0, 2, VOCABULARY)
    x = (VOCABULARY * rng.random((POOL, 8)) ** 2).astype(np.int64)
    y = (vote[x].sum(axis=1) > 4).astype(np.int32)
    return x, y


def embedding_net(x, y, init, shards=2):
    """The table is cut into `shards`, one after the other on each ps."""
    with tf.variable_scope(
            "words", partitioner=tf.fixed_size_partitioner(shards)):
        table = tf.get_variable("table", [VOCABULARY, 16],
                                initializer=init.uniform(0.5))
    bag = tf.nn.embedding_lookup(table, x, partition_strategy="div")
    h = tf.reduce_sum(bag, axis=1)
    h.set_shape([None, 16])
    h = tf.tanh(dense(h, "hidden", 32, init))
    return cross_entropy(dense(h, "out", 2, init), y)


TIME = 8


def lstm_data(rng):
    """Walks of eight steps; the class is the quarter they end in."""
    x = rng.standard_normal((POOL, TIME, 4))
    end = x.sum(axis=1)
    y = (end[:, 0] > 0).astype(np.int32) + 2 * (end[:, 1] > 0)
    return x.astype(np.float32), y.astype(np.int32)


def lstm_net(x, y, init, units=32):
    """A cell by hand in a while_loop.

    The variables are read before it: TensorFlow cannot place the gradient of
    a resource variable that is read on a ps inside a worker's loop.
    """
    w = tf.get_variable("cell/w", [4 + units, 4 * units],
                        initializer=init.uniform((4 + units) ** -0.5))
    b = tf.get_variable("cell/b", [4 * units], initializer=zeros())
    w, b = tf.identity(w), tf.identity(b)
    seq = tf.TensorArray(tf.float32, TIME).unstack(tf.transpose(x, [1, 0, 2]))

    def step(t, c, h):
        z = tf.matmul(tf.concat([seq.read(t), h], 1), w) + b
        i, f, g, o = tf.split(z, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        return t + 1, c, tf.sigmoid(o) * tf.tanh(c)

    nought = tf.zeros([tf.shape(x)[0], units])
    _, _, h = tf.while_loop(lambda t, c, h: t < TIME, step,
                            [tf.constant(0), nought, nought])
    h.set_shape([None, units])
    return cross_entropy(dense(h, "out", 4, init), y)


MODELS = {
    "mlp": (mlp_data, mlp_net, [None, 784], tf.float32),
    "cnn": (cnn_data, cnn_net, [None, 16, 16, 1], tf.float32),
    "embedding": (embedding_data, embedding_net, [None, 8], tf.int64),
    "lstm": (lstm_data, lstm_net, [None, TIME, 4], tf.float32),
}


# --- Optimizers -------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda r: tf.train.GradientDescentOptimizer(r or 0.1),
    "momentum": lambda r: tf.train.MomentumOptimizer(r or 0.02, 0.9),
    "nesterov": lambda r: tf.train.MomentumOptimizer(
        r or 0.02, 0.9, use_nesterov=True),
    "adagrad": lambda r: tf.train.AdagradOptimizer(r or 0.1),
    "adam": lambda r: tf.train.AdamOptimizer(r or 0.003),
    "rmsprop": lambda r: tf.train.RMSPropOptimizer(r or 0.002),
    "ftrl": lambda r: tf.train.FtrlOptimizer(r or 0.1),
    "adadelta": lambda r: tf.train.AdadeltaOptimizer(r or 1.0),
}


# --- Training ---------------------------------------------------------------


def flags(argv=None):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--ps_hosts", default="", help="host:port,host:port...")
    p.add_argument("--worker_hosts", default="", help="host:port,host:port...")
    p.add_argument("--job_name", default="", choices=["ps", "worker"])
    p.add_argument("--task_index", type=int, default=0)
    p.add_argument("--server", default="tensorflow",
                   choices=["tensorflow", "muster"],
                   help="whose server runs in this process")
    p.add_argument("--model", default="mlp", choices=sorted(MODELS))
    p.add_argument("--optimizer", default="adagrad",
                   choices=sorted(OPTIMIZERS))
    p.add_argument("--learning_rate", type=float)
    p.add_argument("--steps", type=int, default=1000,
                   help="stop when global_step has come to this")
    p.add_argument("--sync", action="store_true",
                   help="SyncReplicasOptimizer over all workers")
    p.add_argument("--ref", dest="resource", action="store_false",
                   help="ref variables, as in TensorFlow 1 (default)")
    p.add_argument("--resource", action="store_true",
                   help="resource variables")
    p.set_defaults(resource=False)
    p.add_argument("--checkpoint_dir")
    p.add_argument("--save_steps", type=int, default=50)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--loss_log", help="one JSON line a step: step and loss")
    p.add_argument("--device_filters", action="store_true",
                   help="see only the ps tasks and this worker")
    p.add_argument("--master", help="grpc://host:port of a server that runs "
                   "already; without it a worker starts its own")
    p.add_argument("--recovery_wait_secs", type=float,
                   help="how often a worker looks if the chief has "
                   "initialized the variables (TensorFlow: 30)")
    return p.parse_args(argv)


def look_every(seconds):
    """MonitoredTrainingSession offers no parameter for this wait."""
    manager = tf.train.SessionManager
    start = getattr(manager.__init__, "plain", manager.__init__)

    def init(self, *args, **kwargs):
        kwargs["recovery_wait_secs"] = seconds
        start(self, *args, **kwargs)

    init.plain = start
    manager.__init__ = init


def batches(f, data):
    """Batches for ever; every worker draws its own from its own pool."""
    rng = np.random.default_rng([f.seed, 17])
    x, y = data(rng)
    draw = np.random.default_rng([f.seed, 18, f.task_index])
    while True:
        pick = draw.integers(0, POOL, BATCH)
        yield x[pick], y[pick]


def build(f, cluster):
    """The graph of one worker: (x, y, loss, step, train_op, hooks)."""
    data, net, shape, dtype = MODELS[f.model]
    tf.set_random_seed(f.seed)
    place = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % f.task_index, cluster=cluster)
    with tf.device(place):
        x = tf.placeholder(dtype, shape)
        y = tf.placeholder(tf.int32, [None])
        with tf.variable_scope(f.model):
            loss = net(x, y, Init())
        global_step = tf.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[f.optimizer](f.learning_rate)
        hooks = []
        if f.sync:
            replicas = cluster.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=replicas,
                total_num_replicas=replicas)
            hooks.append(optimizer.make_session_run_hook(f.task_index == 0))
        train_op = optimizer.minimize(loss, global_step=global_step)
        with tf.control_dependencies([train_op]):
            step = tf.identity(global_step.read_value())
    return x, y, loss, step, train_op, hooks, data


def train(f, cluster, target):
    """Train one model to its last step; returns the losses of this worker."""
    if f.resource:
        tf.enable_resource_variables()
    else:
        tf.disable_resource_variables()
    if f.recovery_wait_secs is not None:
        look_every(f.recovery_wait_secs)
    config = tf.ConfigProto()
    if f.device_filters:
        config.device_filters.extend(
            ["/job:ps", "/job:worker/task:%d" % f.task_index])
    # At its end the chief's queue runner still waits for gradients that
    # nobody will send; only closing the session, after this time, frees it.
    grace = 1 if f.sync else 120
    log = open(f.loss_log, "a", buffering=1) if f.loss_log else None
    losses = []
    with tf.Graph().as_default():
        x, y, loss, step, train_op, hooks, data = build(f, cluster)
        hooks.append(tf.train.StopAtStepHook(last_step=f.steps))
        with tf.train.MonitoredTrainingSession(
                master=target, is_chief=f.task_index == 0,
                checkpoint_dir=f.checkpoint_dir, hooks=hooks, config=config,
                save_checkpoint_steps=f.save_steps if f.checkpoint_dir
                else None, save_checkpoint_secs=None,
                save_summaries_steps=None, save_summaries_secs=None,
                log_step_count_steps=None,
                stop_grace_period_secs=grace) as session:
            for bx, by in batches(f, data):
                if session.should_stop():
                    break
                _, l, s = session.run([train_op, loss, step], {x: bx, y: by})
                losses.append(float(l))
                if log:
                    log.write(json.dumps({"step": int(s), "loss": float(l),
                                          "time": time.time()}) + "\n")
    if log:
        log.close()
    return losses


def server_class(name):
    if name == "muster":
        import muster
        return muster.Server
    return tf.train.Server


def main():
    f = flags()
    tf.disable_v2_behavior()
    hosts = {"ps": f.ps_hosts, "worker": f.worker_hosts}
    cluster = tf.train.ClusterSpec({
        job: [h.strip() for h in list_.split(",") if h.strip()]
        for job, list_ in hosts.items()})
    target = f.master
    if not target:
        server = server_class(f.server)(cluster, job_name=f.job_name,
                                        task_index=f.task_index)
        target = server.target
    if f.job_name == "ps":
        print("ps %d ready" % f.task_index, flush=True)
        server.join()
    losses = train(f, cluster, target)
    if losses:
        print("worker %d: %d steps, loss %.4f -> %.4f"
              % (f.task_index, len(losses), losses[0], losses[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
