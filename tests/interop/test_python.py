"""Our server inside of Python processes, in the place of tf.train.Server.

The package by itself is tried in programs/python_server.py, in one process that
has TensorFlow. Here are jobs whose workers have our server in their own
process: the trainer changes one line, and trains on either kind of ps.
"""
import os
import subprocess

import pytest

import cluster as cl
from test_trainer import check, start

pytestmark = pytest.mark.trainer


def test_package(tmp_path, note):
    done = subprocess.run(
        [cl.python(), "-m", "pytest", "-q", "--noconftest", "-p",
         "no:cacheprovider", "--basetemp=%s" % (tmp_path / "files"),
         cl.PROGRAMS / "python_server.py"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3",
             "PYTHONPATH": cl.package()},
        capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    note(done.stdout.strip().split("\n")[-1])


@pytest.mark.parametrize("kinds, model, flags", [
    (["muster", "muster"], "embedding", ["--ref"]),
    (["muster", "muster"], "mlp", ["--sync", "--resource"]),
    (["tensorflow", "tensorflow"], "cnn", ["--ref"]),
    (["tensorflow", "muster"], "lstm", ["--sync", "--resource"]),
], ids=lambda v: "-".join(v) if isinstance(v, list) else v)
def test_trainer_with_our_server_in_its_workers(cluster, tmp_path, kind, kinds,
                                                model, flags):
    if kind != "muster":
        pytest.skip("needs a server of ours")
    c = cluster(ps=kinds, workers=2)
    steps = 120 if "--sync" in flags else 400
    start(c, steps, "--server=muster", "--model=" + model,
          "--checkpoint_dir=%s" % (tmp_path / "ckpt"), *flags)
    check(c, steps, model)


def test_trainer_with_one_worker_of_each_kind(cluster, kind):
    if kind != "muster":
        pytest.skip("needs a server of ours")
    c = cluster(ps=1, workers=2)
    for i, server in enumerate(["tensorflow", "muster"]):
        c.train(i, "--steps=400", "--model=mlp", "--server=" + server)
    check(c, 400, "mlp")
