"""The report in at most twelve lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from tests.report.verdict_jobs import entry

from stepscope.report import terminal, text
from stepscope.report.brief import text as brief
from stepscope.tables.findings import Checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from stepscope.model.report.report import Report

SESSION = "train-1121-0130.stepscope"
PAGE = f"{SESSION}/report.html"


@pytest.mark.parametrize("width", [80, 120])
def test_golden(report: Report, name: str, width: int, golden: Callable[[str, str], None]) -> None:
    """The text of every sample at two widths is as reviewed."""
    golden(f"brief-{name}-{width}.txt", brief.render(report, width=width, session_path=SESSION, html_path=PAGE))


@pytest.mark.parametrize("width", [20, 60, 72, 80, 100, 120, 200])
def test_twelve_lines_at_any_width(report: Report, width: int) -> None:
    """Never more than twelve lines, none wider than the terminal, none that ends in a blank."""
    lines = brief.render(report, width=width, session_path=SESSION, html_path=PAGE).splitlines()
    assert len(lines) <= 12
    assert [line for line in lines if cell_len(line) > max(width, 60) or line != line.rstrip()] == []


def test_what_is_always_there(samples: ModuleType) -> None:
    """Verdict, step, at most three findings of two lines, what is not known, and where the rest is."""
    report = samples.eight()
    lines = brief.render(report, session_path=SESSION, html_path=PAGE).splitlines()
    assert lines[0].startswith("stepscope   Input-bound: ")
    assert lines[1].startswith("the step    78.9 ms (p95 96.1)")
    assert [line[0] for line in lines if re.match(r"\d ", line)] == ["1", "2", "3"]
    assert "not known" in lines[-3]
    assert lines[-1] == f"report      {PAGE} · 5 more: stepscope report {SESSION} -v"


def test_what_does_not_fit_is_counted(samples: ModuleType) -> None:
    """Where a narrow terminal has no room for a finding, it is among those that -v shows."""
    shown = brief.render(samples.eight(), width=60, session_path=SESSION, html_path=PAGE)
    numbers = re.findall(r"^\d", shown, flags=re.MULTILINE)
    assert len(numbers) < 3
    assert f"{8 - len(numbers)} more: stepscope report" in shown


def test_what_is_not_known(samples: ModuleType) -> None:
    """Unexplained time, blind detectors and problems are one item each; without them that is said."""
    blind = Checked(detector="A", name="a", outcome="undecided", missing=("op trace",), hint="stepscope trace JOB")
    other = [Checked(detector=code, name="b", outcome="not-applicable", hint="not applicable to JAX") for code in "BC"]
    report = replace(samples.clean(), ledger=(entry(0.4),), unexplained_ratio=0.4, checked=(blind, *other))
    shown = brief.render(report, width=200)
    assert (
        "not known   40 % of the time: compute · 2 checks are not for JAX · 1 check could not decide: no op trace "
        "(stepscope trace JOB)" in shown
    )
    assert "nothing: every check could decide" not in shown
    assert "not known   nothing: every check could decide" in brief.render(samples.clean())


def test_all_of_it_on_request(report: Report) -> None:
    """With -v a terminal shows the long text."""
    assert terminal.render(report, verbose=True) == text.render(report, verbose=True)
    assert terminal.render(report) == brief.render(report)


def test_colour_changes_no_word(report: Report) -> None:
    """Colours only add control sequences, and nothing of the session does."""
    plain = brief.render(report, session_path=SESSION)
    coloured = brief.render(report, session_path=SESSION, color=True)
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert plain.replace("\n", "").isprintable()


def test_a_price_is_told_where_it_is_asked_for(samples: ModuleType) -> None:
    """The price of samples is a line more, and still within the twelve."""
    lines = brief.render(samples.eight(), price=2.0, session_path=SESSION, html_path=PAGE).splitlines()
    assert [line for line in lines if line.startswith("cost ")]
    assert len(lines) <= 12
