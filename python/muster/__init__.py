"""muster, a distributed TensorFlow runtime in C: its server in a Python process.

    import muster
    server = muster.Server(cluster, job_name="worker", task_index=0)
    with tf.compat.v1.Session(server.target) as session:
        ...

`Server` takes the arguments of tf.train.Server and has its methods, so that a
TensorFlow program changes one line. TensorFlow itself is not needed here, and
never imported.
"""
from muster._muster import version as __version__
from muster.server import Server, ServerDef

__all__ = ["Server", "ServerDef", "__version__"]
