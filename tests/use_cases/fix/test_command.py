"""The use case, with a program that is never run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from tests.report.samples import clean, finding
from tests.use_cases.fix.made_rounds import LOSS, runs

from stepscope.cli import fix as cli
from stepscope.model.report.fix import FixReport
from stepscope.model.report.report import Report
from stepscope.sandbox import isolation
from stepscope.tables.errors import TargetError, UsageError
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place
from stepscope.use_cases.fix import branches, command, said
from stepscope.use_cases.fix.candidates import Program
from stepscope.use_cases.fix.command import FixOptions
from stepscope.use_cases.fix.job import TooLongError
from stepscope.use_cases.fix.proof import Timed, TimeOverError

TEXT = (Path(__file__).with_name("program.txt")).read_text(encoding="utf-8")
MAP, PREDICT, SHUFFLE = ".batch(32).map(scale", "predict_on_batch", "rows.shuffle(10)"


class FakeJob:
    """A job of the time that ``cost`` says for a text."""

    def __init__(self, script: Path, cost: Callable[[str], float], logs: Callable[[str], said.Said]) -> None:
        self.script, self._cost, self._logs = script, cost, logs
        self.runs, self.spent_s, self.left_s, self.longest_s = 0, 1.0, 100.0, 1.0
        self.unchanged: list[said.Said] = []
        self.findings: tuple[Finding, ...] = (finding("HST003", where=(Place(file="train.py", line=12),), remedies=()),)
        self.too_long = False
        self.most_runs = 1000

    def look(self, texts: Mapping[str, bytes]) -> tuple[Report, Program]:
        """What the run suggests."""
        self.runs += 1
        if self.too_long:
            raise TooLongError
        own = {str(self.script): texts.get(str(self.script), self.script.read_bytes())}
        findings = self.findings if PREDICT not in own[str(self.script)].decode() else ()
        return replace(clean(), findings=findings), Program(texts=own, cwd=self.script.parent, version="2.20")

    def timed(self, texts: Mapping[str, bytes], what: str) -> Timed:
        """A run."""
        del what
        self.runs += 1
        if self.runs > self.most_runs:
            raise TimeOverError
        text = texts.get(str(self.script), self.script.read_bytes()).decode()
        logged = self._logs(text)
        if not texts:
            self.unchanged.append(logged)
        return runs(self._cost(text), noise=0.001, seed=self.runs, logged=logged)()


@pytest.fixture(name="job")
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJob:
    """The map costs half of the time, the predictions a third."""
    script = tmp_path / "train.py"
    script.write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    made = FakeJob(script, lambda text: 1e6 * (0.5 if MAP in text else 1.0) * (0.7 if PREDICT in text else 1.0), _same)
    monkeypatch.setattr(command, "Job", lambda *_: made)
    monkeypatch.setattr(isolation, "problem", lambda _: "")
    return made


def _same(text: str) -> said.Said:
    del text
    return LOSS


def fixed(**options: object) -> FixReport:
    """Run it."""
    return command.fix(replace(FixOptions(argv=("python", "train.py")), **options), lambda _: None)


def test_edits_are_kept_one_after_the_other_and_nothing_is_touched(job: FakeJob, tmp_path: Path) -> None:
    """The finding's edit first, then what the checker sees; what --allow is needed for is a question."""
    before = job.script.stat().st_mtime_ns
    report = fixed(output=tmp_path / "out.patch")
    assert [(one.code, one.outcome, one.kind) for one in report.edits] == [
        ("HST003", "kept", "same"),
        ("TFD002", "kept", "rule"),
    ]
    assert report.total.ratio == pytest.approx(0.35, rel=0.02)
    assert PREDICT in report.patch
    assert MAP in report.patch
    assert SHUFFLE not in report.patch
    assert [(one.code, one.file, one.allow) for one in report.questions] == [("TFD010", "train.py", "order")]
    assert (job.script.read_text(), job.script.stat().st_mtime_ns) == (TEXT, before)
    assert (tmp_path / "out.patch").read_text() == report.patch
    assert (report.repeatable, report.unproven, command.exit_code(report)) == (True, "", 0)


def test_what_changes_results_or_gains_nothing_is_not_in_the_patch(job: FakeJob) -> None:
    job._cost = lambda text: 1e6 * (1.2 if MAP in text else 1.0)
    job._logs = lambda text: said.of("loss 0.4" if PREDICT in text else "loss 0.5")
    report = fixed()
    assert [one.outcome for one in report.edits] == ["other-results", "no-gain"]
    assert report.edits[0].why == "0.5 became 0.4 in 'loss #'"
    assert (report.patch, command.exit_code(report)) == ("", 1)


def test_an_edit_that_gained_nothing_is_tried_again_once_another_is_kept(job: FakeJob) -> None:
    """Causes hide each other."""
    job._cost = lambda text: 1e6 * (0.5 if MAP in text else 1.0) * (0.7 if PREDICT in text and MAP in text else 1.0)
    assert [one.outcome for one in fixed().edits] == ["no-gain", "kept", "kept"]


