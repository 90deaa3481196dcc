"""The package `muster` beside tf.train.Server, in one process.

Run by ../test_python.py, with the package in PYTHONPATH.  What a server
refuses is compared with what TensorFlow's refuses, in the same run.  What
ends a process, or must not know TensorFlow, runs in a process of its own.
"""
import faulthandler
import gc
import os
import signal
import socket
import subprocess
import sys
import threading

import muster
import pytest
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
faulthandler.dump_traceback_later(300, exit=True)  # says where it hangs
ONE = {"w": ["localhost:0"]}


@pytest.fixture
def serve():
    """serve(...) is muster.Server(...), stopped with the test."""
    made = []

    def make(*args, **kwargs):
        made.append(muster.Server(*args, **kwargs))
        return made[-1]

    yield make
    for server in made:
        server.stop(0)


def compute(target):
    with tf.Graph().as_default(), tf.Session(target) as session:
        return session.run(tf.constant(20) + 1)


class Port:
    """A port that is the test's: bound, not listening."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("", 0))
        self.number = self.socket.getsockname()[1]

    def __str__(self):
        return "localhost:%d" % self.number


def run(text, *args, **kwargs):
    """Run a program of its own; its output, when it ended with 0."""
    done = subprocess.run([sys.executable, "-c", text, *args],
                          capture_output=True, text=True, timeout=120,
                          **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- What it is given -------------------------------------------------------


def cluster_def():
    return tf.train.ClusterSpec(ONE).as_cluster_def()


GIVEN = {
    "dict": lambda: ONE,
    "dict of dicts": lambda: {"w": {0: "localhost:0"}},
    "ClusterSpec": lambda: tf.train.ClusterSpec(ONE),
    "ClusterDef": cluster_def,
    "ServerDef": lambda: tf.train.ServerDef(
        cluster=cluster_def(), job_name="w", task_index=0, protocol="grpc"),
    "our ServerDef": lambda: muster.ServerDef({"w": {0: "localhost:0"}}, "w",
                                              0),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_cluster_is_given_in_any_way(serve, kind):
    server = serve(GIVEN[kind](), job_name="w", task_index=0)
    assert compute(server.target) == 21
    made = server.server_def
    assert isinstance(made, tf.train.ServerDef)
    assert (made.job_name, made.task_index, made.protocol) == ("w", 0, "grpc")
    assert made.cluster.job[0].tasks[0] == "localhost:0"


def test_server_def_is_as_tensorflow_makes_it(serve):
    args = ({"w": {2: "localhost:0"}, "a": ["localhost:1", "localhost:2"]},)
    kwargs = {"job_name": "w", "config": tf.ConfigProto(
        device_count={"CPU": 1}, inter_op_parallelism_threads=2,
        gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.1))}
    assert (serve(*args, **kwargs).server_def
            == tf.train.Server(*args, **kwargs).server_def)


def test_arguments_override_a_server_def(serve):
    given = tf.train.ServerDef(cluster=tf.train.ClusterSpec(
        {"a": ["localhost:1"], "w": ["localhost:1", "localhost:0"]}
    ).as_cluster_def(), job_name="a", protocol="grpc")
    given.default_session_config.allow_soft_placement = True
    config = tf.ConfigProto(log_device_placement=True)
    made = serve(given, job_name="w", task_index=1, config=config).server_def
    assert (made.job_name, made.task_index) == ("w", 1)
    assert made.default_session_config.allow_soft_placement
    assert made.default_session_config.log_device_placement
    assert given.job_name == "a"


REFUSED = {
    "no cluster": lambda s: s(None),
    "a number": lambda s: s(3),
    "empty": lambda s: s({}),
    "tasks that are no list": lambda s: s({"w": "localhost:0"}),
    "address that is no text": lambda s: s({"w": [1]}),
    "which job": lambda s: s({**ONE, "v": ["localhost:0"]}),
    "which task": lambda s: s({"w": ["localhost:0", "localhost:1"]}),
    "no such job": lambda s: s(ONE, job_name="x", task_index=0),
    "no such job, no task": lambda s: s(ONE, job_name="x"),
    "no such task": lambda s: s(ONE, job_name="w", task_index=3),
    "negative task": lambda s: s(ONE, job_name="w", task_index=-1),
    "job that is no text": lambda s: s(ONE, job_name=3, task_index=0),
    "task that is no number": lambda s: s(ONE, job_name="w", task_index="0"),
    "no port": lambda s: s({"w": ["localhost"]}),
    "port that is no number": lambda s: s({"w": ["localhost:http"]}),
    "protocol": lambda s: s(ONE, protocol="carrier-pigeon"),
    "config": lambda s: s(ONE, config=3),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses_what_tensorflow_refuses(what):
    with pytest.raises(Exception) as theirs:
        REFUSED[what](tf.train.Server)
    with pytest.raises(theirs.type) as ours:
        REFUSED[what](muster.Server)
    assert ours.type is theirs.type
    if theirs.type is not TypeError and what != "protocol":
        assert str(ours.value) == str(theirs.value)


def test_taken_port_is_an_unknown_error(serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cluster = {"w": ["localhost:%d" % taken.getsockname()[1]]}
        for kind in (tf.train.Server, muster.Server):
            with pytest.raises(tf.errors.UnknownError,
                               match="Could not start gRPC server"):
                kind(cluster)


def test_target_has_the_host_of_the_task(serve):
    for host in ("localhost", "127.0.0.1", "some.where"):
        address = "%s:%d" % (host, Port().number)
        assert serve({"w": [address]}).target == "grpc://" + address
        assert tf.train.Server({"w": [host + ":0"]}).target.startswith(
            "grpc://%s:" % host)


def test_local_server_is_for_this_host_alone(serve):
    server = muster.Server.create_local_server()
    port = int(server.target.split(":")[-1])
    assert server.target == "grpc://localhost:%d" % port
    assert server.server_def == tf.train.Server.create_local_server().server_def
    with open("/proc/net/tcp") as f:
        mine = [line.split()[1] for line in f
                if line.split()[1].endswith(":%04X" % port)
                and line.split()[3] == "0A"]
    assert mine == ["0100007F:%04X" % port]
    server.stop()


# --- What it does -----------------------------------------------------------


def pair(kinds):
    ports = [Port(), Port()]
    cluster = tf.train.ClusterSpec({"w": [str(p) for p in ports]})
    return [kind(cluster, job_name="w", task_index=i)
            for i, kind in enumerate(kinds)]


@pytest.mark.parametrize("kinds", [
    (muster.Server, muster.Server),
    (muster.Server, tf.train.Server),
    (tf.train.Server, muster.Server)],
    ids=["both ours", "the first ours", "the second ours"])
def test_two_servers_in_one_process_are_a_cluster(kinds):
    servers = pair(kinds)
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            v = tf.Variable([1.0, 2.0], use_resource=True)
        with tf.device("/job:w/task:0"):
            more = tf.constant([10.0, 10.0]) * 2.0
        add = v.assign_add(more)
        for server, want in zip(servers, ([21, 22], [41, 42])):
            with tf.Session(server.target) as session:
                if server is servers[0]:
                    session.run(v.initializer)
                session.run(add)
                assert session.run(v).tolist() == want
    for server in servers:
        if isinstance(server, muster.Server):
            server.stop()


@pytest.mark.parametrize("kind", [muster.Server, tf.train.Server])
def test_config_is_the_default_of_sessions(kind):
    """Soft placement, from the server's config: the device is not there."""
    server = kind(ONE, config=tf.ConfigProto(
        allow_soft_placement=True, intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1))
    with tf.Graph().as_default(), tf.device("/device:GPU:7"):
        x = tf.constant(3.0) * 2.0
        with tf.Session(server.target) as session:
            assert session.run(x) == 6.0


