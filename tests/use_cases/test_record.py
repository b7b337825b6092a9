"""Which words of ``stepscope run`` are a script, and which are a command."""

import sys
from pathlib import Path

import pytest

from stepscope.tables.errors import TargetError
from stepscope.use_cases.record import job_command, python_of_job


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


def test_a_python_script_is_run_by_python(folder: Path) -> None:
    """With or without a line that names Python, executable or not."""
    put(folder / "train.py", "print(1)\n")
    put(folder / "train", "#!/usr/bin/env python3\nprint(1)\n")
    put(folder / "notes", "print(1)\n", 0o644)
    for name in ("train.py", "./train", "notes"):
        assert job_command([name, "--fast"]) == (python_of_job(), name, "--fast")


def test_a_python_in_front_is_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``run python train.py`` and ``run .venv/bin/python train.py`` run that Python."""
    assert job_command([sys.executable, "train.py"]) == (sys.executable, "train.py")
    put(folder / "python-x", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir("/")
    assert job_command(["python-x", "train.py"]) == ("python-x", "train.py")


def test_a_script_of_another_language_is_a_command(folder: Path) -> None:
    """A file here is meant, not one of PATH."""
    put(folder / "train.sh", "#!/bin/sh\nexec python train.py\n")
    assert job_command(["train.sh", "1"]) == ("./train.sh", "1")
    assert job_command(["./train.sh"]) == ("./train.sh",)


def test_a_missing_script_is_one_line(folder: Path) -> None:
    with pytest.raises(TargetError, match=r"cannot run trian\.py: no such file in .*stepscope run -- command"):
        job_command(["trian.py"])
