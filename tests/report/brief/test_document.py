"""The report as JSON of at most 4,000 bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import msgspec
from msgspec.structs import replace

from stepscope.model.report.brief import MOST_BYTES, Brief
from stepscope.model.report.op_summary import OpTraceSummary, TracedSteps
from stepscope.report.brief import document
from stepscope.tables.findings import Remedy
from stepscope.tables.place import Place

if TYPE_CHECKING:
    from types import ModuleType

    from stepscope.model.report.report import Report

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "brief-1.json").read_text(encoding="utf-8"))


def test_every_report_fits_and_is_valid(report: Report) -> None:
    """Whatever is in a report, its short form is valid and has at most 4,000 bytes."""
    data = document.encode(report, "train.stepscope")
    assert len(data) <= MOST_BYTES
    jsonschema.validate(json.loads(data), SCHEMA)


def test_what_it_holds(samples: ModuleType) -> None:
    """The verdict, the step, three findings with place, cost, remedy and proof, and what is not known."""
    proof = "stepscope whatif --try parallel-map -- python train.py"
    remedy = Remedy(id="x", text="map in parallel", what_if=proof)
    report = samples.eight()
    report = replace(report, findings=(replace(report.findings[0], remedies=(remedy,)), *report.findings[1:]))
    brief = msgspec.json.decode(document.encode(report, "a.stepscope"), type=Brief)
    first = brief.findings[0]
    assert brief.verdict.startswith("Input-bound: 61 %")
    assert (first.code, first.cost.ratio, first.cost.of, first.remedy, first.proof) == (
        "INP000",
        0.3,
        "step",
        "map in parallel",
        proof,
    )
    assert first.where == report.findings[0].where[0]
    assert (len(brief.findings), brief.more_findings, brief.session) == (3, 5, "a.stepscope")
    assert brief.step is not None
    assert list(brief.step.parts) == ["input-wait", "call", "callbacks", "other-python"]
    assert brief.not_known[1].startswith("1 check could not decide: no schedstat")


def test_long_texts_are_cut_and_commands_are_whole_or_absent(samples: ModuleType) -> None:
    """Names of a program that do not end do not make the document large; half a command is none."""
    report = samples.input_bound()
    long = "é" * 5000
    remedy = Remedy(id="x", text=f"do {long}", what_if=f"stepscope whatif -- {long}")
    wide = replace(report.findings[0], title=long, where=(Place(file=long, line=1, function=long),), remedies=(remedy,))
    data = document.encode(replace(report, findings=(wide,) * 9), session_path=f"/{long}")
    assert len(data) <= MOST_BYTES
    brief = msgspec.json.decode(data, type=Brief)
    assert [finding.proof for finding in brief.findings] == [None] * 3
    assert brief.findings[0].remedy.endswith("…")
    assert brief.session == ""


def test_an_imported_file_has_its_format_and_its_steps(samples: ModuleType) -> None:
    """Nothing is known of the job's framework but who wrote the file; its steps are those of the trace."""
    trace = OpTraceSummary(name="import-001", file="trace.json", format="kineto", events=9)
    session = replace(samples.clean().session, processes=(), steps=0, framework="none")
    traced = TracedSteps(trace="import-001", count=29, name="ProfilerStep", mean_ns=8_780_636)
    report = replace(samples.clean(), session=session, op_traces=(trace,), traced=traced)
    brief = msgspec.json.decode(document.encode(report), type=Brief)
    assert brief.framework == "kineto"
    assert brief.step is not None
    assert (brief.step.count, brief.step.mean_ns) == (29, 8_780_636)
