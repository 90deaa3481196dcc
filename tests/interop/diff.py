"""Random graphs on TensorFlow and on our server: the same result, the same
error code, or a difference that is printed with what reproduces it.

    tests/interop/diff.py --count 5000 --seed 1            all ops
    tests/interop/diff.py --count 500 --ops Pad,Tile,Slice
    tests/interop/diff.py --seed 1234 --count 1            one graph again

A seed is one graph, so what is printed with a seed can be replayed with it
(and with the same --ops, since the op is drawn from that list).  The program
goes on after a difference, after the death of our server, which is reported
with the end of its output and is the worst finding, and after the death of
TensorFlow, which aborts on some inputs and is only counted.

This process has no TensorFlow; programs/diff_run.py runs the graphs in a
child.  Ops that cannot be compared are in SKIP, with the reason.
"""
import argparse
import collections
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cluster as cl

PATIENCE = 40  # seconds; a run that takes longer than 8 is given up

# Names (patterns) of ops that are not drawn, and why.
SKIP = {
    "handles and state, tried by test_ops.py": r"""
        .*Queue.* .*Accumulator.* .*Barrier.* .*Table.* TensorArray.* .*Stage.*
        .*Map(Un)?[A-Z].* OrderedMap.* Map[A-Z].* .*Stack.* Resource.*
        .*Variable.* .*Mutex.* .*Iterator.* .*Reader.* Unstage Stateful.*
        .*TensorsMap Apply.* SparseApply.* Scatter(Add|Sub|Mul|Div|Min|Max|
        Update) ScatterNd(Add|Sub|Update|Max|Min) Assign.* CountUpTo
        VarHandleOp VarIsInitializedOp .*Barrier.* DestroyResourceOp
        DestroyTemporaryVariable StridedSliceAssign ResourceStridedSliceAssign
        TensorList.* EmptyTensorList Optional.* GetSession.* DeleteSession.*
        RefSwitch RefMerge RefEnter RefExit RefNextIteration RefIdentity
        RefSelect RngSkip RngReadAndSkip DeepCopy InplaceUpdate Inplace.*
        _ParallelConcat.* ParallelConcat _VarHandlesOp _ReadVariablesOp
        _MklRecv""",
    "control flow, in the graphs around the ops": r"""
        Enter Exit NextIteration LoopCond Switch Merge _SwitchN If While
        StatelessIf StatelessWhile Case StatelessCase For PartitionedCall
        StatefulPartitionedCall SymbolicGradient RemoteCall MapDefun
        ControlTrigger NoOp _Arg _Retval _Send _Recv _HostSend _HostRecv
        Placeholder PlaceholderV2 PlaceholderWithDefault Const Abort
        FakeParam Timestamp _.* Print PrintV2 Assert .*Dataset.* .*PyFunc.*""",
    "files": r"""
        Save.* Restore.* Merge.*Checkpoints ReadFile WriteFile MatchingFiles
        .*Summary.* Checkpoint.* RecordInput GenerateVocabRemapping
        LoadAndRemapMatrix""",
    "formats that random bytes never are, tried by test_ops.py": r"""
        Parse.* Decode(CSV|Compressed|JSON.*|Proto.*) Deserialize.*
        SparseCross.* .*SetOperation SerializeSparse SerializeManySparse""",
    "gone from TensorFlow's graphs": r"""
        Batch(Cholesky|CholeskyGrad|Svd|SelfAdjointEig|SelfAdjointEigV2|
        Matrix.*) TopK SelfAdjointEig Conv3DBackpropInput
        Conv3DBackpropFilter""",
    "TensorFlow hangs while its Python builds it": "RaggedGather",
    "one of many right results": r"""
        Random(Gamma|Poisson|Shuffle).* FractionalM.* FractionalA.*
        .*CandidateSampler .*Sampler Multinomial ParameterizedTruncatedNormal
        StatelessMultinomial RandomGammaGrad StatelessRandomGetAlg
        StatelessRandomGetKeyCounterAlg""",
}


