"""The mean turn in the report's formats."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from msgspec.structs import replace

from stepscope.model.report.report import Report
from stepscope.model.report.turns import TurnPart, Turns
from stepscope.report import html, json_report, markdown, text, words
from stepscope.report.document import turns as turn_lines
from stepscope.tables.findings import Cost
from stepscope.tables.place import Place

MS = 1_000_000
LOAD = Place(file="kfold.py", line=16, function="load_table")


@pytest.fixture
def turns() -> Turns:
    """Five folds, of which half is steps."""
    return Turns(
        count=5,
        call="fit",
        where=Place(file="kfold.py", line=31, function="main"),
        mean_ns=2_000 * MS,
        job_ratio=0.8,
        steady_ratio=0.5,
        parts=(
            TurnPart(phase="steps", ns=1_000 * MS, ratio=0.5),
            TurnPart(phase="between-steps", ns=960 * MS, ratio=0.48, where=(LOAD,)),
            TurnPart(phase="saving", ns=40 * MS, ratio=0.02),
        ),
    )


@pytest.fixture
def report(samples: ModuleType, turns: Turns) -> Report:
    """A report with turns."""
    found: Report = replace(samples.clean(), turns=turns)
    return found


def test_the_line(report: Report) -> None:
    """How many, how long, where, and the parts with the function that runs between the steps."""
    assert turn_lines.line(report) == [
        "5 of 2 s at kfold.py:31 main (fit)",
        "steps 1 s",
        "between steps 960 ms (load_table)",
    ]


def test_turns_of_little_but_steps_have_no_line(report: Report, turns: Turns) -> None:
    """Nor have jobs without turns."""
    plain = replace(turns, parts=(TurnPart(phase="steps", ns=1_900 * MS, ratio=0.95),))
    assert turn_lines.line(replace(report, turns=plain)) == []
    assert turn_lines.line(replace(report, turns=None)) == []


def test_turns_that_may_have_been_missed(turns: Turns) -> None:
    """Where some may not have been seen, there are more and shorter ones."""
    assert "5 or more of 2 s or less" in turn_lines.title(replace(turns, exact=False, call=""))


def test_every_format_holds_the_mean_turn(report: Report) -> None:
    """Terminal, Markdown, page and JSON."""
    assert "\nturns " in text.render(report)
    assert "### The mean turn" in markdown.render(report)
    assert "The mean turn" in html.render(report)
    assert json.loads(json_report.encode(report))["turns"]["parts"][1]["where"][0]["line"] == LOAD.line


@pytest.mark.parametrize(
    ("turn_ratio", "said"),
    [(0.1, "costs 20 % (10-30) of the step, 10 % of a turn"), (0.2, "costs 20 % (10-30) of the turn")],
    ids=["steps", "turns"],
)
def test_costs_say_what_they_are_a_share_of(turn_ratio: float, said: str) -> None:
    """Of the steps and of a turn, or of the turn alone."""
    cost = Cost(ratio=0.2, low=0.1, high=0.3, turn_ratio=turn_ratio)
    assert words.cost_text(cost, between_steps=False) == said
