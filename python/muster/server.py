"""The server: what a user gives, made into one ServerDef for the C library.

A ServerDef that is a protocol buffer stays one. Anything else that tells of a
cluster becomes a ServerDef of our own, which knows how to write itself as the
protocol buffer would; so TensorFlow need not be there. If the program has
imported it, it gets its classes: ServerDef from `server_def`, errors of
tf.errors.
"""
import operator
import os
import socket
import sys

from muster import _muster
from muster._call import call
from muster.cluster import TIMEOUT_S, milliseconds

GRACE_S = 2.0
LEAVE_MS = 1000


# --- A ServerDef without protocol buffers -----------------------------------


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    if isinstance(value, str):
        value = value.encode()
    return _varint(field << 3 | 2) + _varint(len(value)) + value


class ServerDef:
    """What tf.train.ServerDef says, for programs without TensorFlow.

    cluster is {job: {task: address}}, default_session_config the bytes of a
    ConfigProto.
    """

    def __init__(self, cluster, job_name, task_index, protocol="grpc",
                 default_session_config=b""):
        self.cluster = cluster
        self.job_name = job_name
        self.task_index = task_index
        self.protocol = protocol
        self.default_session_config = default_session_config

    def __repr__(self):
        return "muster.ServerDef(%r, %r, %r, %r, %r)" % (
            self.cluster, self.job_name, self.task_index, self.protocol,
            self.default_session_config)

    def SerializeToString(self):  # the name that protocol buffers have
        cluster = b"".join(
            _bytes(1, _bytes(1, job) + b"".join(
                _bytes(2, _number(1, task) + _bytes(2, address))
                for task, address in sorted(tasks.items())))
            for job, tasks in sorted(self.cluster.items()))
        out = (_bytes(1, cluster) + _bytes(2, self.job_name)
               + _number(3, self.task_index))
        if self.default_session_config:
            out += _bytes(4, self.default_session_config)
        return out + _bytes(5, self.protocol)


# --- What users give --------------------------------------------------------


def _text(value, what):
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise TypeError("%s must be a string, not %r" % (what, value))
    return value


def _tasks(job, tasks):
    if isinstance(tasks, (list, tuple)):
        tasks = dict(enumerate(tasks))
    elif not isinstance(tasks, dict):
        raise TypeError("The tasks for job %r must be a list or a dictionary "
                        "from integers to strings." % job)
    return {int(i): _text(address, "The address of a task")
            for i, address in tasks.items()}


def _jobs(cluster):
    """{job: {task: address}} of any kind of cluster."""
    if hasattr(cluster, "as_dict"):  # tf.train.ClusterSpec
        cluster = cluster.as_dict()
    elif hasattr(cluster, "job") and hasattr(cluster, "SerializeToString"):
        cluster = {job.name: dict(job.tasks) for job in cluster.job}
    if not isinstance(cluster, dict):
        raise TypeError("%r is no cluster" % (cluster,))
    return {_text(job, "A job's name"): _tasks(job, tasks)
            for job, tasks in cluster.items()}


def _config_bytes(config):
    if config is None:
        return b""
    if isinstance(config, bytes):
        return config
    if not hasattr(config, "SerializeToString"):
        raise TypeError("config must be a ConfigProto, not %r" % (config,))
    return config.SerializeToString()


def _from_cluster(cluster, job_name, task_index, protocol, config):
    try:
        jobs = _jobs(cluster)
    except TypeError as e:
        raise TypeError(
            "Could not convert `server_or_cluster_def` to a "
            "`tf.train.ServerDef` or `tf.train.ClusterSpec`.") from e
    if job_name is None:
        if len(jobs) != 1:
            raise ValueError("Must specify an explicit `job_name`.")
        job_name, = jobs
    job_name = _text(job_name, "job_name")
    if task_index is None:
        if job_name not in jobs:
            raise ValueError("No such job in cluster: %r" % job_name)
        if len(jobs[job_name]) != 1:
            raise ValueError("Must specify an explicit `task_index`.")
        task_index, = jobs[job_name]
    return ServerDef(jobs, job_name, operator.index(task_index),
                     "grpc" if protocol is None else
                     _text(protocol, "protocol"), _config_bytes(config))


def _from_proto(given, job_name, task_index, protocol, config):
    """The same ServerDef with what the other arguments override."""
    made = type(given)()
    made.CopyFrom(given)
    if job_name is not None:
        made.job_name = job_name
    if task_index is not None:
        made.task_index = task_index
    made.protocol = protocol or made.protocol or "grpc"
    if isinstance(config, bytes):
        made.default_session_config.MergeFromString(config)
    elif config is not None:
        made.default_session_config.MergeFrom(config)
    return made