def test_an_allowed_edit_is_tried(job: FakeJob) -> None:
    job._cost = lambda text: 1e6 * (0.5 if SHUFFLE in text else 1.0)
    job._logs = lambda text: said.of("loss 0.4" if SHUFFLE in text else "loss 0.5")
    report = fixed(allow=("order",))
    assert [(one.outcome, one.same) for one in report.edits if one.kind == "order"] == [("kept", "allowed")]


def test_a_run_that_takes_too_long_leaves_the_patch_unproven(job: FakeJob) -> None:
    """With the command that proves it; nothing that may change results is in it."""
    job.too_long = True
    report = fixed(seconds=60.0)
    assert {one.outcome for one in report.edits} == {"unproven"}
    assert MAP in report.patch
    assert SHUFFLE not in report.patch
    assert report.proof.startswith("stepscope fix --time=")
    assert (report.total.ratio, command.exit_code(report)) == (0.0, 3)


def test_without_isolation_nothing_runs(job: FakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "problem", lambda _: "not here")
    report = fixed()
    assert (job.runs, command.exit_code(report)) == (0, 3)
    assert "--against BRANCH" in report.proof


def test_time_that_is_over_ends_it(job: FakeJob) -> None:
    job.most_runs = 8
    report = fixed()
    assert ([one.outcome for one in report.edits], report.stop) == (["no-time"], "the time is over")


def test_a_look_at_a_patched_program_that_fails_ends_it(job: FakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    look = job.look

    def fails(texts: Mapping[str, bytes]) -> tuple[Report, Program]:
        if texts:
            raise TargetError("exit code 1")
        return look(texts)

    monkeypatch.setattr(job, "look", fails)
    report = fixed()
    assert len(report.kept) == 1
    assert "cannot be seen" in report.stop


def test_a_branch_has_the_patch(job: FakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Mapping[str, bytes]] = []
    monkeypatch.setattr(branches, "top_of", lambda _: tmp_path)
    monkeypatch.setattr(branches, "check", lambda *_: None)
    monkeypatch.setattr(branches, "make", lambda _top, _name, files, _text: made.append(files))
    report = fixed(branch="faster")
    assert report.branch == "faster"
    assert list(made[0]) == [str(job.script)]


def test_a_branch_that_cannot_be_made_in_the_end_loses_no_result(
    job: FakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user has edited the file meanwhile."""
    assert job.script.exists()
    answers = iter([None, UsageError("train.py is not as the last commit has it")])

    def check(*_: object) -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    monkeypatch.setattr(branches, "top_of", lambda _: tmp_path)
    monkeypatch.setattr(branches, "check", check)
    report = fixed(branch="faster")
    assert PREDICT in report.patch
    assert (report.branch, command.exit_code(report)) == ("", 64)
    assert "last commit" in report.problem


def test_behind_an_allowed_edit_results_are_those_of_the_patch(job: FakeJob) -> None:
    """What else changes them is still refused."""
    job.findings = ()
    job._cost = lambda text: 1e6 * (0.5 if SHUFFLE in text else 1.0) * (0.5 if MAP in text and SHUFFLE in text else 1.0)
    job._logs = lambda text: said.of(f"loss {(SHUFFLE in text) + 5 * (MAP in text and SHUFFLE in text)}")
    report = fixed(allow=("order",))
    assert [(one.code, one.outcome, one.same) for one in report.edits if one.code != "KER001"] == [
        ("TFD002", "no-gain", ""),
        ("TFD010", "kept", "allowed"),
        ("TFD002", "other-results", ""),
    ]


def test_only_rules_are_tried_once_a_program_is_not_repeatable(job: FakeJob) -> None:
    many = iter(range(1000))
    job._logs = lambda _: said.of(f"loss {next(many)}")
    report = fixed()
    assert [(one.kind, one.outcome) for one in report.edits] == [("same", "not-repeatable"), ("rule", "kept")]
    assert report.edits[1].same == "by-rule"
    assert report.repeatable is False


@pytest.mark.parametrize(
    "words", [["--allow", "batch", "train.py"], ["--branch", "x", "train.py"], ["-o", "no/a", "train.py"], []]
)
@pytest.mark.usefixtures("job")
def test_what_cannot_be_done_is_refused_before_anything_runs(words: list[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    found = CliRunner().invoke(cli.fix, words)
    signal.signal(signal.SIGTERM, before)
    assert isinstance(found.exception, UsageError)


@pytest.mark.usefixtures("job")
def test_the_table_and_the_result_are_printed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    listed = CliRunner().invoke(cli.fix, ["--list"])
    assert "HST003  predict-in-loop" in listed.output
    found = CliRunner().invoke(cli.fix, ["train.py"])
    signal.signal(signal.SIGTERM, before)
    assert found.exit_code == 0
    assert "proved (2):" in found.stdout
    assert "--- a/train.py" in found.stdout
    assert "(--allow order)" in found.stdout
