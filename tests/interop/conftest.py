"""What all interop tests share.

    MUSTER=build/muster MUSTER_TF=python-with-tensorflow \\
        python -m pytest tests/interop [--ps tensorflow] [--full]

--ps tensorflow runs every test on TensorFlow's own ps instead of ours: so the
tests themselves are tested.  --full runs whole products of cases where the
plain run takes a covering part.
"""
import sys

import pytest

import cluster as cl


def pytest_addoption(parser):
    parser.addoption("--ps", default="muster",
                     choices=["muster", "tensorflow"],
                     help="whose ps tasks are tested")
    parser.addoption("--full", action="store_true",
                     help="every combination, not a covering set")


def pytest_configure(config):
    for line in ("full: only with --full",
                 "trainer: repeated with TensorFlow 2.12",
                 "sanitize: repeated with sanitizer builds of ours",
                 "memory: looks at RSS, which sanitizers hold on to"):
        config.addinivalue_line("markers", line)
    if config.getoption("--ps") == "muster" and not cl.muster():
        raise pytest.UsageError(
            "no muster to test: set MUSTER, or use --ps tensorflow")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full"):
        return
    rest = [i for i in items if not i.get_closest_marker("full")]
    config.hook.pytest_deselected(
        items=[i for i in items if i.get_closest_marker("full")])
    items[:] = rest


@pytest.fixture(scope="session")
def kind(request):
    """The kind of ps under test."""
    return request.config.getoption("--ps")


@pytest.fixture
def cluster(tmp_path, kind):
    """cluster(ps=2, workers=2) makes a Cluster that ends with the test."""
    made = []

    def make(ps=2, workers=2):
        kinds = [kind] * ps if isinstance(ps, int) else ps
        c = cl.Cluster(tmp_path / ("cluster%d" % len(made)), kinds, workers)
        made.append(c)
        return c.__enter__()

    yield make
    for c in made:
        c.__exit__()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, kind):
    """One ps and two worker addresses, shared by the tests of a module."""
    with cl.Cluster(tmp_path_factory.mktemp("shared"), [kind], 2) as c:
        yield c


@pytest.fixture
def note(request, capsys):
    """note(text) prints a figure that belongs into the report."""
    def say(text):
        with capsys.disabled():
            print("\n    %s: %s" % (request.node.name, text), file=sys.stderr,
                  end="")
    return say
