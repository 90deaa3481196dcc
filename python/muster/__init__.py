"""muster, a distributed TensorFlow runtime in C: its server in a Python process,
and the calls that change who is in a running job.

    import muster
    server = muster.Server(cluster, job_name="worker", task_index=0)
    with tf.compat.v1.Session(server.target) as session:
        ...

`Server` takes the arguments of tf.train.Server and has its methods, so that a
TensorFlow program changes one line.

    muster.add_onlineworker("grpc://ps0:2222", 2, "worker2:2222")

adds a worker while the job trains. `import muster.tensorflow` gives the same to
TensorFlow's sessions. Without that TensorFlow is not needed, and never imported.
"""
from muster._muster import version as __version__
from muster.cluster import (Change, Member, add_onlineworker, online_workers,
                            remove_onlineworker)
from muster.server import Server, ServerDef

__all__ = ["Change", "Member", "Server", "ServerDef", "__version__",
           "add_onlineworker", "online_workers", "remove_onlineworker"]
