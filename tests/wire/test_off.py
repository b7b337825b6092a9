"""What switches measuring off: files, patterns, and programs that came to harm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.wire import off

TRAIN = "/jobs/train.py"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a host and a user of a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(off, "HOST_FILE", str(tmp_path / "etc" / "off"))
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["python", "train.py", "-m", "x"], TRAIN),
        (["/usr/bin/python3.11", "-u", "-X", "dev", "-W", "ignore", "./train.py"], TRAIN),
        (["python", "-OO", "-m", "pkg.train", "a.py"], "-m pkg.train"),
        (["python", "-mpkg"], "-m pkg"),
        (["python", "-c", "x", "train.py"], ""),
        (["python"], ""),
        (["bash", "-e", "train.sh"], "/jobs/train.sh"),
        (["sh", "-c", "python train.py"], ""),
        (["mpirun", "-n", "2"], "mpirun"),
        ([], ""),
    ],
)
def test_programs(argv: list[str], program: str) -> None:
    """A program is its script or its module, whatever options Python has."""
    assert off.program_of(argv, "/jobs") == program


def test_programs_of_a_process_and_its_parents(tmp_path: Path) -> None:
    """A process's own program stands first; those that started it follow."""
    child = "import os, sys; sys.path.append(%r); from stepscope.wire import off; print(off.programs(os.getpid())[:2])"
    (tmp_path / "child.py").write_text(child % str(Path(off.__file__).parents[2]))
    (tmp_path / "parent.py").write_text("import subprocess, sys; subprocess.run([sys.executable, 'child.py'])")
    done = subprocess.run([sys.executable, "parent.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[str(tmp_path / name) for name in ('child.py', 'parent.py')]}\n"


@pytest.mark.parametrize(
    ("text", "is_off"),
    [
        ("", True),
        ("# for now\n", True),
        ("train.py\n", True),
        ("/jobs/train.py # crashes\n", True),
        ("/jobs/*\n", True),
        ("other.py\n", False),
        ("rain.py\n", False),
    ],
)
@pytest.mark.parametrize("whose", ["etc/off", "config/stepscope/off"])
def test_files(places: Path, whose: str, text: str, is_off: bool) -> None:
    """Both files say alike for whom they are; an empty one is for everything."""
    off.replace_file(str(places / whose), text)
    why = off.OffSwitch(lambda: [TRAIN]).look(0)
    assert bool(why) == is_off
    assert not why or why.endswith(str(places / whose))


def test_modules(places: Path) -> None:
    """A module is named as after ``python -m``."""
    off.replace_file(str(places / "etc/off"), "pkg.train\n")
    assert off.OffSwitch(lambda: ["-m pkg.train"]).look(0)


def test_a_switch_looks_now_and_then(places: Path) -> None:
    """Files are read when they are new, and nothing is looked at before it is due."""
    asked: list[int] = []

    def named() -> list[str]:
        asked.append(1)
        return [TRAIN]

    switch = off.OffSwitch(named)
    assert switch.look(0) == ""
    off.replace_file(str(places / "etc/off"), "other.py\n")
    assert (switch.look(off.LOOK_NS - 1), asked) == ("", [])
    assert (switch.look(off.LOOK_NS), len(asked)) == ("", 1)
    assert (switch.look(2 * off.LOOK_NS), len(asked)) == ("", 1)
    off.replace_file(str(places / "etc/off"), "train.py\n")
    assert switch.look(3 * off.LOOK_NS)


def test_harmed_programs(places: Path) -> None:
    """A program in the list is off by its own name only, and the newest harm counts."""
    off.add_harmed(TRAIN, "2026-01-01", "did not end")
    off.add_harmed("/jobs/[a].py", "2026-01-02", "did not end")
    off.add_harmed(TRAIN, "2026-01-03", "died of SIGSEGV")
    assert [entry["program"] for entry in off.harmed()] == ["/jobs/[a].py", TRAIN]
    assert "died of SIGSEGV" in off.why(lambda: [TRAIN], harmed=True)
    assert not off.why(lambda: [TRAIN], harmed=False)
    assert not off.why(lambda: ["/other/train.py", "/jobs/a.py"], harmed=True)
    (places / "state/stepscope/harmed.jsonl").write_text("damaged\n")
    assert off.harmed() == []
