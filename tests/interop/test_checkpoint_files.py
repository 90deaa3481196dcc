"""Our checkpoint, record and event files beside TensorFlow's own.

The tests are in programs/checkpoint_files.py and run in one process that has
TensorFlow, so that this one need not.
"""
import os
import pathlib
import subprocess

import pytest

import cluster as cl


@pytest.mark.sanitize
@pytest.mark.trainer
def test_checkpoint_files(tmp_path, note):
    if not cl.muster():
        pytest.skip("no build to test")
    peer = pathlib.Path(cl.muster()).resolve().parent / "tests" / "bundle_peer"
    done = subprocess.run(
        [cl.python(), "-m", "pytest", "-q", "--noconftest", "-p",
         "no:cacheprovider", "--basetemp=%s" % (tmp_path / "files"),
         cl.PROGRAMS / "checkpoint_files.py"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3",
             "BUNDLE_PEER": str(peer)},
        capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    note(done.stdout.strip().split("\n")[-1])
