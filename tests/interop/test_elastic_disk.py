"""The journal on a disk that fails, and a ps that dies while it writes."""
import os
import subprocess

import pytest

import cluster as cl

PLACES = ["127.0.0.1:9", "127.0.0.1:10", "127.0.0.1:11"]


@pytest.fixture(scope="module")
def fault(tmp_path_factory):
    """The library that makes a disk fail."""
    out = tmp_path_factory.mktemp("fault") / "fault.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", out,
                    cl.HERE / "fault.c", "-ldl"], check=True)
    return out


def run(*args):
    return subprocess.run([cl.muster(), *args], text=True,
                          capture_output=True, timeout=30)


class Job:
    """One ps whose disk can be made to fail."""

    def __init__(self, c, library=None, fault=None):
        self.c, self.ps = c, c.ports["ps"][0].address
        self.when = c.directory / "fails"
        if library:
            c.ps[0].stop()
            c.ps[0].env.update(LD_PRELOAD=str(library), FAULT=fault,
                               FAULT_WHEN=str(self.when))
            c.restart_ps(0)

    def add(self, i):
        return run("add-worker", "--ps_hosts=" + self.ps, str(i), PLACES[i])

    def has(self):
        """The workers that it knows."""
        said = run("status", "grpc://" + self.ps)
        assert said.returncode == 0, said.stderr
        return [i for i in range(len(PLACES)) if PLACES[i] in said.stdout]

    def journal(self):
        return next(self.c.state.glob("*.journal"))

    def journal_of(self, name):
        """The journal whose name ends so."""
        return next(self.c.state.glob("*%s.journal" % name))

    def restart(self, **env):
        self.c.ps[0].stop()
        self.c.ps[0].env.pop("LD_PRELOAD", None)
        self.c.ps[0].env.update(env)
        self.c.restart_ps(0)

    def name(self, name):
        """Restarts it as a ps of that job."""
        ps = self.c.ps[0]
        ps.argv = [a for a in ps.argv if not str(a).startswith("--job_id")]
        if name:
            ps.argv.append("--job_id=" + name)
        self.restart()


@pytest.fixture
def job(tmp_path, fault):
    made = []

    def make(kind=None):
        c = cl.Cluster(tmp_path, ["muster"], 0).__enter__()
        made.append(c)
        return Job(c, fault if kind else None, kind)

    yield make
    for c in made:
        c.__exit__()


plain = pytest.mark.skipif(not cl.measurable(),
                           reason="a sanitizer has to be loaded first")


@plain
@pytest.mark.parametrize("kind, text", [
    ("nospace", "No space left on device"),
    ("readonly", "Read-only file system"), ("sync", "Input/output error")])
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_disk_that_fails_changes_nothing(job, kind, text, first):
    """A clear error; the list is as it was, also after a restart."""
    j = job(kind)
    before = [] if first else [0]
    if not first:
        assert j.add(0).returncode == 0
    j.when.touch()
    said = j.add(1)
    assert said.returncode == 1
    assert "journal" in said.stderr and text in said.stderr
    assert j.has() == before
    # The disk is well again: so is everything else.
    j.when.unlink()
    assert j.has() == before
    assert j.add(2).returncode == 0
    j.restart()
    assert j.has() == [*before, 2]


