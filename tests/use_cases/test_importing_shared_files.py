"""Every file of the shared data, imported and reported as a user would: counts, sums, steps, findings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from stepscope.diagnosis.analyze import report_of
from stepscope.model.report.report import Report
from stepscope.readers.xplane import xspace
from stepscope.report import html, markdown, text
from stepscope.store import open_session
from stepscope.tables.optrace import OpTrace
from stepscope.use_cases.importing import import_files

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout"),
    pytest.mark.timeout(180),
]
XPLANE = ("gpu-multi-worker", "jax-cpu", "tf-cpu-input-bound", "tf-cpu-input-fixed", "tpu-inference")
KINETO = sorted(path.name for path in (DATA / "kineto").glob("*.gz"))
ODD = sorted(path.name for path in (DATA / "trace-event").glob("*.json"))
NEVER_RAN = {"amd-mi250-minitoy.json.gz": 1}
"""Markers at the end of a file of 49 us in which no op ran."""
NOISE = "ThreadpoolListener::"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file, imported."""

    trace: OpTrace
    """As the session holds it."""
    report: Report

    @property
    def codes(self) -> list[str]:
        """The findings above info."""
        return [f.code for f in self.report.findings if f.severity != "info"]


FOLDER = TemporaryDirectory()
"""Of the sessions: their traces are read from there, until the tests have ended."""


@cache
def _imported(name: str) -> Seen:
    """Import a file into a session, once for all tests; what is kept is what was read back."""
    folder = Path(FOLDER.name) / str(len(list(Path(FOLDER.name).iterdir())))
    folder.mkdir()
    session = open_session(import_files([DATA / name], folder / "s.stepscope").session)
    return Seen(trace=session.op_traces[0].load(), report=report_of(session))


@pytest.mark.parametrize("name", XPLANE)
def test_an_xspace(name: str) -> None:
    """Every plane has its events and the exact sum of their durations, less the noise, which is counted."""
    file = f"{name}.xplane.pb"
    truth = json.loads((DATA / "xplane" / "expected.json").read_text())[file]
    seen = _imported(f"xplane/{file}")
    (told,) = seen.report.op_traces
    assert told.events + sum(told.left_out.values()) == truth["total_events"]
    assert {p.name: p.events for p in told.planes}.items() <= {p["name"]: p["events"] for p in truth["planes"]}.items()
    whole = xspace.read_file(DATA / "xplane" / file, keep_noise=True)
    noisy = np.array([text.startswith(NOISE) for text in whole.strings], np.bool_)[whole.names()]
    for plane, stated in zip(seen.trace.planes, truth["planes"], strict=True):
        first, last = whole.rows_of(whole.planes[plane.index])
        noise = int(whole.events.dur_ps()[first:last][noisy[first:last]].sum())
        stored = int(seen.trace.events.dur_ps()[slice(*seen.trace.rows_of(plane))].sum())
        assert (plane.name, stored + noise) == (
            stated["name"],
            sum(line.get("sum_duration_ps", 0) for line in stated["lines"]),
        )


@pytest.mark.parametrize("name", KINETO)
def test_a_kineto_file(name: str) -> None:
    """Every category has its events and the sum of their durations; the steps are the stated ones."""
    truth = json.loads((DATA / "kineto" / "expected.json").read_text())[name]
    seen = _imported(f"kineto/{name}")
    codes, texts = seen.trace.texts("cat")
    dur = seen.trace.events.dur_ps()
    for category, (count, total_us) in truth["cat_count_sum_us"].items():
        mine = codes == texts.index(category.lower())
        assert (int(mine.sum()), dur[mine].sum() / 1e6) == (count, pytest.approx(total_us, abs=0.01)), category
    marked = [row for row in truth["steps_us"] if row[1] != "gpu_user_annotation"]
    marked = marked[: len(marked) - NEVER_RAN.get(name, 0)]
    (told,) = seen.report.op_traces
    assert (told.steps[0].count if told.steps else 0) == len(marked)
    assert told.events == len(seen.trace.events)


