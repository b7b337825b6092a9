"""``stepscope import`` of the files of several ranks: one report that says for whom the others wait, and why."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepscope.cli.main import cli
from stepscope.model.report.cluster import MemberRow
from stepscope.model.report.report import Report
from stepscope.readers.importers import places
from stepscope.report import html, markdown, text
from stepscope.report.brief import text as brief
from stepscope.sessions.analysis import analyze
from stepscope.tables.errors import FormatError
from stepscope.use_cases.comparing import numbers
from stepscope.use_cases.importing import import_files

DATA = Path(__file__).resolve().parents[1] / "data" / "traced-ranks"
SHARED = Path(__file__).resolve().parents[3] / "shared"
STEP = 100_000
"""us."""
OTHER_WORK = 5_000


def _file(
    folder: Path,
    rank: int | None,
    own: Sequence[int],
    *,
    size: int = 2,
    first: int = 0,
    name: str = "",
    exchange: bool = True,
    loads: bool = False,
    at: int = 0,
    marker: str = "ProfilerStep#{}",
) -> Path:
    """A rank's trace of PyTorch: steps of 100 ms, ``own`` us of each in an op (or a DataLoader), the rest in an
    exchange.
    """
    events: list[dict[str, object]] = []
    for i, busy in enumerate(own):
        begin = at + 1000 + i * STEP
        span = {"ph": "X", "pid": 7, "tid": 7, "args": {}}
        kind = ("user_annotation", "enumerate(DataLoader)#_Single.__next__") if loads else ("cpu_op", "aten::mm")
        events += [
            {**span, "cat": "user_annotation", "name": marker.format(first + i), "ts": begin, "dur": STEP - 20},
            {**span, "cat": "cpu_op", "name": "aten::add", "ts": begin + 100, "dur": OTHER_WORK},
            {**span, "cat": kind[0], "name": kind[1], "ts": begin + 100 + OTHER_WORK, "dur": busy},
        ]
        if exchange:
            entered = begin + 100 + OTHER_WORK + busy
            left = {"ts": entered, "dur": begin + STEP - 100 - entered}
            events.append({**span, "cat": "user_annotation", "name": "gloo:all_reduce", "tid": 9, **left})
    head: dict[str, object] = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000}
    if rank is not None:
        head["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": size}
    path = folder / (name or f"rank{rank}.json")
    path.write_text(json.dumps({**head, "traceEvents": events}))
    return path


def _report(folder: Path, *files: Path) -> Report:
    return analyze(import_files(files, folder / "all.stepscope").session)


def _codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity != "info"]


def _row(report: Report, name: str) -> MemberRow:
    assert report.cluster is not None
    return next(row for row in report.cluster.members if row.name == name)


def _recorded(names: str, folder: Path) -> list[Path]:
    """Real recordings (tests/data/traced-ranks), unpacked."""
    made = []
    for packed in sorted(DATA.glob(f"{names}*.xz")):
        made.append(folder / packed.name.removesuffix(".xz"))
        made[-1].write_bytes(lzma.decompress(packed.read_bytes()))
    return made


@pytest.mark.parametrize("order", [1, -1])
def test_the_slow_rank_of_a_real_job_is_named_with_its_cause(order: int, tmp_path: Path) -> None:
    """Whatever the order of the files: rank 1 loads each batch for 32 ms, rank 0 is in the all-reduce meanwhile."""
    report = _report(tmp_path, *_recorded("input", tmp_path)[::order])
    finding, cause = report.findings[:2]
    assert (finding.code, finding.pipeline_stage) == ("DST001", "preprocessing")
    assert finding.title.startswith("rank 1 holds the other back: ")
    assert "of it waiting for the next batch" in finding.title
    assert (cause.code, cause.title.partition(":")[0]) == ("INP007", "rank 1")
    fast, slow = _row(report, "rank 0"), _row(report, "rank 1")
    assert slow.waits_ns == 0
    assert (fast.waits_ns or 0) > 30e6
    assert (slow.own_ns or 0) > 30e6
    assert (fast.own_ns or 30e6) < 5e6
    assert (slow.first and slow.first.code, fast.first) == ("INP007", None)
    assert (slow.file, slow.steps, slow.paired_by) == ("input-rank1.json", 7, "number")
    assert report.cluster is not None
    assert (report.cluster.common_steps, report.cluster.missing) == (7, ())


def test_a_rank_that_computes_more_in_the_three_steps_of_a_real_job(tmp_path: Path) -> None:
    """Fewer than five steps: less confidence."""
    report = _report(tmp_path, *_recorded("compute", tmp_path))
    (finding,) = [one for one in report.findings if one.code == "DST001"]
    assert finding.title.startswith("rank 2 holds the others back: ")
    assert "of it ops on the host's CPUs" in finding.title
    assert (finding.confidence, finding.pipeline_stage, finding.remedies[0].id) == (
        0.6,
        "forward-backward",
        "equal-compute",
    )
    assert report.traced is not None
    assert report.traced.file == "compute-rank2.json"


def test_ranks_that_do_the_same_are_not_blamed(tmp_path: Path) -> None:
    report = _report(tmp_path, *_recorded("even", tmp_path))
    assert _codes(report) == []
    assert next(c.outcome for c in report.checked if c.detector == "DST001") == "clear"


def test_two_hosts_of_a_real_job_of_tensorflow(tmp_path: Path) -> None:
    """They have no rank, but a name each."""
    report = _report(tmp_path, *_recorded("node", tmp_path))
    assert [one.code for one in report.findings[:2]] == ["DST001", "INP007"]
    assert report.findings[0].title.startswith("host node1 holds the other back: ")
    assert report.findings[1].title.startswith("host node1: the input pipeline's Map stage")
    assert (_row(report, "host node1").rank, _row(report, "host node1").waits_ns) == (None, 0)


def test_the_texts_have_every_rank_and_offer_no_other_import(tmp_path: Path) -> None:
    report = _report(tmp_path, *_recorded("input", tmp_path))
    short, long = brief.render(report), text.render(report, verbose=True)
    assert "Rank 1 holds the other back" in short
    assert "members     2 of 2 tasks (torch.distributed, gloo)" in short
    assert "not analysed" not in short
    assert len(short.splitlines()) <= 12
    for said in (long, html.render(report), markdown.render(report)):
        assert "rank 0: step" in said
        assert "rank 1: step" in said
    assert "other file  input-rank0.json: " in long


@pytest.mark.parametrize("loads", [True, False])
@pytest.mark.parametrize("ranks", [2, 4])
def test_waits_are_what_the_slowest_does_longer(ranks: int, loads: bool, tmp_path: Path) -> None:
    """Each has 5 ms of ops and its part; the exchange takes what is left."""
    own = [1_000] * ranks
    own[ranks - 1] = 61_000
    files = [
        _file(tmp_path, rank, [busy] * 7, size=ranks, loads=loads and rank == ranks - 1)
        for rank, busy in enumerate(own)
    ]
    report = _report(tmp_path, *files)
    assert [_row(report, f"rank {rank}").waits_ns for rank in range(ranks)] == [60e6] * (ranks - 1) + [0]
    finding = report.findings[0]
    word = "waiting for the next batch" if loads else "ops on the host's CPUs"
    assert finding.title.startswith(f"rank {ranks - 1} holds the other")
    assert f"60 ms more in each step, 60 ms of it {word}; without that, a step takes 60 % less" in finding.title
    assert finding.cost.ratio == pytest.approx(0.6)
    assert report.cluster is not None
    assert report.cluster.exchange_ns == pytest.approx(33.8e6)


def test_a_step_that_none_waited_for_is_not_blamed(tmp_path: Path) -> None:
    """Rank 1 has more work, which its exchange hides: its step is not longer, and the other does not wait."""
    files = [_file(tmp_path, 0, [1_000] * 7), _file(tmp_path, 1, [1_000] * 7)]
    traced = json.loads(files[1].read_text())
    for event in traced["traceEvents"]:
        if event["name"] == "aten::mm":
            event["dur"] = 50_000
    files[1].write_text(json.dumps(traced))
    assert "DST001" not in _codes(_report(tmp_path, *files))


def test_steps_are_paired_by_their_numbers(tmp_path: Path) -> None:
    """The slow steps of rank 1 are those of rank 0's long exchanges, though it was recorded from two steps later."""
    slow = [41_000, 1_000] * 5
    files = [
        _file(tmp_path, 0, [1_000] * 10),
        _file(tmp_path, 1, slow[2:], first=2, at=2 * STEP),
    ]
    report = _report(tmp_path, *files)
    assert report.cluster is not None
    assert report.cluster.common_steps == 7
    assert _row(report, "rank 0").waits_ns == pytest.approx(40e6 * 4 / 7)


