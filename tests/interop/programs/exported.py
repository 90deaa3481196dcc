"""What test_client.py needs of TensorFlow, in one process.

    python exported.py FOLDER STEPS

Writes MODEL-{ref,resource,sync}.meta, MODEL/x.npy and y.npy, losses.json (of
TensorFlow's own session, fed with these batches) and MODEL-PS.devices.json (by
replica_device_setter).
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import export  # noqa: E402
from export import tf  # noqa: E402

MODELS = ["mlp", "cnn", "embedding", "lstm"]
BATCH = 32


def losses(model, kind, steps, x, y):
    """Of a session without a cluster."""
    with tf.Graph().as_default(), tf.Session() as session:
        bx, by, loss, _, train_op, _ = export.build(
            model, resource=kind == "resource")
        session.run(tf.global_variables_initializer())
        return [float(session.run([loss, train_op], {
            bx: x[i * BATCH:(i + 1) * BATCH],
            by: y[i * BATCH:(i + 1) * BATCH]})[0]) for i in range(steps)]


def devices(model, ps):
    """Of all nodes, also those of the training session's own."""
    with tf.Graph().as_default() as graph:
        with tf.device(tf.train.replica_device_setter(
                ps_tasks=ps, worker_device="/job:worker/task:0")):
            export.build(model)
            tf.train.Scaffold(saver=tf.train.Saver()).finalize()
        return {n.name: n.device for n in graph.as_graph_def().node
                if n.name.startswith(model) or n.name.startswith("global_step")}


def main():
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    tf.disable_v2_behavior()
    found = {}
    for model in MODELS:
        (folder / model).mkdir()
        x, y = export.write_batches(folder / model, model, steps, BATCH)
        for kind in "ref", "resource":
            export.export(folder / ("%s-%s.meta" % (model, kind)), model,
                          resource=kind == "resource")
            found["%s-%s" % (model, kind)] = losses(model, kind, steps, x, y)
        export.export(folder / ("%s-sync.meta" % model), model, sync=True,
                      workers=2)
        for ps in 2, 3:
            (folder / ("%s-%d.devices.json" % (model, ps))).write_text(
                json.dumps({"model": model, "ps": ps,
                            "devices": devices(model, ps)}))
    (folder / "losses.json").write_text(json.dumps(found))


main()
