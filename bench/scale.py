"""More workers on one ps, and a large model on more ps.

null, N workers    null steps a second of all workers together, one ps, and the
                   ps' resident memory; each worker is a process with a session
400 MB, N ps       one worker reads and updates a model of 40 variables whole in
                   each step; MB/s count both ways

TensorFlow takes part with as many workers as --tensorflow_workers says: each
weighs half a gigabyte.
"""
import contextlib
import tempfile

import figures
import sides

WORKERS = (1, 2, 4, 8, 16, 32, 64)
PS = (1, 2, 4)
VARIABLES, ELEMENTS = 40, 10 * 1000 * 1000 // 4
MB = 1 << 20


def null_job(tf, workers, folder):
    def build(worker):
        there = sides.variables(tf, "/job:ps/task:0", "there", [1])
        sides.initialise(tf, there)
        with tf.device("/job:ps/task:0"):
            return {"null": [there[0].read_value().op.name]}
    return sides.Job(tf, build, 1, workers, folder)


def model_job(tf, ps, folder):
    def build(worker):
        there = [v for i in range(ps) for v in sides.variables(
            tf, "/job:ps/task:%d" % i, "there%d_" % i,
            [ELEMENTS] * (VARIABLES // ps))]
        here = sides.variables(tf, worker, "here", [ELEMENTS] * VARIABLES)
        sides.initialise(tf, there, here)
        return {"both": [*sides.pull(tf, worker, there),
                         *sides.push(tf, worker, there, here)]}
    return sides.Job(tf, build, ps, 1, folder)


def more_workers(tf, results, args, folder):
    counts = [n for n in WORKERS if results.wanted("null, %d workers" % n)]
    if not counts:
        return
    with contextlib.ExitStack() as stack:
        job = null_job(tf, max(counts), folder)
        every = [stack.enter_context(sides.Side(
            name, job, most=None if name.startswith("muster")
            else args.tensorflow_workers)) for name in sides.chosen(args)]
        for count in counts:
            case = "null, %d workers" % count
            for side in every:
                side.grow(count).run("null", 0.2, count)
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    answers = side.run("null", args.seconds, count)
                    if answers:
                        results.add(
                            case, side.name,
                            steps_per_s=sides.total(answers),
                            p99_us=max(a["p99_us"] for a in answers),
                            ps_mb=side.cluster.ps[0].rss_all() / MB)
            results.done(case)


def more_ps(tf, results, args, folder):
    for ps in PS:
        case = "400 MB, %d ps" % ps
        if not results.wanted(case):
            continue
        with contextlib.ExitStack() as stack:
            job = model_job(tf, ps, "%s/%d" % (folder, ps))
            every = [stack.enter_context(sides.Side(name, job)).grow(1)
                     for name in sides.chosen(args)]
            for side in every:
                side.run("both", 0)
            for r in range(args.rounds):
                for side in figures.turns(every, r):
                    rate = sides.total(side.run("both", args.seconds))
                    results.add(case, side.name, steps_per_s=rate,
                                mb_per_s=rate * 2 * 400, ps_mb=sum(
                                    t.rss_all() for t in side.cluster.ps) / MB)
        results.done(case)


def main():
    p = figures.options(__doc__, 5, 0.5, ("tensorflow", "muster"))
    p.add_argument("--tensorflow_workers", type=int, default=8)
    args = p.parse_args()
    results = figures.Results("scale", args, "steps_per_s")
    tf = sides.tensorflow()
    with tempfile.TemporaryDirectory() as folder:
        more_workers(tf, results, args, folder + "/null")
        more_ps(tf, results, args, folder + "/model")
    results.table([("steps/s", "steps_per_s", "%.3g"),
                   ("p99 us", "p99_us", "%.0f"), ("MB/s", "mb_per_s", "%.0f"),
                   ("all ps MB", "ps_mb", "%.0f")],
                  [("memory of TensorFlow's", "tensorflow", "ps_mb")])


if __name__ == "__main__":
    main()