def test_steps_without_numbers_are_paired_by_their_ends(tmp_path: Path) -> None:
    """Spans of the program's, of which rank 1 lacks the first two."""
    slow = [41_000, 1_000] * 5
    files = [
        _file(tmp_path, 0, [1_000] * 10, marker="train_step"),
        _file(tmp_path, 1, slow[2:], at=2 * STEP, marker="train_step"),
    ]
    report = _report(tmp_path, *files)
    assert report.cluster is not None
    assert report.cluster.common_steps == 7
    assert _row(report, "rank 1").paired_by == "clock"
    assert _row(report, "rank 0").waits_ns == pytest.approx(40e6 * 4 / 7)


def test_no_step_in_common_is_said(tmp_path: Path) -> None:
    files = [_file(tmp_path, 0, [1_000] * 4), _file(tmp_path, 1, [61_000] * 4, first=20, at=20 * STEP)]
    report = _report(tmp_path, *files)
    assert report.cluster is not None
    assert report.cluster.text == "waits are not compared: no step's number is in all of the files"
    checked = next(c for c in report.checked if c.detector == "DST001")
    assert (checked.outcome, checked.hint) == ("undecided", report.cluster.text)


def test_ranks_without_an_exchange_are_told_side_by_side(tmp_path: Path) -> None:
    files = [_file(tmp_path, rank, [busy] * 6, exchange=False) for rank, busy in ((0, 1_000), (1, 61_000))]
    report = _report(tmp_path, *files)
    assert "DST001" not in _codes(report)
    assert report.cluster is not None
    assert report.cluster.text == "waits are not compared: the files show no exchange between the ranks"
    assert [row.step_ns for row in report.cluster.members] == [100e6, 100e6]
    assert (_row(report, "rank 0").own_ns, _row(report, "rank 0").gain) == (None, None)


