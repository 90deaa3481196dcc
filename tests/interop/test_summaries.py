"""TensorBoard's reader reads what the summary ops of our server make."""
import pytest


@pytest.fixture(scope="module")
def events(shared):
    return shared.run("summaries")


def expected(step):
    """The values of a step, in the order in which they are written."""
    return [["scalar", "simple_value", step],
            ["histo", "histo", [3, 1, 3, 3]],
            ["image/image/0", "image", [4, 5, 3]],
            ["image/image/1", "image", [4, 5, 3]],
            ["audio/audio/0", "audio", [8000, 2, 200]],
            ["tensor", "tensor", [[1, 2]]]]


def test_events_that_the_server_writes_are_read(events):
    found = events["ps"]
    assert found[0] == [0, "brain.Event:2"]
    for step in range(3):
        values = [v for s, vs in found[1:] if s == step for v in vs]
        assert values == expected(step)


def test_summaries_that_the_server_makes_are_read(events):
    found = [e for e in events["worker"] if not isinstance(e[1], str)]
    assert [s for s, _ in found] == [0, 1, 2]
    for step, values in found:
        want = expected(step)
        # One sound and tf.summary.audio's own way to name it.
        assert [v[1:] for v in values] == [v[1:] for v in want]
        assert values[0][0] == "scalar"
