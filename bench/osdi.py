"""Null steps as the OSDI'16 paper on TensorFlow has them (its null model).

A step fetches parameters from all ps to the worker and computes nothing:

scalar        4 bytes of each ps
dense SIZE    a model of that size, whole
sparse 1 GB   32 random rows of 1 KB of a table of 1 GB

by 1 to 16 workers at once, two ps.  A side stops growing where memory would not
do, TensorFlow at --tensorflow_workers at the latest.  Rates are those of all
workers together, times those of one step.
"""
import contextlib
import statistics
import tempfile

import figures
import sides

WORKERS = (1, 2, 4, 8, 16)
MODELS = {"scalar": 4, "dense 100 MB": 100 * 10 ** 6, "dense 1 GB": 10 ** 9,
          "sparse 1 GB": 10 ** 9}
PARTS = 8  # variables of a dense model, on each ps
ROWS, WIDTH = 32, 256
PYTHON, OURS = 500 << 20, 50 << 20  # what a worker weighs on its own


def builder(tf, model, ps):
    """The graph of one model; see sides.Job."""
    def sparse(worker, devices):
        there, ops = [], []
        rows = MODELS[model] // (4 * WIDTH * ps)
        with tf.device(worker):
            ids = [tf.random.uniform([ROWS // ps], 0, rows, tf.int64)
                   for _ in devices]
        for i, device in enumerate(devices):
            with tf.device(device):
                there.append(tf.get_variable(
                    "table%d" % i, [rows, WIDTH], use_resource=True,
                    initializer=tf.zeros_initializer()))
                found = there[i].sparse_read(ids[i])
            with tf.device(worker):
                ops.append(tf.identity(found).op.name)
        return there, ops

    def dense(worker, devices):
        each = 1 if model == "scalar" else PARTS
        there = [v for i, device in enumerate(devices) for v in
                 sides.variables(tf, device, "there%d_" % i,
                                 [max(1, MODELS[model] // (4 * each * ps))]
                                 * each)]
        return there, sides.pull(tf, worker, there)

    def build(worker):
        make = sparse if model.startswith("sparse") else dense
        there, ops = make(worker, ["/job:ps/task:%d" % i for i in range(ps)])
        sides.initialise(tf, there)
        return {model: ops}
    return build


def room(side, model, count):
    """Whether there is memory for so many workers; says so if not.

    TensorFlow copies what it sends and receives, so a model counts threefold.
    """
    fetched = MODELS[model] if model.startswith("dense") else 0
    own = OURS if side.name.startswith("muster") else PYTHON
    need = (min(count, side.most) - len(side.workers)) * (own + 3 * fetched)
    if need < 0.8 * sides.available():
        return True
    figures.say("  %s, %d workers: no memory for %s (%d MB)"
                % (model, count, side.name, need >> 20))
    side.most = len(side.workers)
    return False


def measure(tf, results, model, args, folder):
    counts = [n for n in WORKERS
              if results.wanted("%s, %d workers" % (model, n))]
    if not counts:
        return
    names = sides.chosen(args)
    if len(names) * 2 * MODELS[model] > 0.8 * sides.available():
        figures.say("  %s: no memory for the ps of all sides" % model)
        return
    with contextlib.ExitStack() as stack:
        job = sides.Job(tf, builder(tf, model, args.ps), args.ps, max(counts),
                        folder)
        every = [stack.enter_context(sides.Side(
            name, job, most=None if name.startswith("muster")
            else args.tensorflow_workers)) for name in names]
        for count in counts:
            case = "%s, %d workers" % (model, count)
            for side in every:
                if room(side, model, count):
                    side.grow(count).run(model, 0.2, count)
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    answers = side.run(model, args.seconds, count)
                    if answers:
                        results.add(case, side.name,
                                    steps_per_s=sides.total(answers),
                                    step_ms=statistics.median(
                                        a["p50_us"] for a in answers) / 1e3)
            results.done(case)


def main():
    p = figures.options(__doc__, 3, 1, ("tensorflow", "muster"))
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--tensorflow_workers", type=int, default=8)
    args = p.parse_args()
    results = figures.Results("osdi", args, "steps_per_s")
    tf = sides.tensorflow()
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            measure(tf, results, model, args, folder)
    results.table([("steps/s", "steps_per_s", "%.3g"),
                   ("step ms", "step_ms", "%.3g")])


if __name__ == "__main__":
    main()
