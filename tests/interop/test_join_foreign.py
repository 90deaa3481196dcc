"""A worker of ours joins a running job whose ps are TensorFlow's.

The ps were started with two workers in their list and are never told of the
third: our master tells them, for its own sessions, where its task is.
"""
import pytest

import cluster as cl


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Two ps of TensorFlow's, and a third worker that they do not know."""
    with cl.Cluster(tmp_path_factory.mktemp("foreign"),
                    ("tensorflow", "tensorflow"), 2) as c:
        port = cl.Port()
        workers = c.hosts("worker") + "," + port.address
        task = cl.Task(
            "worker2", [cl.muster(), "serve", "--ps_hosts=" + c.hosts("ps"),
                        "--worker_hosts=" + workers, "--job_name=worker",
                        "--task_index=2"], c.directory / "worker2.log").start()
        cl.wait("worker2 listens", port.listening, tasks=[task])
        c.joined, c.joined_workers = port.address, workers
        yield c
        task.stop(cl.signal.SIGTERM)
        assert task.code == 0
        port.release()


def test_it_trains_beside_a_worker_of_theirs(job):
    """Both count the same steps, and none of the ps restarts."""
    job.train(0, "--steps=2000", "--device_filters")
    job.reached(0, 10)
    out = job.directory / "joined.jsonl"
    joined = cl.Task(
        "joined", [cl.python(), cl.TRAINER, "--ps_hosts=" + job.hosts("ps"),
                   "--worker_hosts=" + job.joined_workers,
                   "--job_name=worker", "--task_index=2",
                   "--master=grpc://" + job.joined, "--loss_log=%s" % out,
                   "--steps=2000", "--device_filters"],
        job.directory / "joined.log",
        env={"PYTHONPATH": cl.package()}).start()
    job.workers.append(joined)
    job.finish()
    lines = [cl.json.loads(x) for x in out.read_text().splitlines()]
    assert len(lines) > 5
    steps = {s["step"] for s in job.steps(0)}
    assert len(steps) < 2000  # the rest was done by the other
    assert lines[-1]["loss"] < lines[0]["loss"] * 2


def test_variables_are_those_of_the_job(job):
    tf = pytest.importorskip("tensorflow.compat.v1")
    filters = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:2"])
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            v = tf.get_variable("joined", initializer=1., use_resource=True)
        with tf.device("/job:worker/task:2"):
            new = v.read_value() * 3.
        store = v.assign(new)
        with tf.Session("grpc://" + job.joined, config=filters) as s:
            s.run(v.initializer)
            s.run(store)  # the ps fetches it from a task it was not told of
    theirs = tf.ConfigProto(device_filters=["/job:ps"])
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            v = tf.get_variable("joined", initializer=1., use_resource=True)
        with tf.Session("grpc://" + job.ports["ps"][0].address,
                        config=theirs) as s:
            assert s.run(v.read_value()) == 3.
