"""Words that several reports share."""

from __future__ import annotations

import msgspec
import pytest
from tests.report import samples

from stepscope.model.report.report import StageShare
from stepscope.report import checked_words, words
from stepscope.tables.findings import Checked, Cost
from stepscope.tables.place import Place


@pytest.mark.parametrize(
    ("outcome", "missing", "blind"),
    [
        ("not-applicable", ("experiment",), False),
        ("not-applicable", ("snapshots of memory",), False),
        ("not-applicable", ("steps", "snapshots of memory"), True),
        ("not-applicable", (), False),
        ("undecided", ("snapshots of memory",), True),
        ("clear", (), False),
    ],
)
def test_what_could_not_look(outcome: str, missing: tuple[str, ...], *, blind: bool) -> None:
    """What a run cannot have yet is nothing that it lacks; what it could have had is."""
    given = {"detector": "EXP001", "name": "needless-work", "outcome": outcome, "missing": missing}
    checked = msgspec.convert(given, Checked)
    assert checked_words.could_not_look(checked) == blind


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (1.0, "threads", "1 thread"),
        (2.0, "threads", "2 threads"),
        (1.0, "switches", "1 switch"),
        (1.0, "passes", "1 pass"),
        (1.0, "s", "1 s"),
        (1.0, "MB/s", "1 MB/s"),
        (1.04, "cores", "1.04 cores"),
    ],
)
def test_one_of_a_unit(value: float, unit: str, said: str) -> None:
    """One of something is not written as several."""
    assert words.value_text(value, unit) == said


def test_the_rest_of_a_step_holds_the_framework_where_its_calls_are_not_measured() -> None:
    """Python is said to take the time only where the framework's calls were seen."""
    seen, unseen = samples.stages(), (StageShare(stage="output-processing", ratio=None, basis=""),)
    found = samples.clean()
    for stages, word in ((seen, "other Python"), (unseen, "framework calls and other Python")):
        parts = tuple(part for part in found.anatomy if part.component != "call")
        report = msgspec.structs.replace(found, stages=stages, anatomy=parts)
        assert words.component_of(report, "other-python") == word
        assert words.component_of(report, "input-wait") == "input wait"


@pytest.mark.parametrize(
    ("ratio", "low", "high", "basis", "said"),
    [
        (0.58, 0.55, 0.60, "measured", "58 % (55-60)"),
        (0.58, 0.55, 0.60, "modelled", "58 % (55-60, modelled)"),
        (0.755, 0.68, 0.755, "measured", "68-76 %"),
        (0.30, 0.30, 0.44, "modelled", "30-44 % (modelled)"),
        (0.99, 0.01, 0.99, "measured", "up to 99 %"),
        (0.004, 0.0, 0.02, "measured", "0.4 % (0.0-2.0)"),
        (0.0, 0.0, 0.02, "modelled", "up to 2 % (modelled)"),
        (0.96, 0.958, 0.962, "measured", "96 %"),
        (0.05, 0.05, 0.05, "modelled", "5.0 % (modelled)"),
    ],
)
def test_bounds_that_say_nothing_are_not_printed(ratio: float, low: float, high: float, basis: str, said: str) -> None:
    """No interval of one number, none that ends at its figure, and no lower bound that is next to nothing."""
    cost = msgspec.convert({"ratio": ratio, "low": low, "high": high, "ns_per_step": 1, "basis": basis}, Cost)
    assert words.share(cost) == said
    assert words.cost_text(cost, between_steps=False) == f"costs {said} of the step"


def test_a_bound_of_nothing_is_not_printed() -> None:
    """Of an unknown cost the upper bound is said, unless it is 0: then nothing is known."""
    cost = msgspec.convert({"ratio": 0.0, "low": 0.0, "high": 0.3, "ns_per_step": 0, "basis": "unknown"}, Cost)
    assert words.cost_text(cost, between_steps=False) == "cost unknown, at most 30 % of the step"
    assert words.cost_text(msgspec.structs.replace(cost, high=0.0), between_steps=False) == "cost unknown"


@pytest.mark.parametrize(("line", "text"), [(41, "train.py:41 main"), (0, "train.py main")])
def test_a_place_without_a_line_names_none(line: int, text: str) -> None:
    """Code that Python made by itself has no line, such as a jump back to the head of a loop."""
    assert words.place_text(Place(file="train.py", line=line, function="main")) == text