def test_a_rank_whose_file_shows_no_exchange_is_not_compared(tmp_path: Path) -> None:
    """Its whole step would count as what it does alone."""
    files = [_file(tmp_path, rank, [1_000] * 7, size=3, exchange=rank < 2) for rank in range(3)]
    report = _report(tmp_path, *files)
    assert "DST001" not in _codes(report)
    assert _row(report, "rank 2").own_ns is None
    assert _row(report, "rank 1").waits_ns == 0


def test_one_step_in_common_blames_none(tmp_path: Path) -> None:
    files = [_file(tmp_path, rank, [busy] * 2) for rank, busy in ((0, 1_000), (1, 61_000))]
    report = _report(tmp_path, *files)
    assert "DST001" not in _codes(report)
    assert (_row(report, "rank 0").waits_ns, _row(report, "rank 1").gain) == (60e6, None)


def _missing(folder: Path) -> list[Path]:
    return [_file(folder, rank, [1_000] * 4, size=4) for rank in (0, 1, 3)]


def _without_rank(folder: Path) -> list[Path]:
    return [
        _file(folder, 0, [1_000] * 4),
        _file(folder, 1, [1_000] * 4),
        _file(folder, None, [1_000] * 4, name="x.json"),
    ]


def _another_job(folder: Path) -> list[Path]:
    files = [_file(folder, 0, [1_000] * 4), _file(folder, 1, [1_000] * 4)]
    return [*files, _file(folder, 1, [1_000] * 4, size=8, name="x.json")]


