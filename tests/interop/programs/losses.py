"""Train each model for some steps as the only worker; answer with the losses.

One process goes through all models and both kinds of variables, so that
TensorFlow is imported once.  Answer: {"mlp-ref": [losses], ...}.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples"))

import trainer  # noqa: E402
from trainer import tf  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index", type=int)
    p.add_argument("--master", help="a server that runs already")
    p.add_argument("--models", default=",".join(sorted(trainer.MODELS)))
    p.add_argument("--out")
    p.add_argument("--steps", type=int)
    p.add_argument("--optimizer", default="adagrad")
    a = p.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": a.ps_hosts.split(","),
                                    "worker": a.worker_hosts.split(",")})
    target = a.master
    if not target:
        server = tf.train.Server(cluster, job_name="worker",
                                 task_index=a.task_index)
        target = server.target
    losses = {}
    for model in a.models.split(","):
        for kind in "ref", "resource":
            f = trainer.flags(["--job_name=worker", "--model=" + model,
                               "--steps=%d" % a.steps, "--" + kind,
                               "--optimizer=" + a.optimizer])
            losses["%s-%s" % (model, kind)] = trainer.train(
                f, cluster, target)
    with open(a.out, "w") as f:
        json.dump(losses, f)


if __name__ == "__main__":
    main()
