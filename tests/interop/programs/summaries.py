"""Write summaries with the ps's own ops, and read the files as TensorBoard does.

Two files: one by the writer ops on the ps, one by this worker's FileWriter out
of summaries that ops on the ps made.  Answer: {"ps": events, "worker": events},
an event as [step, [[tag, kind, what is in it]]].
"""
import argparse
import glob
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

STEPS = 3
IMAGES = np.linspace(-1, 1, 2 * 4 * 5 * 3, dtype=np.float32).reshape(
    2, 4, 5, 3)
SOUND = np.sin(np.arange(400, dtype=np.float32)).reshape(1, 200, 2)


def content(v):
    """What a value says, in few words."""
    kind = v.WhichOneof("value")
    if kind == "simple_value":
        return kind, v.simple_value
    if kind == "histo":
        return kind, [v.histo.num, v.histo.min, v.histo.max,
                      sum(v.histo.bucket)]
    if kind == "image":
        pixels = tf.io.decode_png(v.image.encoded_image_string)
        with tf.Session() as session:
            shape = list(session.run(pixels).shape)
        return kind, shape
    if kind == "audio":
        return kind, [v.audio.sample_rate, v.audio.num_channels,
                      v.audio.length_frames]
    return kind, tf.make_ndarray(v.tensor).tolist()


def read(folder):
    events = []
    for path in sorted(glob.glob(os.path.join(folder, "events.out.*"))):
        for event in tf.train.summary_iterator(path):
            if event.HasField("file_version"):
                events.append([0, event.file_version])
            if event.HasField("summary"):
                events.append([event.step, [[v.tag, *content(v)]
                                            for v in event.summary.value]])
    return events


def writer_ops(raw, folder, step):
    """All of them, one after the other."""
    w = raw.SummaryWriter(shared_name="a_writer")
    create = raw.CreateSummaryFileWriter(
        writer=w, logdir=folder, max_queue=10, flush_millis=100000,
        filename_suffix=".v2")
    writes = [
        lambda: raw.WriteScalarSummary(writer=w, step=step, tag="scalar",
                                       value=tf.cast(step, tf.float32)),
        lambda: raw.WriteHistogramSummary(writer=w, step=step, tag="histo",
                                          values=[1., 2., 3.]),
        lambda: raw.WriteImageSummary(writer=w, step=step, tag="image",
                                      tensor=IMAGES, bad_color=np.array(
                                          [255, 0, 0, 255], np.uint8)),
        lambda: raw.WriteAudioSummary(writer=w, step=step, tag="audio",
                                      tensor=SOUND, sample_rate=8000.),
        lambda: raw.WriteSummary(writer=w, step=step, tag="tensor",
                                 tensor=[[1, 2]], summary_metadata="")]
    done = create
    for write in writes:
        with tf.control_dependencies([done]):
            done = write()
    with tf.control_dependencies([done]):
        return raw.FlushSummaryWriter(writer=w), w


def summaries(step):
    return tf.summary.merge([
        tf.summary.scalar("scalar", tf.cast(step, tf.float32)),
        tf.summary.histogram("histo", [1., 2., 3.]),
        tf.summary.image("image", IMAGES),
        tf.summary.audio("audio", SOUND, 8000.),
        tf.summary.tensor_summary("tensor", [[1, 2]])])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ps_hosts")
    p.add_argument("--worker_hosts")
    p.add_argument("--task_index", type=int)
    p.add_argument("--out")
    a = p.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": a.ps_hosts.split(","),
                                    "worker": a.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name="worker",
                             task_index=a.task_index)
    by_ps, by_worker = a.out + ".ps", a.out + ".worker"
    step = tf.placeholder(tf.int64, [])
    with tf.device("/job:ps/task:0"):
        write, w = writer_ops(tf.raw_ops, by_ps, step)
        close = tf.raw_ops.CloseSummaryWriter(writer=w)
        merged = summaries(step)
    file = tf.summary.FileWriter(by_worker)
    config = tf.ConfigProto(
        device_filters=["/job:ps", "/job:worker/task:%d" % a.task_index])
    with tf.Session(server.target, config=config) as session:
        for i in range(STEPS):
            session.run(write, {step: i})
            file.add_summary(session.run(merged, {step: i}), i)
        session.run(close)
    file.close()
    tf.reset_default_graph()
    with open(a.out, "w") as f:
        json.dump({"ps": read(by_ps), "worker": read(by_worker)}, f)


if __name__ == "__main__":
    main()