def skipped(name):
    for pattern in SKIP.values():
        pattern = re.sub(r"\|\s+", "|", pattern)
        if any(re.fullmatch(p, name) for p in pattern.split()):
            return True
    return False


def ops():
    done = subprocess.run([cl.muster(), "ops"], capture_output=True,
                          text=True, check=True)
    return done.stdout.split()


class Server:
    """Our server, with a new port after each death."""

    def __init__(self, folder):
        self.folder, self.deaths, self.task = folder, 0, None
        self.start()

    def start(self):
        self.port = cl.Port()
        self.log = open(os.path.join(self.folder, "server%d.log" %
                                     self.deaths), "w+")
        self.task = subprocess.Popen(
            [cl.muster(), "serve", "--cluster=localhost=" +
             self.port.address, "--job_name=localhost", "--task_index=0",
             "--log=warn"], stdout=self.log, stderr=self.log,
            preexec_fn=limit)
        end = time.monotonic() + 30
        while not self.port.listening():
            if self.task.poll() is not None or time.monotonic() > end:
                raise SystemExit("our server does not start: " + self.tail())
            time.sleep(0.02)

    @property
    def target(self):
        return "grpc://" + self.port.address

    def dead(self, patience=2):
        try:
            self.task.wait(patience)
        except subprocess.TimeoutExpired:
            return False
        return True

    def tail(self):
        self.log.seek(0)
        return self.log.read()[-3000:]

    def restart(self):
        if self.task.poll() is None:
            self.task.kill()
            self.task.wait()
        self.deaths += 1
        self.start()

    def stop(self):
        self.task.kill()
        self.task.wait()


def limit():
    """A wrong size must not take the machine's memory."""
    cl.die_with_parent()
    size = int(os.environ.get("DIFF_MEMORY", 16 << 30))
    if cl.measurable():
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


