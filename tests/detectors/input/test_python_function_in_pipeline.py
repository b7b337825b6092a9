"""INP002 python-function-in-pipeline: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT
from tests.detectors.asking import find
from tests.detectors.fit_jobs import filtered
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import TF, nothing, pulled

from stepscope.detectors.input.python_function_in_pipeline import DETECTOR
from stepscope.model.log.events import Name
from stepscope.model.log.program import Setting

FIXTURES = Fixtures(
    firing=lambda: pulled(60 * MS, python=58 * MS, role="numpy_function"),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "python_busy_ratio", "disturbed_ratio", "python_ns_per_batch", "python_calls"),
        title=("decode", "tf.numpy_function", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: pulled(2 * MS, python=58 * MS, role="numpy_function"),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(60 * MS, python=29 * MS, role="py_function"),
    at=lambda: pulled(60 * MS, python=31 * MS, role="py_function"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize("own", [True, False])
def test_the_debug_mode_of_tf_data_is_what_makes_python_of_a_map(*, own: bool) -> None:
    """Functions of maps that TensorFlow itself calls as Python: the setting is the cause, not for a py_function."""
    job = pulled(60 * MS, python=58 * MS, role="py_function")
    job.event(Setting(name="data_debug_mode", value=True, file=SCRIPT, line=3, function="main"))
    if not own:
        file = f"{TF}/data/ops/structured_function.py"
        job.events = [replace(e, own=False, file=file) if isinstance(e, Name) and e.role else e for e in job.events]
    (found,) = find(job)
    assert found.code == "INP002"
    assert ("debug mode of tf.data is on" in found.title) == (not own)
    assert found.remedies[0].id == ("use-tensorflow-ops" if own else "data-debug-mode-off")
    assert (found.where[0].file, found.where[0].line) == ("train.py", 15 if own else 3)


def test_what_a_filter_drops_is_not_to_be_made() -> None:
    """Fifty-six of 64 elements of the Python map are dropped behind it: that comes first, and is a place."""
    (found,) = find(filtered(8, python=58 * MS))
    assert found.code == "INP002"
    assert "; filter (line 72) drops 88 % of the elements; " in found.title
    assert [remedy.id for remedy in found.remedies][:2] == ["filter-first", "use-tensorflow-ops"]
    assert (found.where[-1].file, found.where[-1].line) == ("train.py", 72)


def test_tenths_are_said_as_such() -> None:
    """Nine of ten is easier to read than ninety percent of them."""
    (found,) = find(filtered(6, python=58 * MS))
    assert "drops 9 of 10 elements" in found.title


@pytest.mark.parametrize("loops", [True, False])
def test_a_function_that_autograph_has_converted_is_to_be_written_outside(*, loops: bool) -> None:
    """It is said with the op that calls it, and first of what to do; where it has no loop, that would gain nothing."""
    job = pulled(60 * MS, python=58 * MS, role="numpy_function")
    job.events = [replace(e, converted=True) if isinstance(e, Name) and e.role else e for e in job.events]
    body = "for word in row: count(word)" if loops else "return np.load(row)"
    job.sources[SCRIPT] = "\n" * 14 + f"def decode(row):\n    {body}\n"
    (found,) = find(job)
    assert ("(tf.numpy_function, converted by AutoGraph)" in found.title) == loops
    assert [remedy.id for remedy in found.remedies][: 1 + loops][-1] == "use-tensorflow-ops"
    assert (found.remedies[0].id == "written-outside") == loops
