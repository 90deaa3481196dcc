"""The trainer's models as MetaGraph files, for `muster train`.

    python export.py --model=mlp --out=mlp.meta [--sync --workers=2]
    python export.py --model=mlp --steps=50 --batches=FOLDER

A file has the graph of one worker with everything that a training session
asks for: TensorFlow's own collections (those of tf.train.Scaffold among them)
and a signature `train` that names the feeds x and y and the results loss and
step.  Without --devices it names no devices, and `muster train` gives them, as
replica_device_setter would; a synchronous graph has them in any case, because
the accumulators follow the variables.

What SyncReplicasOptimizer's hook runs lies in collections too, of names of our
own: sync_chief_init_op, sync_local_init_op, sync_init_tokens_op; the chief's
queue runner is among the queue_runners.
"""
import argparse
import contextlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent /
                       "examples"))

import trainer  # noqa: E402

np, tf = trainer.np, trainer.tf

LARGE_VOCABULARY, LARGE_IDS = 20000, 12


def large_data(rng):
    """Bags of words as the trainer's, of a large vocabulary."""
    vote = rng.integers(0, 2, LARGE_VOCABULARY)
    x = (LARGE_VOCABULARY * rng.random((trainer.POOL, LARGE_IDS)) ** 2)
    x = x.astype(np.int64)
    y = (vote[x].sum(axis=1) > LARGE_IDS // 2).astype(np.int32)
    return x, y


def large_net(x, y, init):
    small, trainer.VOCABULARY = trainer.VOCABULARY, LARGE_VOCABULARY
    try:
        return trainer.embedding_net(x, y, init)
    finally:
        trainer.VOCABULARY = small


MODELS = dict(trainer.MODELS, embedding_large=(
    large_data, large_net, [None, LARGE_IDS], tf.int64))


def build(model, optimizer="adagrad", learning_rate=None, ps=2, workers=1,
          sync=False, devices=False, resource=False, seed=1, task=None):
    """The graph in the default graph: x, y, loss, step, train_op, sync.

    task: the worker whose graph it is; without it that of any.
    """
    _, net, shape, dtype = MODELS[model]
    if resource:
        tf.enable_resource_variables()
    else:
        tf.disable_resource_variables()
    tf.set_random_seed(seed)
    place = contextlib.nullcontext()
    if devices or sync:
        place = tf.device(tf.train.replica_device_setter(
            ps_tasks=ps, worker_device="/job:worker" + (
                "" if task is None else "/task:%d" % task)))
    replicas = None
    with place:
        x = tf.placeholder(dtype, shape, name="x")
        y = tf.placeholder(tf.int32, [None], name="y")
        with tf.variable_scope(model):
            loss = net(x, y, trainer.Init())
        global_step = tf.train.get_or_create_global_step()
        opt = trainer.OPTIMIZERS[optimizer](learning_rate)
        if sync:
            opt = replicas = tf.train.SyncReplicasOptimizer(
                opt, replicas_to_aggregate=workers,
                total_num_replicas=workers)
        train_op = opt.minimize(loss, global_step=global_step)
        with tf.control_dependencies([train_op]):
            step = tf.identity(global_step.read_value(), name="step")
    return x, y, loss, step, train_op, replicas


def add_sync(replicas):
    """What SyncReplicasOptimizer.make_session_run_hook() would run."""
    for name, op in [("sync_chief_init_op", replicas.chief_init_op),
                     ("sync_local_init_op", replicas.local_step_init_op),
                     ("sync_init_tokens_op", replicas.get_init_tokens_op())]:
        tf.add_to_collection(name, op)
    tf.train.add_queue_runner(replicas.get_chief_queue_runner())


def export(path, model, **options):
    """Write the MetaGraph of a model."""
    tf.disable_v2_behavior()
    with tf.Graph().as_default():
        x, y, loss, step, train_op, replicas = build(model, **options)
        tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train_op)
        tf.add_to_collection(tf.GraphKeys.LOSSES, loss)
        if replicas:
            add_sync(replicas)
        scaffold = tf.train.Scaffold().finalize()
        meta = tf.train.export_meta_graph(
            saver_def=scaffold.saver.saver_def, clear_devices=False)
    signature = meta.signature_def["train"]
    for key, tensor in [("x", x), ("y", y)]:
        signature.inputs[key].CopyFrom(tf.saved_model.build_tensor_info(tensor))
    for key, tensor in [("loss", loss), ("step", step)]:
        signature.outputs[key].CopyFrom(
            tf.saved_model.build_tensor_info(tensor))
    pathlib.Path(path).write_bytes(meta.SerializeToString())


def write_batches(folder, model, steps, batch=trainer.BATCH, seed=1, task=0):
    """The rows that the trainer draws in so many steps, as x.npy, y.npy."""
    data = MODELS[model][0]
    x, y = data(np.random.default_rng([seed, 17]))
    draw = np.random.default_rng([seed, 18, task])
    pick = np.concatenate([draw.integers(0, trainer.POOL, batch)
                           for _ in range(steps)])
    folder = pathlib.Path(folder)
    np.save(folder / "x.npy", x[pick])
    np.save(folder / "y.npy", y[pick])
    return x[pick], y[pick]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--model", default="mlp", choices=sorted(MODELS))
    p.add_argument("--optimizer", default="adagrad",
                   choices=sorted(trainer.OPTIMIZERS))
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--sync", action="store_true")
    p.add_argument("--devices", action="store_true")
    p.add_argument("--resource", action="store_true")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", help="the MetaGraph's file")
    p.add_argument("--batches", help="a folder for x.npy and y.npy")
    p.add_argument("--steps", type=int, default=100, help="of --batches")
    p.add_argument("--batch", type=int, default=trainer.BATCH)
    f = p.parse_args()
    if f.out:
        export(f.out, f.model, optimizer=f.optimizer, ps=f.ps,
               workers=f.workers, sync=f.sync, devices=f.devices,
               resource=f.resource, seed=f.seed)
    if f.batches:
        write_batches(f.batches, f.model, f.steps, f.batch, f.seed)


if __name__ == "__main__":
    main()