def test_clients_wait_for_a_server_that_is_not_started(serve):
    server = serve(ONE, start=False)
    got = []
    thread = threading.Thread(
        target=lambda: got.append(compute(server.target)))
    thread.start()
    thread.join(0.2)
    assert not got
    server.start()
    thread.join()
    assert got == [21]
    server.start()  # again: nothing happens


def test_join_ends_when_another_thread_stops(serve):
    server = serve(ONE)
    joining = threading.Event()
    thread = threading.Thread(target=lambda: (joining.set(), server.join()))
    thread.start()
    joining.wait()
    assert thread.is_alive()
    server.stop()
    thread.join()
    server.join()
    with pytest.raises(tf.errors.FailedPreconditionError, match="stopped"):
        server.start()


def test_stop_ends_steps_that_wait(serve):
    cluster = {"w": [str(Port())]}
    server = serve(cluster)
    said = []

    def wait():
        try:
            session.run(get)
        except tf.errors.OpError as e:
            said.append(e)

    with tf.Graph().as_default():
        begun = tf.FIFOQueue(1, tf.float32, shapes=[])
        never = tf.FIFOQueue(1, tf.float32, shapes=[])
        with tf.control_dependencies([begun.enqueue(1.0)]):
            get = never.dequeue()
        has_begun = begun.dequeue()
        session = tf.Session(server.target)
        thread = threading.Thread(target=wait)
        thread.start()
        session.run(has_begun)
        server.stop(0)
        thread.join()
    assert isinstance(said[0], (tf.errors.UnavailableError,
                                tf.errors.AbortedError,
                                tf.errors.CancelledError)), said
    # A client waits until it has told a master that its session is over.
    serve(cluster)
    with pytest.raises(tf.errors.AbortedError):
        session.close()


