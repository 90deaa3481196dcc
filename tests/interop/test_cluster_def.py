"""Sessions that bring their cluster along: ConfigProto.cluster_def.

The master is a server of ours that was started under another name; the other
tasks are ps of ours or of TensorFlow.
"""
import pytest

import cluster as cl

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="module")
def tf():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    return tf


@pytest.fixture(scope="module", params=["muster", "tensorflow"])
def tasks(request, tmp_path_factory):
    """Two ps of a kind that know of no worker but themselves."""
    folder = tmp_path_factory.mktemp("given")
    with cl.Cluster(folder, (request.param, request.param), 1) as c:
        yield c


@pytest.fixture(scope="module")
def boot(tasks, tmp_path_factory):
    """A server of ours whose cluster is itself, as job `boot`."""
    port = cl.Port()
    task = cl.Task("boot", [cl.muster(), "serve",
                            "--cluster=boot=" + port.address,
                            "--job_name=boot", "--task_index=0"],
                   tmp_path_factory.mktemp("boot") / "log").start()
    cl.wait("boot listens", port.listening, tasks=[task])
    yield port.address
    task.stop(cl.signal.SIGTERM)
    assert task.code == 0
    port.release()


def config(tf, tasks, share, **own):
    c = tf.ConfigProto()
    job = c.cluster_def.job.add(name="ps")
    for i, p in enumerate(tasks.ports["ps"]):
        job.tasks[i] = p.address
    for name, where in own.items():
        job = c.cluster_def.job.add(name=name)
        for i, address in where.items():
            job.tasks[i] = address
    c.experimental.share_session_state_in_clusterspec_propagation = share
    return c


@pytest.fixture
def graph(tf):
    with tf.Graph().as_default() as g:
        yield g


def test_the_session_has_the_names_of_its_cluster(tf, graph, tasks, boot):
    with tf.device("/job:ps/task:1"):
        a = tf.constant(2.) * 3.
    with tf.device("/job:worker/task:7"):
        b = a + 1.
    with tf.device("/job:ps/task:0"):
        c = b * 2.
    with tf.Session("grpc://" + boot,
                    config=config(tf, tasks, False, worker={7: boot})) as s:
        assert s.run([a, b, c]) == [6., 7., 14.]
        assert sorted(d.name for d in s.list_devices()) == [
            "/job:%s/replica:0/task:%d/device:CPU:0" % t
            for t in (("ps", 0), ("ps", 1), ("worker", 7))]
        meta = tf.RunMetadata()
        s.run(c, options=tf.RunOptions(
            trace_level=tf.RunOptions.FULL_TRACE), run_metadata=meta)
    assert any("/job:worker/replica:0/task:7" in d.device
               for d in meta.step_stats.dev_stats)


def test_state_is_shared_only_if_asked_for(tf, graph, tasks, boot):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("given", initializer=1., use_resource=True)
    with tf.device("/job:worker/task:2"):
        grown = tf.identity(v.read_value()) + 1.
    set_it = v.assign(grown)
    target = "grpc://" + boot
    shared = config(tf, tasks, True, worker={2: boot})
    alone = config(tf, tasks, False, worker={2: boot})
    with tf.Session(target, config=shared) as s:
        s.run(v.initializer)
        s.run(set_it)
    with tf.Session(target, config=shared) as s:
        assert s.run(v) == 2.
    with tf.Session(target, config=alone) as s:
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(v)
        s.run(v.initializer)
        assert s.run(v) == 1.
    with tf.Session(target, config=shared) as s:
        assert s.run(v) == 2.


def test_bad_clusters_are_refused(tf, graph, tasks, boot):
    a = tf.constant(1.)

    def refused(**own):
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            with tf.Session("grpc://" + boot,
                            config=config(tf, tasks, False, **own)) as s:
                s.run(a)
        return e.value.message

    assert "The ClusterSpec names the job and task index to be the same " \
        "names that were provided when the server booted. This is currently " \
        "not allowed. Job: boot, task index: 0" in refused(boot={0: boot})
    assert "Found multiple matching tasks that correspond to to the master. " \
        "Master target: 'grpc://%s'. ClusterDef: " % boot \
        in refused(worker={0: boot, 1: boot})
    assert "no task at the session's target" in refused()
    with tf.Session("grpc://" + boot) as s:
        assert s.run(a) == 1.
