"""``stepscope import`` of several files: each line says which file it is about, and none of them is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from stepscope.model.report.report import Report
from stepscope.report import html, markdown, text
from stepscope.report.brief import text as brief
from stepscope.sessions.analysis import analyze
from stepscope.use_cases.importing import import_files

STEP = 100_000


def _rank(folder: Path, name: str, *, busy: int, steps: int = 6) -> Path:
    """A rank's trace of PyTorch: steps of 100 ms, ``busy`` us of each in an op."""
    events = []
    for i in range(steps):
        at = 1000 + i * STEP
        span = {"ph": "X", "pid": 7, "tid": 7, "args": {}}
        events += [
            {**span, "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": at, "dur": STEP - 20},
            {**span, "cat": "cpu_op", "name": "aten::mm", "ts": at + 1000, "dur": busy},
        ]
    path = folder / name
    path.write_text(
        json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000, "traceEvents": events})
    )
    return path


def _report(folder: Path, *files: Path) -> Report:
    return analyze(import_files(files, folder / "all.stepscope").session)


@pytest.fixture(params=["ab", "ba"])
def ranks(request: pytest.FixtureRequest, tmp_path: Path) -> Report:
    """Two ranks of one job, in either order: a waits, b computes."""
    files = {"a": _rank(tmp_path, "rank_a.json", busy=10_000), "b": _rank(tmp_path, "rank_b.json", busy=90_000)}
    return _report(tmp_path, *(files[name] for name in request.param))


def test_each_file_s_steps_are_told_with_its_name(ranks: Report) -> None:
    traced = ranks.traced
    assert traced is not None
    (other,) = traced.others
    busy = {traced.file: traced.parts, other.file: other.parts}
    assert {file: {p.part: round(p.ratio, 1) for p in parts}["host-compute"] for file, parts in busy.items()} == {
        "rank_a.json": 0.1,
        "rank_b.json": 0.9,
    }
    assert (other.count, other.mean_ns) == (5, STEP * 1000)


def test_the_lines_of_the_terminal_the_page_and_the_issue_say_it(ranks: Report) -> None:
    assert ranks.traced is not None
    mine, other = ranks.traced.file, ranks.traced.others[0].file
    long = text.render(ranks, verbose=True)
    assert f"100 ms on average over 5 traced steps of {mine}" in long
    assert f"other file  {other}: 100 ms on average over 5 traced steps" in long
    assert f"in 6 traced steps of {mine}" in long
    assert f"no findings about the steps of {mine}" in long
    assert f"imported    {mine} · kineto · 12 events · one of 2 files" in brief.render(ranks)
    for other_form in (markdown.render(ranks), html.render(ranks)):
        assert f"{other}: 100 ms on average" in other_form.replace("\\", "")


def test_which_is_analysed_does_not_depend_on_the_order_of_the_files(ranks: Report) -> None:
    """Of equal ones the last by name, which of the cycles of one profile is the newest."""
    assert ranks.traced is not None
    assert ranks.traced.file == "rank_b.json"


def test_what_was_not_analysed_has_the_next_command(ranks: Report) -> None:
    """With what its steps do: here it differs, which is what there is to see."""
    assert (
        "findings about rank_a.json (other Python 90 % of its steps), not analysed: stepscope import rank_a.json"
        in " ".join(brief.render(ranks, width=100).split())
    )


def test_captures_of_a_measured_job_are_no_files_to_import(ranks: Report) -> None:
    """A job of which two parts were traced was analysed whole."""
    assert ranks.session.processes == 0
    measured = replace(ranks, session=replace(ranks.session, processes=1, steps=6, end=""))
    shown = brief.render(measured, width=200)
    assert "not known" in shown
    assert "not analysed" not in shown


def test_of_many_files_some_are_named(tmp_path: Path) -> None:
    files = [_rank(tmp_path, f"rank {n}.json", busy=10_000 * n) for n in (1, 5, 7, 9)]
    said = " ".join(brief.render(_report(tmp_path, *reversed(files)), width=200).split())
    assert "imported rank 9.json" in said
    assert "findings about rank 1.json (other Python 90 % of its steps), rank 5.json" in said
    assert "and 1 more, not analysed: stepscope import FILE, one at a time" in said


def test_one_file_is_not_named_again(tmp_path: Path) -> None:
    report = _report(tmp_path, _rank(tmp_path, "only.json", busy=10_000))
    assert report.traced is not None
    assert (report.traced.file, report.traced.others) == ("", ())
    assert "traced steps of" not in text.render(report, verbose=True)


@pytest.mark.parametrize(("more", "shown"), [(7, "short.json"), (5, "long.json")])
def test_cycles_of_one_profile_are_told_one_by_one(more: int, shown: str, tmp_path: Path) -> None:
    files = _rank(tmp_path, "long.json", busy=10_000), _rank(tmp_path, "short.json", busy=10_000, steps=more)
    report = _report(tmp_path, *files)
    assert report.traced is not None
    assert [report.traced.file, *(one.file for one in report.traced.others)] == [
        shown,
        *({"long.json", "short.json"} - {shown}),
    ]