def _one_twice(folder: Path) -> list[Path]:
    files = [_file(folder, 0, [1_000] * 4), _file(folder, 1, [1_000] * 4)]
    return [*files, _file(folder, 1, [1_000] * 4, name="x.json")]


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        (_missing, "DX191", "rank 2 of the job's 4 ranks has no file here"),
        (_without_rank, "DX198", "x.json says no rank (distributedInfo)"),
        (_another_job, "DX198", "x.json (rank 1 of 8, gloo) is of another job than "),
        (_one_twice, "DX198", "rank1.json and x.json are both rank 1, at the same time"),
    ],
)
def test_what_is_missing_or_not_compared_is_said(
    files: Callable[[Path], list[Path]], code: str, said: str, tmp_path: Path
) -> None:
    """By the command and by the report, once each."""
    given = [str(file) for file in files(tmp_path)]
    session = tmp_path / "s.stepscope"
    shown = CliRunner().invoke(cli, ["import", *given, "-o", str(session)])
    assert shown.exit_code == 0
    assert shown.output.count(said) == 1
    report = analyze(session)
    assert [d.code for d in report.diagnostics if said in d.text] == [code]
    assert report.cluster is not None


def test_a_folder_stands_for_its_traces(tmp_path: Path) -> None:
    """Not for other JSON in it, nor for a broken file."""
    files = [_file(tmp_path, rank, [1_000] * 4) for rank in (0, 1)]
    (tmp_path / "settings.json").write_text('{"batch": 3}')
    (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
    assert places.files(tmp_path) == files
    (tmp_path / "none").mkdir()
    with pytest.raises(FormatError, match=r"no trace of PyTorch's profiler"):
        places.files(tmp_path / "none")


def test_compare_takes_the_steps_of_the_file_that_it_names(tmp_path: Path) -> None:
    """The rank that the others wait for, which is not the last by name."""
    sessions = []
    for side, busy in (("before", 61_000), ("after", 31_000)):
        (tmp_path / side).mkdir()
        files = [_file(tmp_path / side, 0, [busy] * 9), _file(tmp_path / side, 1, [1_000] * 6)]
        sessions.append(import_files(files, tmp_path / f"{side}.stepscope").session)
    found = [numbers.of_path(session) for session in sessions]
    assert [(one.steps, len(one.durations)) for one in found if one.durations is not None] == [(8, 8), (8, 8)]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")
def test_two_of_128_ranks_on_gpus(tmp_path: Path) -> None:
    """HTA's sample: of two markers each the last is not whole, so one step is compared, and none is blamed by it."""
    files = [SHARED / "data" / "kineto" / f"hta-sampled-rank{rank}.json.gz" for rank in (0, 1)]
    report = _report(tmp_path, *files)
    assert report.cluster is not None
    assert (report.cluster.launcher, report.cluster.tasks) == ("torch.distributed, nccl", 128)
    assert (len(report.cluster.missing), report.cluster.common_steps) == (100, 1)
    assert "DST001" not in _codes(report)
    assert next(c.outcome for c in report.checked if c.detector == "DST001") == "undecided"
    assert (_row(report, "rank 0").waits_ns or 0) > 0
    assert _row(report, "rank 1").waits_ns == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")
def test_the_smallest_files_of_two_ranks_are_both_analysed(tmp_path: Path) -> None:
    files = [SHARED / "surprises" / "files" / f"rank_{name}.json" for name in "ab"]
    report = _report(tmp_path, *files)
    assert report.cluster is not None
    assert [row.file for row in report.cluster.members] == ["rank_a.json", "rank_b.json"]
    assert report.traced is not None
    assert [one.analysed for one in report.traced.others] == [True]
