"""The ledger in the report's formats."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from msgspec.structs import replace

from stepscope.model.report.ledger import NO_STEPS, PHASES, LedgerEntry, Phase, SettledBy
from stepscope.model.report.report import Report, StepMaker
from stepscope.report import html, json_report, ledger_rows, markdown, text
from stepscope.tables.place import Place

S = 1_000_000_000


def entry(phase: Phase, ns: int, component: str = "", settled_by: SettledBy = "small", text: str = "") -> LedgerEntry:
    """A part of a job of 100 s."""
    return LedgerEntry(phase=phase, component=component, ns=ns, ratio=ns / (100 * S), settled_by=settled_by, text=text)


WHERE = (Place(file="train.py", line=41, function="main"),)
ENTRIES = (
    entry("start", 1 * S),
    entry("imports", 9 * S, "", "unexplained", "keras, tensorflow"),
    entry("building", 300_000_000),
    replace(entry("steps", 50 * S, "call", "limit"), unobserved_ratio=0.8),
    replace(entry("steps", 20 * S, "input-wait", "finding"), code="INP003", where=WHERE),
    replace(entry("evaluation", 18 * S, "", "general"), code="GEN001"),
    entry("end", 1_400_000_000),
    entry("not-seen", 300_000_000),
)


@pytest.fixture
def report(samples: ModuleType) -> Report:
    """A job with one ledger."""
    made: Report = replace(samples.input_bound(), ledger=ENTRIES)
    return made


def test_the_line_names_parts_from_two_percent(report: Report) -> None:
    """The terminal shows one line of parts in the order of the job's life, steps as one, without small ones."""
    assert ledger_rows.line(report) == ["imports 9 s", "600 steps 70 s", "evaluation 18 s"]
    shown = text.render(report, width=120)
    assert "the job     imports 9 s \u00b7 600 steps 70 s \u00b7 evaluation 18 s\n" in shown
    assert shown.index("the step") < shown.index("the job")


@pytest.mark.parametrize(
    ("text", "word"),
    [(NO_STEPS, "the program"), (f"{NO_STEPS}; x", "the program"), ("Python up to the first step", "building")],
)
def test_a_job_without_steps_builds_nothing(report: Report, text: str, word: str) -> None:
    """Such as a server whose calls are not seen: its time is the program's."""
    alone = replace(report, ledger=(entry("building", 90 * S, text=text), entry("end", 10 * S)))
    assert ledger_rows.line(alone) == [f"{word} 90 s", "end 10 s"]
    assert ledger_rows.rows(alone.ledger)[0].label == word


def test_the_ledger_counts_the_steps_of_its_process(report: Report) -> None:
    """Another process that makes the same steps has its own time."""
    makers = tuple(
        StepMaker(kind="training", title="x", place=None, pid=pid, threads=1, count=150, rate=None, main=True)
        for pid in (100, 101)
    )
    both = replace(report, session=replace(report.session, steps=300, step_makers=makers))
    assert "150 steps 70 s" in ledger_rows.line(both)


def test_no_ledger_no_line(samples: ModuleType) -> None:
    """A report of an older stepscope, or of a session without a measured process, says nothing of the job's parts."""
    report = samples.input_bound()
    assert report.ledger == ()
    assert "the job" not in text.render(report)
    assert 'id="job"' not in html.render(report)
    assert "### The job" not in markdown.render(report)


def test_rows_say_what_settles_a_part() -> None:
    """Every part of at least half a percent has a row, small ones share one, and what was not seen is last."""
    rows = ledger_rows.rows(ENTRIES)
    assert [(row.label, row.settled) for row in rows] == [
        ("before the imports", ""),
        ("imports", "unexplained"),
        ("steps: compute", "as fast as it can be here"),
        ("steps: input wait", "finding INP003"),
        ("evaluation", "finding GEN001"),
        ("end", ""),
        ("the rest", ""),
        ("not seen", ""),
    ]
    assert sum(row.ns for row in rows) == 100 * S


def test_formats_hold_every_row(report: Report) -> None:
    """Page and Markdown have the parts with share, explanation and place."""
    page, plain = html.render(report), markdown.render(report)
    for shown in (page, plain):
        for words in ("The job", "steps: input wait", "finding INP003", "unexplained", "keras, tensorflow"):
            assert words in shown
    assert "train.py:41" in page.split('id="job"')[1].split("</section>")[0]
    assert "| steps: input wait | 20 % | 20 s | finding INP003 | `train.py:41 main` |" in plain


def test_makers_have_ledgers_of_their_own(report: Report) -> None:
    """The parts of each maker stand below its title, and count nothing towards the job's line."""
    maker = report.session.step_makers
    both = replace(report, ledger=(*ENTRIES, replace(entry("steps", 40 * S, "call"), maker=0)))
    assert maker == ()
    assert ledger_rows.line(both) == ledger_rows.line(report)
    assert len(ledger_rows.ledgers(both)) == 2


def test_text_from_the_program_is_escaped(report: Report) -> None:
    """Names of functions and files come from the session, and are no markup."""
    bad = replace(ENTRIES[1], text="<script>alert(1)</script>", where=(Place(file="<b>.py", line=1, function="<i>"),))
    page = html.render(replace(report, ledger=(bad,)))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>.py" not in page
    assert "\\<script\\>" in markdown.render(replace(report, ledger=(bad,)))


def test_json_holds_the_entries(report: Report) -> None:
    """report.json holds every field of every entry."""
    found = json.loads(json_report.encode(report))["ledger"]
    assert len(found) == len(ENTRIES)
    assert found[4]["settled_by"] == "finding"
    assert found[4]["where"][0]["line"] == 41
    assert found[0]["maker"] is None


def test_every_phase_has_words() -> None:
    """No phase is shown by its identifier."""
    assert tuple(ledger_rows.PHASES) == PHASES
