"""Nothing advises to keep what is drawn at random: an augmentation would be the same in each pass ever after."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job
from tests.detectors.jobs import PERIOD, STEPS, pulled, sampled
from tests.detectors.trend_jobs import starting

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.tables.findings import Finding

HEAD = "import numpy as np\n" + "\n" * 13
DRAWS = HEAD + "def decode(x):\n    x = np.sort(x)\n    return x[np.random.permutation(3)]\n"
"""The function of the jobs here stands in line 15."""
SAME = DRAWS.replace("np.random.permutation(3)", "np.argsort(x)")
FIRST = HEAD + "def decode(x):\n    x = np.random.normal(x)\n    return np.sort(x)\n"
"""Nothing precedes what is drawn."""
KEEPING = ("cache", "offline", "TFRecord", "once before the loop")


def look(job: Job, code: str) -> Finding:
    """The finding."""
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    return next(f for f in findings if f.code == code)


def texts(job: Job, code: str) -> list[str]:
    """Remedies that speak of keeping what was made."""
    return [r.text for r in look(job, code).remedies if any(word in r.text for word in KEEPING)]


def with_source(job: Job, source: str) -> Job:
    """The job, whose script reads so."""
    job.sources[SCRIPT] = source
    return job


@pytest.mark.parametrize(
    ("role", "code"), [("numpy_function", "INP002"), ("py_function", "INP002"), ("generator", "INP003")]
)
def test_python_of_the_pipeline(role: str, code: str) -> None:
    """What it draws with is named, and what comes before it may be kept; what draws nothing may be kept itself."""
    (drawn,) = texts(with_source(pulled(60 * MS, python=58 * MS, role=role), DRAWS), code)
    assert "the work before the random op (np.random.permutation in line 17)" in drawn
    assert "cache(), then a map with the random op" in drawn
    (kept,) = texts(with_source(pulled(60 * MS, python=58 * MS, role=role), SAME), code)
    assert "if its output is the same every time" in kept
    (unknown,) = texts(pulled(60 * MS, python=58 * MS, role=role), code)
    assert unknown == kept


@pytest.mark.parametrize(("role", "code"), [("numpy_function", "INP002"), ("generator", "INP003"), ("", "INP001")])
def test_nothing_is_kept_where_no_work_precedes_what_is_drawn(role: str, code: str) -> None:
    """A function that begins with a draw has nothing to cache."""
    assert texts(with_source(pulled(60 * MS, python=58 * MS if role else 0, role=role), FIRST), code) == []


@pytest.mark.parametrize(("line", "kept"), [(16, True), (17, False), (18, False)])
def test_samples_say_whether_the_work_precedes_what_is_drawn(line: int, *, kept: bool) -> None:
    """Calls above the draw that cost nothing are not worth keeping; the draw itself, and what follows it, neither."""
    source = HEAD + "def decode(x):\n    x = np.sort(x)\n    x = np.random.normal(x)\n    return np.sort(x)\n"
    job = with_source(pulled(60 * MS, python=58 * MS, role="generator"), source)
    job.samples([i * PERIOD + 30 * MS for i in range(STEPS)], Frame(SCRIPT, "decode", line), thread=POOL)
    assert (texts(job, "INP003") != []) == kept


@pytest.mark.parametrize(("source", "names"), [(DRAWS, True), (SAME, False)])
def test_a_map_of_tf_data(source: str, *, names: bool) -> None:
    """The function that a slow map was given is looked at, too."""
    (text,) = texts(with_source(pulled(60 * MS), source), "INP001")
    assert ("before the random op (np.random.permutation" in text) == names


def test_the_remedy_of_a_function_that_draws_is_in_ops_that_draw() -> None:
    """tf.data's own ops with parallel calls, not lookup tables."""
    job = with_source(pulled(60 * MS, python=58 * MS, role="numpy_function"), DRAWS)
    first = look(job, "INP002").remedies[0].text
    assert "tf.image.stateless_random_*" in first
    assert "num_parallel_calls" in first


def test_the_condition_is_said_where_nothing_is_known() -> None:
    """Of the first batches of passes, too, whose maps have no source here."""
    (text,) = texts(starting(401 * MS), "INP010")
    assert "if its output is the same every time" in text


@pytest.mark.parametrize(("body", "kept"), [("np.random.rand(i)", False), ("np.arange(i)", True)])
def test_the_loop_s_own_batches(body: str, *, kept: bool) -> None:
    """A batch that is drawn is not to be made once before training."""
    job = sampled(before=50 * MS)
    lines = job.sources[SCRIPT].splitlines()
    lines[1:4] = ["import numpy as np", "def make_batch(i):", f"    return {body}"]
    assert (texts(with_source(job, "\n".join(lines)), "INP004") != []) == kept
