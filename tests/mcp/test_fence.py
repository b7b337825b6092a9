"""What is fenced: all text that a field's type does not close."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.mcp import fence
from stepscope.model.api.rest_api import Source, StepDetails
from stepscope.model.api.timeline import SpanStatistics
from stepscope.model.report.brief import Brief
from stepscope.model.report.compare import CompareReport
from stepscope.model.report.op_table import OpTable
from stepscope.model.report.report import Report
from stepscope.model.report.whatif import WhatIfReport
from stepscope.tables.check_report import CheckReport

from .hostile import HIDDEN, TEXTS, Foreign, filled, leaks

RECORDS = (Brief, CheckReport, CompareReport, OpTable, Report, Source, SpanStatistics, StepDetails, WhatIfReport)


class Mixed(msgspec.Struct):
    """A record of each kind of text."""

    word: Literal["a", "b"]
    free: str
    both: Literal["a"] | str
    listed: tuple[str, ...]
    shares: dict[str, float]
    empty: str = ""


@pytest.mark.parametrize("kind", RECORDS)
@given(text=TEXTS)
@settings(max_examples=5)
def test_no_text_of_a_job_leaves_its_fence(kind: Foreign, text: str) -> None:
    """Whatever record is answered: a text in any of its fields stands below a key that says so, on one line."""
    assert leaks(msgspec.json.encode(fence.fenced(filled(kind, text)))) == []


def test_the_type_decides() -> None:
    """Words of a closed set are ours, all others the job's; a mapping becomes pairs, what is empty is left out."""
    record = Mixed(word="a", free="x", both="a", listed=("y",), shares={"z": 0.123456})
    assert fence.fenced(record) == {
        "word": "a",
        "untrusted_free": "x",
        "untrusted_both": "a",
        "untrusted_listed": ["y"],
        "untrusted_shares": [["z", 0.1235]],
    }


def test_a_code_is_ours_only_if_it_is_one() -> None:
    """A stored report may hold anything where a code should be."""
    from stepscope.tables.findings import Diagnostic

    assert fence.fenced(Diagnostic(code="DX108", text="x")) == {"code": "DX108", "untrusted_text": "x"}
    assert "untrusted_code" in fence.fenced(Diagnostic(code="DX108\u0661", text="x"))


@given(st.text(), st.integers(0, 50))
@settings(max_examples=40)
def test_an_escaped_text_hides_nothing_and_fits(text: str, room: int) -> None:
    """No control, format or unassigned character is left, and it is no longer than there is room for."""
    import unicodedata

    shown = fence.escaped(text, room)
    assert not any(unicodedata.category(char) in HIDDEN for char in shown)
    assert not room or len(shown) <= room
    assert fence.escaped("a\n\x1b\u202e\ud800\U000e0041") == r"a\n\x1b\u202e\ud800\U000e0041"
