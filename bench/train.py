"""Training steps a second of whole jobs: two ps, two workers, four models.

mlp         784-128-10, batches of 32
embedding   20,000 rows of 16, 12 ids an example, batches of 64, sparse updates
cnn, lstm   those of `examples/trainer.py`, batches of 32

each with Adagrad, asynchronous and with SyncReplicasOptimizer.  The rate is the
sum of both workers'.  Sides: tensorflow (MonitoredTrainingSession), muster
(`muster train` on the same graph, exported), client (TensorFlow's
MonitoredTrainingSession on servers of ours).  All workers are up all the time,
fed with the same rows, and the sides train in turn.
"""
import contextlib
import pathlib
import tempfile

import figures
import sides

MODELS = {"mlp": ("mlp", 32), "embedding": ("embedding_large", 64),
          "cnn": ("cnn", 32), "lstm": ("lstm", 32)}
CASES = ["%s %s" % (model, mode) for mode in ("async", "sync")
         for model in MODELS]
BATCHES = 200


class Side:
    """The job of one side: servers, and workers that train when told to."""

    def __init__(self, name, folder, case, args, meta):
        self.name, self.workers = name, []
        model, batch = MODELS[case.split()[0]]
        env = sides.env_of(name)
        self.cluster = sides.cluster_of(name, folder / name, args.ps,
                                        args.workers, env=env)
        self.cluster.__enter__()
        flags = ["--batch=%d" % batch]
        if name.startswith("muster"):
            head = [sides.muster(), "train", "--job_name=worker", "--bench",
                    "--meta_graph=%s" % meta, *(
                        word for feed in "xy" for word in (
                            "--feed", "%s=%s" % (feed, folder / (feed + ".npy"))))]
        else:
            head = [sides.python(), sides.PARTS / "train_worker.py",
                    "--model=" + model, "--data=%s" % folder]
            flags += ["--sync"] * case.endswith(" sync")
            flags += ["--resource"] * args.resource
        for i in range(args.workers):
            self.workers.append(sides.Driver(
                [*head, *flags, *self.cluster.host_flags(), "--task_index=%d" % i,
                 *self.cluster.master_flags(i)],
                folder / name / ("worker%d.log" % i), env))

    def ready(self):
        for w in self.workers:
            w.answer()

    def rate(self, seconds):
        for w in self.workers:
            w.ask(seconds)
        return sum(w.answer(seconds)["steps_per_s"] for w in self.workers)

    def close(self, *exc):
        sides.close(self.workers)
        self.cluster.__exit__(*exc)


def measure(results, case, args, folder, export):
    model, batch = MODELS[case.split()[0]]
    meta = folder / "graph.meta"
    export.export(meta, model, ps=args.ps, workers=args.workers,
                  sync=case.endswith(" sync"), resource=args.resource)
    export.write_batches(folder, model, BATCHES, batch)
    with contextlib.ExitStack() as stack:
        every = []
        for name in sides.chosen(args):
            every.append(Side(name, folder, case, args, meta))
            stack.callback(every[-1].close)
        for side in every:
            side.ready()
            side.rate(1)
        for r in range(args.rounds):
            for side in figures.turns(every, r):
                results.add(case, side.name,
                            steps_per_s=side.rate(args.seconds))
    results.done(case)


def main():
    p = figures.options(__doc__, 5, 2, sides.SIDES)
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--resource", action="store_true",
                   help="resource variables instead of reference variables")
    args = p.parse_args()
    results = figures.Results("train", args, "steps_per_s")
    import export
    sides.tensorflow()
    for case in filter(results.wanted, CASES):
        with tempfile.TemporaryDirectory() as folder:
            measure(results, case, args, pathlib.Path(folder), export)
    results.table([("steps/s", "steps_per_s", "%.0f")])


if __name__ == "__main__":
    main()
