"""The report as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from stepscope.report import markdown, marked

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from stepscope.model.report.report import Report


def test_golden(report: Report, name: str, samples: ModuleType, golden: Callable[[str, str], None]) -> None:
    """The Markdown of every sample is as reviewed."""
    golden(f"{name}.md", markdown.render(report, sources={"/home/ann/demo/train.py": samples.SOURCE}))


def test_tables_are_whole(report: Report) -> None:
    """Every row of a table has as many cells as its head, whatever names hold."""
    for block in markdown.render(report).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_hostile_names_are_escaped(samples: ModuleType) -> None:
    """No tag, no mention, no fence comes through from the session."""
    shown = markdown.render(samples.hostile())
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", shown)
    assert not re.search(r"(?<!\\)<", outside)
    assert "@somebody" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("a|b", "`a\\|b`"), ("", ""), ("a\nb", "`a b`")],
)
def test_code_spans(text: str, span: str) -> None:
    """A code span holds backticks, pipes and line breaks without ending."""
    assert marked.code(text) == span