def _make_server_def(given, *args):
    if isinstance(given, ServerDef):
        made = _from_cluster(given.cluster, *(
            ours if arg is None else arg for arg, ours in zip(
                args, (given.job_name, given.task_index, given.protocol))),
            args[3])
        made.default_session_config = (
            given.default_session_config + made.default_session_config)
        return made
    if hasattr(given, "job_name") and hasattr(given, "SerializeToString"):
        return _from_proto(given, *args)
    return _from_cluster(given, *args)


# --- The server -------------------------------------------------------------


def _free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Server:
    """One task of a cluster, in this process: tf.train.Server in C.

    Its threads are its own and never touch Python. It serves until stop() or
    the end of the process, also when nobody holds the object any more.
    """

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None,
                 protocol=None, config=None, start=True, state_dir=None,
                 lease=None, job_id=None):
        """Bind the port of this task and, unless told not to, start.

        server_or_cluster_def: a dict {"ps": ["host:port"], "worker": {1:
        "host:port"}}, a tf.train.ClusterSpec, or a ClusterDef or ServerDef
        protocol buffer. job_name, task_index and protocol override what a
        ServerDef says, and may be left out where there is only one choice.
        config: a ConfigProto, the default of all sessions on this server.
        state_dir: where a parameter server keeps who joined and left; "none"
        for in memory only. lease: seconds after which the sessions of a worker
        that is gone are dropped, 0 for never. job_id: a name of the job, so
        that it does not begin with who joined an earlier one on the same
        parameter servers. `muster serve --help` has these.
        """
        self._leave = None
        self._def = _make_server_def(server_or_cluster_def, job_name,
                                     task_index, protocol, config)
        self._server = call(
            _muster.Server, self._def.SerializeToString(),
            None if state_dir is None else os.fspath(state_dir),
            None if job_id is None else str(job_id),
            0 if lease is None else int(lease) or -1)
        if start:
            self.start()

    def start(self):
        """Serve those who connect, also those who did before."""
        call(self._server.start)

    def join(self):
        """Wait until the server has been stopped. Ctrl-C ends the wait."""
        self._server.join()

    def stop(self, grace=GRACE_S):
        """End the server: its calls have so many seconds to finish.

        The port is free again afterwards. TensorFlow's server cannot do this.
        A worker that joined by itself leaves the job first.
        """
        if self._leave:
            leave, self._leave = self._leave, None
            leave()
        self._server.stop(int(grace * 1000))

    @property
    def server_def(self):
        """The ServerDef: TensorFlow's if the program has imported it."""
        proto = sys.modules.get("tensorflow.core.protobuf."
                                "tensorflow_server_pb2")
        if proto and isinstance(self._def, ServerDef):
            self._def = proto.ServerDef.FromString(
                self._def.SerializeToString())
        return self._def

    @property
    def target(self):
        """What tf.compat.v1.Session wants: "grpc://HOST:PORT"."""
        return self._server.target

    @classmethod
    def join_cluster(cls, target, address=None, job_name="worker", config=None,
                     start=True, timeout=TIMEOUT_S):
        """A worker that joins a job that runs: index and cluster are asked for.

        target: "host:port" of a parameter server of muster's. address: where
        this worker is, as others call it; ":2222" for the host that is seen
        from there; None for that, too, and a port that is free. The index is
        that in server_def.task_index. stop() leaves the job.
        """
        target = _text(target, "target")
        job_name = _text(job_name, "job_name")
        if address is None:
            address = ":%d" % _free_port()
        task, address, members = call(
            _muster.join_cluster, target, _text(address, "address"), job_name,
            milliseconds(timeout))
        process = os.getpid()
        cluster = {}
        for job, i, at, *_ in members:
            if at:
                cluster.setdefault(job, {})[i] = at

        def leave():
            if os.getpid() != process:
                return  # a child of fork() has no server
            try:
                _muster.remove_worker(target, task, job_name, address,
                                      LEAVE_MS)
            except _muster.Error:
                pass  # it is seen to be gone

        try:
            server = cls(cluster, job_name, task, config=config, start=start)
        except BaseException:
            leave()
            raise
        server._leave = leave
        return server

    @staticmethod
    def create_local_server(config=None, start=True):
        """A cluster of one task on a free port, for this host alone."""
        return Server({"localhost": ["localhost:0"]}, protocol="grpc",
                      config=config, start=start)
