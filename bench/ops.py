"""Single ops: ours beside TensorFlow's, which uses oneDNN.

Two servers, one of each kind, run the same graphs for a TensorFlow client. A
graph holds an op many times, one after the other, on variables of the server,
so that the call itself does not count; nothing is fetched. With one thread
both servers are held to one processor, with more each has so many threads.
On a machine that others use too, --cpu compares the processor time that the
servers took instead of what the clock says.

    ops.py --threads 1 --only conv
"""
import argparse
import functools
import glob
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent /
                       "tests" / "interop"))

import figures
import cluster as cl

KINDS = ("muster", "tensorflow")
TARGET = 0.03  # seconds that a graph should take


def serve(port, threads):
    """TensorFlow's server, in a process of its own."""
    import tensorflow
    tf = tensorflow.compat.v1
    config = tf.ConfigProto(intra_op_parallelism_threads=threads,
                            inter_op_parallelism_threads=1)
    tf.train.Server({"worker": ["127.0.0.1:%d" % port]}, job_name="worker",
                    task_index=0, config=config).join()


def cases(tf):
    """(name, shapes, build): build() makes the op once.

    Its arguments are variables of the server of those shapes, filled with
    noise; a shape may end with a type, else they are of float32.
    """
    r = tf.raw_ops
    out = []

    def case(name, *shapes):
        def decorate(build):
            out.append((name, shapes, build))
        return decorate

    for m, k, n in ((32, 784, 128), (128, 784, 512), (128, 1024, 1024),
                    (32, 128, 10), (1024, 1024, 1024)):
        case("matmul %dx%dx%d" % (m, k, n), (m, k), (k, n))(
            lambda a, b: r.MatMul(a=a, b=b))
    case("matmul 32x128x512 (LSTM)", (32, 128), (128, 512))(
        lambda a, b: r.MatMul(a=a, b=b))
    case("matmul 128x1024x1024 b^T", (128, 1024), (1024, 1024))(
        lambda a, b: r.MatMul(a=a, b=b, transpose_b=True))
    case("matmul 784x128 a^T", (32, 784), (32, 128))(
        lambda a, b: r.MatMul(a=a, b=b, transpose_a=True))
    for name in ("bfloat16", "half"):
        case("matmul 128x1024x1024 " + name, (128, 1024, name),
             (1024, 1024, name))(lambda a, b: r.MatMul(a=a, b=b))
    case("batch matmul 64x64x64 of 32", (32, 64, 64), (32, 64, 64))(
        lambda a, b: r.BatchMatMulV2(x=a, y=b))
    for n, h, c, f, s in ((32, 28, 64, 64, 1), (32, 28, 64, 64, 2),
                          (8, 56, 64, 64, 1), (32, 7, 256, 256, 1),
                          (32, 28, 1, 32, 1)):
        o = -(-h // s)
        win = dict(strides=[1, s, s, 1], padding="SAME")
        what = "3x3 %dx%dx%dx%d to %d%s" % (n, h, h, c, f,
                                            " stride 2" if s > 1 else "")
        x, w, y = (n, h, h, c), (3, 3, c, f), (n, o, o, f)
        case("conv " + what, x, w)(
            lambda x, w, win=win: r.Conv2D(input=x, filter=w, **win))
        if c > 1:
            case("conv input " + what, w, y)(
                lambda w, y, x=x, win=win: r.Conv2DBackpropInput(
                    input_sizes=x, filter=w, out_backprop=y, **win))
        case("conv filter " + what, x, y)(
            lambda x, y, w=w, win=win: r.Conv2DBackpropFilter(
                input=x, filter_sizes=w, out_backprop=y, **win))
    case("conv 1x1 32x28x28x64 to 64", (32, 28, 28, 64), (1, 1, 64, 64))(
        lambda x, w: r.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1],
                              padding="SAME"))
    case("depthwise 3x3 32x28x28x64", (32, 28, 28, 64), (3, 3, 64, 1))(
        lambda x, w: r.DepthwiseConv2dNative(
            input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME"))
    image, half = (32, 28, 28, 64), (32, 14, 14, 64)
    same = dict(strides=[1, 1, 1, 1], padding="SAME")
    case("depthwise input 3x3 32x28x28x64", (3, 3, 64, 1), image)(
        lambda w, y: r.DepthwiseConv2dNativeBackpropInput(
            input_sizes=image, filter=w, out_backprop=y, **same))
    case("depthwise filter 3x3 32x28x28x64", image, image)(
        lambda x, y: r.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=(3, 3, 64, 1), out_backprop=y, **same))
    win = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    case("max pool 2x2", image)(lambda x: r.MaxPool(input=x, **win))
    case("max pool 3x3 stride 2", image)(lambda x: r.MaxPool(
        input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"))
    case("max pool 2x2 grad", image, half, half)(
        lambda x, y, g: r.MaxPoolGrad(orig_input=x, orig_output=y, grad=g,
                                      **win))
    over = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    case("max pool 3x3 stride 2 grad", image, half, half)(
        lambda x, y, g: r.MaxPoolGrad(orig_input=x, orig_output=y, grad=g,
                                      **over))
    case("avg pool 2x2", image)(lambda x: r.AvgPool(value=x, **win))
    case("avg pool 2x2 grad", half)(
        lambda g: r.AvgPoolGrad(orig_input_shape=image, grad=g, **win))
    case("batch norm training", image, (64,), (64,))(
        lambda x, a, b: r.FusedBatchNormV3(
            x=x, scale=a, offset=b, mean=[], variance=[]).y)
    case("batch norm inference", image, (64,), (64,), (64,), (64,))(
        lambda x, a, b, m, v: r.FusedBatchNormV3(
            x=x, scale=a, offset=b, mean=m, variance=v,
            is_training=False).y)
    case("batch norm grad", image, image, (64,), (64,), (64,))(
        lambda g, x, a, m, v: r.FusedBatchNormGradV3(
            y_backprop=g, x=x, scale=a, reserve_space_1=m, reserve_space_2=v,
            reserve_space_3=a).x_backprop)
    case("bias add", image, (64,))(lambda x, b: r.BiasAdd(value=x, bias=b))
    case("bias add grad", image)(lambda x: r.BiasAddGrad(out_backprop=x))
    for rows, cols in ((128, 10), (128, 1000), (32, 32000)):
        case("softmax %dx%d" % (rows, cols), (rows, cols))(
            lambda x: r.Softmax(logits=x))
    case("sparse cross entropy 128x1000", (128, 1000))(
        lambda x: r.SparseSoftmaxCrossEntropyWithLogits(
            features=x, labels=list(range(128))).loss)
    case("cross entropy 128x1000", (128, 1000), (128, 1000))(
        lambda x, y: r.SoftmaxCrossEntropyWithLogits(
            features=x, labels=y).loss)
    ids = [i * 7919 % 20000 for i in range(768)]
    case("gather 768 rows of 16", (20000, 16))(
        lambda x: r.GatherV2(params=x, axis=0, indices=ids))
    case("unsorted segment sum 768x16", (768, 16))(
        lambda u: r.UnsortedSegmentSum(data=u, num_segments=700, segment_ids=[
            i % 700 for i in range(768)]))
    case("gather 4096 rows of 64", (50000, 64))(
        lambda x: r.GatherV2(params=x, axis=0, indices=[
            i * 7919 % 50000 for i in range(4096)]))
    case("scatter 4096 rows of 64", (4096, 64))(
        lambda u: r.ScatterNd(updates=u, shape=[50000, 64], indices=[
            [i * 7919 % 50000] for i in range(4096)]))
    case("unsorted segment sum 4096x64", (4096, 64))(
        lambda u: r.UnsortedSegmentSum(data=u, num_segments=512, segment_ids=[
            i * 7919 % 512 for i in range(4096)]))
    for label, axes in (("all", [0, 1]), ("rows", [1]), ("columns", [0])):
        case("sum 1024x1024 " + label, (1024, 1024))(
            lambda x, axes=axes: r.Sum(input=x, axis=axes))
    case("max 1024x1024 rows", (1024, 1024))(lambda x: r.Max(input=x, axis=1))
    case("add 1M", (1 << 20,), (1 << 20,))(lambda x, y: r.AddV2(x=x, y=y))
    case("chain of 4 on 1M", (1 << 20,), (1 << 20,))(
        lambda x, y: r.Relu(features=r.Sub(x=r.Mul(x=r.AddV2(x=x, y=y), y=y),
                                           y=x)))
    case("tanh 1M", (1 << 20,))(lambda x: r.Tanh(x=x))
    case("exp 1M", (1 << 20,))(lambda x: r.Exp(x=x))
    case("transpose 1024x1024", (1024, 1024))(
        lambda x: r.Transpose(x=x, perm=[1, 0]))
    out.append(("Adam 10M parameters", None, adam))
    for n, width in ((768, 16), (4096, 1)):
        for name, op in (("sparse Adagrad", adagrad), ("ScatterUpdate",
                                                       update)):
            out.append(("%s %d rows of %d" % (name, n, width), None,
                        functools.partial(op, n=n, width=width)))
    return out


def typed(tf, shape):
    """A shape and its type apart."""
    if isinstance(shape[-1], str):
        return shape[:-1], tf.as_dtype(shape[-1])
    return shape, tf.float32


class Side:
    """A server and a session on it."""

    def __init__(self, tf, kind, directory, threads):
        self.kind, self.threads = kind, threads
        self.port = cl.Port()
        port = int(self.port.address.split(":")[1])
        argv = [cl.muster(), "serve", "--cluster=worker=127.0.0.1:%d" % port,
                "--job_name=worker", "--threads=%d" % threads] \
            if kind == "muster" else [
                sys.executable, __file__, "--serve=%d" % port,
                "--threads=%d" % threads]
        if threads == 1:
            argv = ["taskset", "-c", "0", *argv]
        self.task = cl.Task(kind, argv, directory / kind).start()
        self.target = "grpc://127.0.0.1:%d" % port
        cl.wait(kind + " listens", self.port.listening, 60,
                tasks=[self.task])
        self.config = tf.ConfigProto()
        rewrite = self.config.graph_options.rewrite_options
        rewrite.disable_meta_optimizer = True
        self.config.graph_options.optimizer_options.opt_level = -1

    def prepare(self, tf, shapes, build, copies):
        """A function that runs so many copies, one after the other."""
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            if shapes is None:
                targets = build(tf, copies)
            else:
                noise = tf.random_uniform_initializer(0.1, 1)
                # Variables outlive their sessions, and one of another type
                # must not find the name taken.
                xs = [tf.get_variable("%s%d" % (t.name, i), s, t,
                                      initializer=noise, use_resource=True)
                      for i, (s, t) in enumerate(typed(tf, shape)
                                                 for shape in shapes)]
                values = [x.read_value() for x in xs]
                targets, last = [], []
                for _ in range(copies):
                    with tf.control_dependencies(last):
                        targets.append(build(*values).op)
                    last = [targets[-1]]
            session = tf.Session(self.target, config=self.config)
            session.run(tf.global_variables_initializer())
            return session, session.make_callable(targets)

    def processor_time(self):
        """Seconds that all threads of the server have run."""
        total = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.task.pid):
            try:
                total += int(pathlib.Path(path).read_text().split()[0])
            except OSError:  # the thread has ended
                pass
        return total * 1e-9

    def close(self):
        self.task.stop()
        self.port.release()


def adam(tf, copies):
    n = 10 * 1000 * 1000
    var, m, v = (tf.get_variable(s, [n], use_resource=True,
                                 initializer=tf.zeros_initializer())
                 for s in "wmv")
    grad = tf.get_variable("g", [n], use_resource=True,
                           initializer=tf.ones_initializer()).read_value()
    return one_by_one(tf, copies, lambda: tf.raw_ops.ResourceApplyAdam(
        var=var.handle, m=m.handle, v=v.handle, beta1_power=0.9,
        beta2_power=0.999, lr=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8,
        grad=grad))


def one_by_one(tf, copies, make):
    """So many ops, each after the one before."""
    targets, last = [], []
    for _ in range(copies):
        with tf.control_dependencies(last):
            targets.append(make())
        last = [targets[-1]]
    return targets


def rows_of(tf, n, width):
    """A table, new values for n rows of it, and which they are."""
    table, other = (tf.get_variable(s, [20000, width], use_resource=True,
                                    initializer=tf.ones_initializer())
                    for s in "ta")
    values = tf.get_variable("v", [n, width], use_resource=True,
                             initializer=tf.ones_initializer()).read_value()
    ids = tf.constant([i * 7919 % 20000 for i in range(n)])
    return table, other, values, ids


def adagrad(tf, copies, n, width):
    table, sums, values, ids = rows_of(tf, n, width)
    return one_by_one(tf, copies, lambda: tf.raw_ops.ResourceSparseApplyAdagrad(
        var=table.handle, accum=sums.handle, lr=0.01, grad=values,
        indices=ids))


def update(tf, copies, n, width):
    table, _, values, ids = rows_of(tf, n, width)
    return one_by_one(tf, copies, lambda: tf.raw_ops.ResourceScatterUpdate(
        resource=table.handle, indices=ids, updates=values))


def measure(run, seconds, clock=time.perf_counter):
    """The mean time of a run, by that clock."""
    run()
    runs, end, start = 0, time.perf_counter() + seconds, clock()
    while True:
        run()
        runs += 1
        if time.perf_counter() > end:
            return (clock() - start) / runs


def copies_for(tf, side, shapes, build):
    session, run = side.prepare(tf, shapes, build, 4)
    took = measure(run, 0.02)
    session.close()
    return max(4, min(400, int(4 * TARGET / took)))


def bench(tf, threads, args, directory):
    sides = [Side(tf, kind, directory, threads) for kind in KINDS]
    rows = []
    for name, shapes, build in cases(tf):
        if args.only and args.only not in name:
            continue
        try:
            copies = copies_for(tf, sides[1], shapes, build)
            runs = [side.prepare(tf, shapes, build, copies) for side in sides]
        except tf.errors.OpError as e:
            figures.say("  %s: %s" % (name, str(e).split("\n")[0]))
            continue
        took = [[], []]
        for r in range(args.rounds):
            for i in (0, 1) if r % 2 else (1, 0):
                clock = sides[i].processor_time if args.cpu \
                    else time.perf_counter
                took[i].append(measure(runs[i][1], args.seconds, clock) /
                               copies)
        for session, _ in runs:
            session.close()
        rows.append((name,
                     *(figures.spread([t * 1e6 for t in s], "%.0f")
                       for s in took),
                     figures.spread(figures.ratios(took[1], took[0]),
                                    "%.2f")))
    figures.say("%d thread%s" % (threads, "" if threads == 1 else "s"))
    figures.table(("op", "muster us", "TensorFlow us", "times quicker"), rows)
    for side in sides:
        side.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.15)
    p.add_argument("--threads", type=int)
    p.add_argument("--only", help="ops whose name has this in it")
    p.add_argument("--cpu", action="store_true",
                   help="processor time instead of the clock's")
    p.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.serve:
        serve(args.serve, args.threads)
        return
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    with tempfile.TemporaryDirectory() as directory:
        for threads in [args.threads] if args.threads else [1, 2]:
            bench(tf, threads, args, pathlib.Path(directory))


if __name__ == "__main__":
    main()