class Run:
    def __init__(self, args, names, folder):
        self.args, self.names, self.folder = args, names, folder
        self.list = os.path.join(folder, "ops")
        with open(self.list, "w") as f:
            f.write("\n".join(names))
        self.server = Server(folder)
        self.graphs, self.refused, self.crashes = 0, 0, []
        self.differences = []
        self.modes = collections.Counter()
        self.reasons = collections.Counter()
        self.known = collections.Counter()
        self.retries = 20

    def watch(self):
        """Ends a child that says nothing for a while: some ops of TensorFlow
        wait forever, whatever the timeout."""
        while True:
            time.sleep(5)
            at, pid = self.last
            if pid and time.monotonic() - at > PATIENCE:
                print("nothing heard for %d s" % PATIENCE, flush=True)
                self.last = time.monotonic(), 0
                os.kill(pid, signal.SIGKILL)

    def start(self):
        self.last = time.monotonic(), 0
        threading.Thread(target=self.watch, daemon=True).start()
        self.log = open(os.path.join(self.folder, "tensorflow.log"), "w+")
        self.task = subprocess.Popen(
            [cl.python(), str(cl.PROGRAMS / "diff_run.py"), self.list,
             str(self.args.batch)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True,
            preexec_fn=limit)

    def go(self):
        self.start()
        at, last = self.args.seed, self.args.seed + self.args.count
        while at < last:
            at = self.some(at, last)
        self.task.stdin.close()
        self.task.wait()
        self.server.stop()

    def tell(self, text):
        self.task.stdin.write(text + "\n")
        self.task.stdin.flush()

    def some(self, first, last):
        """From `first` until the end or TensorFlow's death; where to go on."""
        begun, op, code, modes = None, None, None, {}
        self.tell("%d %d %s" % (first, last, self.server.target))
        for line in self.task.stdout:
            e = json.loads(line)
            ev = e["ev"]
            self.last = time.monotonic(), e.get("pid", self.last[1])
            if ev == "start":
                begun, op = e["seed"], e["op"]
                self.graphs += 1
            elif ev == "differs":
                self.difference(e)
            elif ev == "known":
                self.known[e["why"]] += 1
            elif ev == "refused":
                self.refused += 1
                self.reasons["%s: %s" % (e["op"], e["why"][:90])] += 1
            elif ev == "gone":
                self.gone(e)
            elif ev == "batch":
                modes = e["kinds"]
                if not self.args.quiet:
                    print("  ...%d: %d graphs, %d differences" % (
                        e["upto"], self.graphs, len(self.differences)),
                        file=sys.stderr)
            elif ev == "end":
                code = e["code"]
                self.last = time.monotonic(), 0
                break
        self.modes.update(modes)
        if code == 0:
            return last
        self.log.seek(0)
        text = self.log.read()
        if begun is None and code is not None and self.retries:
            self.retries -= 1  # it hung while it built this batch
            return min(first + self.args.batch, last)
        if begun is None or code is None:
            raise SystemExit("TensorFlow's side is broken:\n" + text[-1500:])
        self.graphs -= 1
        why = re.findall(r"(?:F0000|F tensorflow|Error).*", text)
        self.crashes.append((begun, op, code))
        print("TensorFlow died of seed %d (%s), code %s: %s" % (
            begun, op, code, why[-1:]), flush=True)
        self.log.truncate(0)
        return begun + 1

    def gone(self, e):
        if self.server.dead():
            print("OUR SERVER DIED, seed %d, code %s\n%s" % (
                e["seed"], self.server.task.returncode, self.server.tail()),
                flush=True)
            self.server.restart()
            self.tell("new " + self.server.target)
        else:
            self.tell("alive")

    def difference(self, e):
        self.differences.append(e)
        seen = sum(d["op"] == e["op"] and d["kind"] == e["kind"]
                   for d in self.differences)
        if seen <= self.args.show:
            print("%s %s, seed %d, %s%s\n  %s\n  %s" % (
                e["op"], e["kind"], e["seed"], e["how"],
                " (%s)" % e["bad"] if e["bad"] else "", e["call"],
                e["text"].replace("\n", "\n  ")), flush=True)

    def tally(self):
        out = ["%d graphs (seeds %d to %d), %d not built, TensorFlow died of "
               "%d, our server of %d" % (
                   self.graphs, self.args.seed,
                   self.args.seed + self.args.count - 1, self.refused,
                   len(self.crashes), self.server.deaths)]
        out.append("forms (! where TensorFlow gives an error): %s" % ", ".join(
            "%s %d" % m for m in sorted(self.modes.items())))
        out += ["known %d: %s" % (n, w) for w, n in
                self.known.most_common()]
        kinds = collections.Counter((e["op"], e["kind"])
                                    for e in self.differences)
        out.append("%d differences of %d kinds" % (
            len(self.differences), len(kinds)))
        for (op, kind), n in sorted(kinds.items()):
            seeds = [e["seed"] for e in self.differences
                     if e["op"] == op and e["kind"] == kind][:4]
            out.append("  %4d %s %s, seeds %s" % (n, op, kind, seeds))
        return "\n".join(out)


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ops", help="comma-separated names, instead of all")
    p.add_argument("--batch", type=int, default=40,
                   help="graphs in one session")
    p.add_argument("--show", type=int, default=1,
                   help="differences of one kind that are printed whole")
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--list", action="store_true", help="the ops that it draws")
    args = p.parse_args(argv)
    names = args.ops.split(",") if args.ops else [
        n for n in ops() if not skipped(n)]
    if args.list:
        print("\n".join(names))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        r = Run(args, names, folder)
        r.go()
        print(r.tally())
        if not args.quiet:
            for why, n in r.reasons.most_common(25):
                print("  not built %d: %s" % (n, why))
    return 1 if r.differences or r.server.deaths else 0


if __name__ == "__main__":
    sys.exit(main())
