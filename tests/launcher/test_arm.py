"""The directory that arms a job's processes."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import stepscope
from stepscope.launcher import arm
from stepscope.native import own_python

WHO = "print('compiled' if __cached__ and __import__('os').path.exists(__cached__) else 'source')\n"


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An arm directory of two files, of which one was compiled before."""
    package, run = tmp_path / "package", tmp_path / "run"
    for name in ("agent/old.py", "agent/new.py"):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WHO, "utf-8")
    py_compile.compile(str(package / "agent/old.py"), doraise=True)
    run.mkdir()
    monkeypatch.setattr(arm, "_PACKAGE", package)
    return arm.build(run, (("agent/", "there/"), ("agent/old.py", "there/renamed.py")))


@pytest.mark.parametrize(("name", "how"), [("old", "compiled"), ("renamed", "compiled"), ("new", "source")])
def test_compiled_files_travel_and_are_accepted(armed: Path, name: str, how: str) -> None:
    """The job's Python takes what was compiled before, also of a file under another name, and compiles nothing."""
    command = [sys.executable, "-B", "-I", "-c", f"import sys; sys.path.insert(0, {str(armed)!r}); import there.{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == how
    if how == "compiled":
        cached = Path(importlib.util.cache_from_source(str(armed / "there" / f"{name}.py"))).read_bytes()
        assert int.from_bytes(cached[8:12], "little") == int((armed / "there" / f"{name}.py").stat().st_mtime)


def test_compiled_files_may_be_unreadable(armed: Path) -> None:
    """A checkout whose compiled files only root may read, as umask 077 leaves them, arms the jobs of all users."""
    folder = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(armed.parents[1] / "package", folder / "package")
        (folder / "run").mkdir()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o000 if path.suffix == ".pyc" else 0o777)
        code = (
            "import os, sys; from pathlib import Path; from stepscope.launcher import arm; "
            "os.getuid() or os.setuid(65534); arm._PACKAGE = Path('package').resolve(); "
            "print(*sorted(path.name for path in arm.build(Path('run'), (('agent/', 'there/'),)).rglob('*.py*')))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout == "new.py old.py\n"
    finally:
        shutil.rmtree(folder)


def test_our_processes_are_nice_before_they_import() -> None:
    """The priority is lowered by the first words of the start-up code, not by the module that it imports."""
    code = own_python.command("stepscope.tables.units")[3]
    assert code.index(f"os.nice({own_python.NICE})") < code.index("from stepscope.tables.units")


def test_our_processes_run_the_code_of_their_starter(tmp_path: Path) -> None:
    """Not that of the environment, where another stepscope may be installed."""
    package = tmp_path / "stepscope"
    package.mkdir()
    for part in Path(stepscope.__file__).parent.iterdir():
        (package / part.name).symlink_to(part)
    (package / "where.py").write_text("import stepscope\ndef main(_): print(stepscope.__file__)\n")
    start = (
        "import os; from stepscope.native import own_python as o; c = o.command('stepscope.where'); os.execv(c[0], c)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", start], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{package / '__init__.py'}\n"