@plain
@pytest.mark.parametrize("kind", ["nospace", "readonly", "sync", "folder"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_change_that_failed_is_not_there_later(job, kind, first):
    """Also if the ps restarts before its disk is well again."""
    j = job(kind)
    before = [] if first else [0]
    if not first:
        assert j.add(0).returncode == 0
        j.c.ps[0].stop()
        j.journal().write_bytes(j.journal().read_bytes() + b"cut")
        j.c.restart_ps(0)  # so that it is written anew
    j.when.touch()
    assert j.add(1).returncode == 1
    j.c.ps[0].stop()
    j.c.restart_ps(0)
    assert j.has() == before
    j.when.unlink()
    assert j.add(2).returncode == 0
    j.restart()
    assert j.has() == [*before, 2]


@plain
def test_ps_killed_between_the_write_and_the_answer_has_it(job):
    """Written is written; that nobody was told is no harm."""
    j = job("kill")
    assert j.add(0).returncode == 0
    j.when.touch()
    assert j.add(1).returncode == 1
    cl.wait("it is dead", lambda: not j.c.ps[0].alive())
    j.restart()
    assert j.has() == [0, 1]
    assert "already" in j.add(1).stdout


@pytest.mark.sanitize
def test_write_that_was_cut_off_is_cut_away(job):
    j = job()
    assert j.add(0).returncode == 0 and j.add(1).returncode == 0
    j.c.ps[0].stop()
    whole = j.journal().read_bytes()
    j.journal().write_bytes(whole[:-9])
    j.restart()
    assert j.has() == [0]
    assert "cut off" in j.c.ps[0].text()
    assert j.add(2).returncode == 0
    j.restart()
    assert j.has() == [0, 2]


@pytest.mark.sanitize
def test_damaged_line_is_left_out_and_kept_aside(job):
    j = job()
    for i in range(3):
        assert j.add(i).returncode == 0
    j.c.ps[0].stop()
    lines = j.journal().read_bytes().splitlines(True)
    lines[2] = lines[2].replace(b"worker 1", b"worker 9")
    j.journal().write_bytes(b"".join(lines))
    j.restart()
    assert j.has() == [0, 2]
    assert "1 lines of the journal" in j.c.ps[0].text()
    kept = j.journal().with_name(j.journal().name + ".damaged")
    assert kept.read_bytes() == b"".join(lines)


def test_something_else_in_its_place_is_refused(job):
    j = job()
    assert j.add(0).returncode == 0
    j.c.ps[0].stop()
    j.journal().write_bytes(os.urandom(100) + b"\n")
    j.c.ps[0].start()
    cl.wait("it gives up", lambda: not j.c.ps[0].alive())
    assert j.c.ps[0].code == 1
    assert "does not begin as a journal does" in j.c.ps[0].text()


def test_flags_that_contradict_the_journal_are_reported(job):
    j = job()
    assert j.add(0).returncode == 0
    j.c.ps[0].stop()
    j.c.ps[0].argv = [a for a in j.c.ps[0].argv
                      if not a.startswith("--worker_hosts")]
    j.c.ps[0].argv.append("--worker_hosts=127.0.0.1:99")
    j.restart()
    assert j.has() == [0]
    assert "is 127.0.0.1:99 in the flags, but the journal has it at" \
        in j.c.ps[0].text()


@pytest.mark.sanitize
def test_jobs_with_names_do_not_meet(job):
    """With no name, as ever: whoever has the same ps list is the same job."""
    j = job()
    assert j.add(0).returncode == 0
    j.name("a")
    assert j.has() == []
    assert j.add(1).returncode == 0
    assert j.journal_of("-a").exists()
    j.restart()
    assert j.has() == [1]
    j.name("b")
    assert j.has() == []
    j.name(None)
    assert j.has() == [0]
    assert "begins without them if it is given a --job_id" in j.c.ps[0].text()
    j.restart(MUSTER_JOB_ID="a")
    assert j.has() == [1]
    j.name("b")  # a flag is more than the environment
    assert j.has() == []


@pytest.mark.parametrize("name", ["a/b", "..", ".a", "x" * 65, "a b"])
def test_names_that_are_none(tmp_path, name):
    said = run("serve", "--ps_hosts=127.0.0.1:0", "--job_id=" + name,
               "--state_dir=%s" % tmp_path)
    assert said.returncode == 1
    assert "A job id is up to 64 letters" in said.stderr


def test_ps_of_another_job_is_not_listened_to(tmp_path):
    with cl.Cluster(tmp_path, ["muster"] * 2, 0) as c:
        def known(i):
            return run("status", "grpc://" + c.ports["ps"][i].address).stdout

        for i, name in enumerate("ab"):
            c.ps[i].stop()
            c.ps[i].argv.append("--job_id=" + name)
            c.restart_ps(i)
        ps = c.ports["ps"][0].address
        said = run("add-worker", "--ps_hosts=" + ps, "5", PLACES[0])
        assert "1 more will when it is back" in said.stdout
        cl.wait("it says why", lambda: all(
            "is not listened to" in ps.text() for ps in c.ps), tasks=c.ps)
        assert PLACES[0] in known(0) and PLACES[0] not in known(1)
        # One that forgot its name at a restart is told by the other.
        c.ps[1].argv.pop()
        c.ps[1].stop()
        c.restart_ps(1)
        cl.wait("it knows", lambda: PLACES[0] in known(1), tasks=c.ps)
