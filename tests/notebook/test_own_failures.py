"""What fails in the magics: a line says so; the cell runs, and its value or its error is the user's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.agent import bootstrap
from stepscope.launcher import rundir
from stepscope.notebook import measured_cell
from stepscope.notebook.magics import Magics
from stepscope.notebook.measured_cell import MeasuredCell
from stepscope.tables.errors import SessionError


class Shell(SimpleNamespace):
    """A kernel as the magics see it: a cell that it runs raises ``error``, and its text is kept in ``ran``."""

    def run_cell(self, cell: str) -> SimpleNamespace:
        """Run a cell."""
        self.ran.append(cell)
        return SimpleNamespace(error_before_exec=None, error_in_exec=self.error)


@pytest.fixture(name="shell")
def _shell() -> Shell:
    named = SimpleNamespace(get_code_name=lambda *_: "cell")
    history = SimpleNamespace(input_hist_raw=["", "%%stepscope"])
    return Shell(ran=[], error=None, execution_count=1, compile=named, history_manager=history)


@pytest.fixture(name="measured")
def _measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MeasuredCell:
    (tmp_path / "run").mkdir()
    made = MeasuredCell(session=tmp_path / "a.stepscope", run=tmp_path / "run")
    monkeypatch.setattr(measured_cell, "begin", lambda *_: made)
    monkeypatch.setattr(measured_cell, "_DEAD_S", 0.0)
    return made


def fails(error: Exception) -> object:
    """A function that raises an error."""

    def call(*_: object) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left"), "[Errno 28] No space left"),
        (SessionError("taken"), "taken"),
        (ValueError("one\ntwo"), "ValueError: one two"),
    ],
)
def test_what_cannot_be_measured_runs(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    said: str,
) -> None:
    """Whatever of ours failed before the cell."""
    monkeypatch.setattr(measured_cell, "begin", fails(error))
    Magics(shell).cell("", "x = 1")
    assert shell.ran == ["x = 1"]
    assert capsys.readouterr().err == f"stepscope: the cell runs unmeasured: {said}\n"


def test_a_line_that_is_no_line_of_words(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """Is a usage error in one line: the cell under it does not run."""
    Magics(shell).cell('--session "x', "x = 1")
    Magics(shell).line('report "x')
    assert shell.ran == []
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all("No closing quotation; expected: " in line for line in said)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("error", [None, KeyError("the user's")])
def test_an_end_that_cannot_be_written(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception | None
) -> None:
    """Is a line; the cell succeeds, or fails as it did, and nothing waits for a report that does not come."""
    monkeypatch.setattr(rundir, "write_ended", fails(OSError(28, "No space left")))
    monkeypatch.setattr(MeasuredCell, "wait", fails(AssertionError("waits")))
    shell.error = error
    if error is None:
        Magics(shell).cell("", "x = 1")
    else:
        with pytest.raises(KeyError, match="the user's"):
            Magics(shell).cell("", "x = 1")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stepscope: measuring the cell did not end as it should")
    assert line.endswith("No space left")


def test_an_agent_that_cannot_be_taken_off(
    shell: Shell, measured: MeasuredCell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sidecar is told all the same that the cell has ended."""
    monkeypatch.setattr(bootstrap, "end", fails(RuntimeError("a probe")))
    Magics(shell).cell("", "x = 1")
    end = rundir.read_ended(measured.run)
    assert end is not None
    assert end.exit_code == 0
    assert capsys.readouterr().err.endswith("RuntimeError: a probe\n")


def test_a_report_that_cannot_be_shown(
    shell: Shell, measured: MeasuredCell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Does not hide the user's error."""
    monkeypatch.setattr(MeasuredCell, "wait", lambda _: True)
    monkeypatch.setattr("stepscope.notebook.magics._of_session", fails(TypeError("a report")))
    shell.error = KeyError("the user's")
    with pytest.raises(KeyError):
        Magics(shell).cell("", "x = 1")
    assert measured.run.is_dir()
    assert capsys.readouterr().err == "stepscope: TypeError: a report\n"