@pytest.mark.parametrize("kind", [muster.Server, tf.train.Server])
def test_config_has_the_timeout_of_steps(kind):
    server = kind(ONE, config=tf.ConfigProto(operation_timeout_in_ms=500))
    with tf.Graph().as_default():
        get = tf.FIFOQueue(1, tf.float32, shapes=[]).dequeue()
        with tf.Session(server.target) as session:
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(get)


def test_port_is_free_after_stop(serve):
    port = Port()
    for _ in range(3):
        server = serve({"w": [str(port)]})
        assert compute(server.target) == 21
        server.stop()


def test_server_serves_without_its_object():
    """As TensorFlow's: a program may keep only the target."""
    target = muster.Server.create_local_server().target
    gc.collect()
    assert compute(target) == 21


# --- Processes of their own -------------------------------------------------


def test_needs_no_tensorflow():
    out = run("""if True:
        import muster, sys
        server = muster.Server({"w": ["localhost:0"]})
        print(server.server_def.job_name, server.server_def.task_index)
        for bad, kind in ((["localhost"], ValueError),
                          ([server.target[7:]], RuntimeError)):
            try:
                muster.Server({"w": bad})
            except kind as e:
                assert type(e) is kind
                print(e)
        server.stop()
        assert not any(m.startswith(("tensorflow", "google", "numpy"))
                       for m in sys.modules)""")
    assert out.startswith("w 0\nCould not parse port for local server from "
                          '"localhost".\nCould not start gRPC server')


def test_stopped_servers_leave_nothing_behind():
    """Neither threads nor open files, when one was stopped or never began."""
    run("""if True:
        import muster, os
        def count():
            return [len(os.listdir("/proc/self/" + what))
                    for what in ("task", "fd")]
        muster.Server.create_local_server().stop()
        before = count()
        for i in range(50):
            muster.Server.create_local_server(start=False)
            server = muster.Server.create_local_server()
            server.stop()
            del server
        assert count() == before, (count(), before)""")


@pytest.mark.parametrize("imports", ["", "import tensorflow"],
                         ids=["alone", "beside TensorFlow"])
def test_ctrl_c_ends_join(imports):
    process = subprocess.Popen([sys.executable, "-c", imports + """
import muster, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
server = muster.Server.create_local_server()
try:
    print("ready", flush=True)
    server.join()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n" and process.returncode == 0


def test_child_of_fork_ends():
    out = run("""if True:
        import muster, os, sys
        server = muster.Server.create_local_server()
        pid = os.fork()
        if not pid:
            server.join()
            server.stop()
            other = muster.Server.create_local_server()
            assert other.target != server.target
            other.stop()
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        server.stop()""")
    assert out == "7\n"


@pytest.mark.parametrize("kept", ["session", "server", "both"])
def test_process_ends_with_a_session_open(kept):
    """Whatever is collected first, nothing waits for the other."""
    run("""if True:
        import muster, sys
        import tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
        server = muster.Server.create_local_server()
        session = tf.Session(server.target)
        session.run(tf.constant(1))
        if sys.argv[1] == "session":
            del server
        elif sys.argv[1] == "server":
            del session
        """, kept)