def test_run_metadata_and_timeline() -> None:
    truth = json.loads((DATA / "tf1" / "expected.json").read_text())
    seen = _imported("tf1/run_metadata.pb")
    (device,) = truth["devices"]
    assert seen.report.ops is not None
    assert (seen.report.ops.ns, sum(op.calls for op in seen.report.ops.ops)) == (
        device["sum_all_end_rel_ns"],
        device["nodes"],
    )
    timeline = _imported("tf1/timeline.json")
    assert timeline.report.ops is not None
    assert timeline.report.ops.ns == truth["timeline"]["sum_dur_us"] * 1_000
    assert timeline.report.op_traces[0].events == truth["timeline"]["ph"]["X"]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_trace(name: str) -> None:
    """Whatever is odd about it, it has a report, and nothing is found in it."""
    seen = _imported(f"trace-event/{name}")
    assert seen.codes == []
    assert seen.report.op_traces[0].events == len(seen.trace.events)


FOUND = {
    "xplane/jax-cpu.xplane.pb": (
        "GRF010",
        "jit_train_step was compiled again in step 6",
        "f32[128,256] became f32[96,256]",
    ),
    "xplane/jax-cpu.trace.json.gz": ("GRF010", "jit_train_step was compiled again in step 6"),
    "xplane/tf-cpu-input-bound.xplane.pb": ("INP007", "Map stage takes 25.8 ms per batch", "98 % of it in Python"),
    "kineto/resnet50_num_workers_0.pt.trace.json.gz": (
        "INP007",
        "makes each batch in the training process",
        "45.5 ms per batch",
    ),
    "kineto/resnet50_num_workers_4.pt.trace.json.gz": ("KRN004", "in 32 bits for 46 % of the step"),
    "xplane/gpu-multi-worker.xplane.pb": ("KRN005", "665 kernels a step"),
    "xplane/tpu-inference.xplane.pb": ("KRN002", "97 % of the step", "in the host's memory", "15 GiB fetched"),
}
"""What comes first, and parts of its title."""
BEHIND = {"kineto/resnet50_num_workers_0.pt.trace.json.gz": ["KRN004"]}
"""What is found as well: both files of this training compute in 32 bits on a GPU with tensor cores."""
CLEAN = (
    "xplane/tf-cpu-input-fixed.xplane.pb",
    "kineto/torch-cpu-2.13.json.gz",
    "tf1/run_metadata.pb",
)


@pytest.mark.parametrize("name", FOUND)
def test_what_is_known_of_a_file_is_found(name: str) -> None:
    code, *said = FOUND[name]
    seen = _imported(name)
    assert seen.codes == [code, *BEHIND.get(name, [])]
    for part in said:
        assert part in seen.report.findings[0].title


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_a_file_without_a_known_problem(name: str) -> None:
    assert _imported(name).codes == []


@pytest.mark.parametrize("name", [*FOUND, *CLEAN, *(f"kineto/{name}" for name in KINETO)])
def test_every_detector_looked_or_says_why_not(name: str) -> None:
    """None failed; one that needs a run says so, and names no signal that no file could hold."""
    report = _imported(name).report
    assert report.diagnostics == ()
    for checked in report.checked:
        assert checked.outcome != "failed"
        assert set(checked.missing) <= {"measured run", "op trace of some steps", "op trace with GPU or TPU work"}


@pytest.mark.parametrize("name", [f"xplane/{name}.xplane.pb" for name in XPLANE] + [f"kineto/{n}" for n in KINETO])
def test_what_was_not_captured_is_never_called_idle(name: str) -> None:
    """A plane without events is listed as not captured in all reports, and idle times are of a captured device."""
    seen = _imported(name)
    shown = text.render(seen.report, width=4000)
    empty = [plane.name for plane in seen.report.op_traces[0].planes if not plane.events]
    for plane in empty:
        assert not re.search(rf"{re.escape(plane)} idle", shown)
    if empty:
        assert "not captured, which does not mean idle" in shown
        assert empty[0] in markdown.render(seen.report)
        assert "not captured" in html.render(seen.report)
    traced = seen.report.traced
    if traced is not None and traced.idle is not None:
        assert traced.idle.device not in empty


@pytest.mark.parametrize("name", [*FOUND, *CLEAN])
def test_the_parts_of_the_traced_steps_add_up(name: str) -> None:
    traced = _imported(name).report.traced
    assert traced is not None
    assert sum(part.ratio for part in traced.parts) == pytest.approx(1)
    assert traced.parts[0].ratio == max(part.ratio for part in traced.parts)


def test_the_pipeline_of_the_bound_file_blocks_at_its_map() -> None:
    traced = _imported("xplane/tf-cpu-input-bound.xplane.pb").report.traced
    assert traced is not None
    assert [(s.name, s.ops[:1]) for s in traced.pipeline if s.blocking] == [("Map", ("PyFunc",))]
    assert traced.pipeline[0].depth == 0
