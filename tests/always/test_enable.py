"""``enable`` and ``disable`` change one file and nothing else; a process without a framework does not notice."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import SOURCE, Environment, make, plain, tool, tree

STATE = (
    "import sys; print(sys.path, sorted(m for m in sys.modules if 'stepscope' in m), "
    "sorted(m for m in sys.modules), len(sys.meta_path))"
)


def test_disable_restores_every_byte(environment: Environment) -> None:
    """What enable writes is one file in site-packages, and disable takes it away."""
    before = tree(Path(environment.python).parent.parent)
    assert environment.enable().returncode == 0
    after = tree(Path(environment.python).parent.parent)
    assert set(after) - set(before) == {str(environment.pth.relative_to(Path(environment.python).parent.parent))}
    environment.run("pass")
    assert environment.disable().returncode == 0
    assert tree(Path(environment.python).parent.parent) == before


def test_enable_again_changes_the_terms(environment: Environment) -> None:
    """A second enable replaces the first; status says with what."""
    environment.enable("--quota", "3G")
    environment.enable("--quota", "1G", "--keep", "2.5")
    said = tool("enable", "--status", "--python", environment.python).stdout
    assert "enabled: " in said
    assert "1 GiB per user" in said
    assert "2.5 days" in said
    assert str(environment.sessions) in said
    environment.disable()
    assert tool("enable", "--status", "--python", environment.python).stdout.startswith("not enabled: ")
    assert environment.disable().stdout.startswith("was not enabled: ")


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_a_plain_process_is_as_without(tmp_path: Path, version: str, find_python: Callable[[str], str]) -> None:
    """On every supported Python: one more finder, and no module, path, output, file, thread or descriptor."""
    environment = make(tmp_path, find_python(version))
    (environment.site / "any.pth").write_text("# reading any .pth file loads a codec on some Pythons\n")
    look = f"{STATE}; import os; print(len(os.listdir('/proc/self/task')), sorted(os.listdir('/proc/self/fd')))"
    before = environment.run(look)
    assert environment.enable().returncode == 0
    out, err, code = environment.run(look)
    finders = int(before[0].splitlines()[0].split()[-1])
    expected = before[0].replace(f" {finders}\n", f" {finders + 1}\n", 1)
    assert (out, err, code) == (expected, "", 0)
    assert environment.runs() == []


@pytest.mark.parametrize("flags", [("-W", "error"), ("-X", "dev"), ("-O",), ("-B",), ("-I",), ("-E",), ("-s",)])
def test_interpreter_flags(environment: Environment, flags: tuple[str, ...]) -> None:
    """Warnings as errors and the like: silent, and armed; also where PYTHONPATH and the environment are ignored."""
    environment.enable()
    out, err, code = environment.run("import sys; print(type(sys.meta_path[0]).__name__)", *flags)
    assert (out, err, code) == ("StepscopeWaits\n", "", 0)


@pytest.mark.parametrize("flags", [(), ("-W", "error"), ("-X", "dev")])
def test_after_uninstall(environment: Environment, tmp_path: Path, flags: tuple[str, ...]) -> None:
    """What the line points at has gone: no word, no finder; a framework's import works."""
    gone = tmp_path / "installed"
    shutil.copytree(SOURCE / "stepscope", gone / "stepscope")
    assert tool("enable", "--python", environment.python, env={"PYTHONPATH": str(gone)}).returncode == 0
    assert str(gone) in environment.pth.read_text()
    shutil.rmtree(gone)
    (environment.folder / "keras.py").write_text("print('keras')\n")
    look = "import sys; sys.path.insert(0, '.'); import keras; print([type(f).__name__ for f in sys.meta_path])"
    out, err, code = environment.run(look, *flags)
    assert (err, code) == ("", 0)
    assert out.startswith("keras\n")
    assert "Stepscope" not in out
    assert "but nothing is measured" in tool("enable", "--status", "--python", environment.python).stdout
    assert environment.disable().returncode == 0


def test_stepscope_goes_while_a_process_runs(environment: Environment, tmp_path: Path) -> None:
    """Uninstalled between the start of a process and its framework's import: the import works, silently."""
    gone = tmp_path / "installed"
    shutil.copytree(SOURCE / "stepscope", gone / "stepscope")
    tool("enable", "--python", environment.python, env={"PYTHONPATH": str(gone)})
    (environment.folder / "keras.py").write_text("print('keras')\n")
    program = f"import sys, shutil; shutil.rmtree({str(gone)!r}); sys.path.insert(0, '.'); import keras; print('on')"
    assert environment.run(program) == ("keras\non\n", "", 0)


def test_a_process_that_could_not_be_armed_is_told(environment: Environment) -> None:
    """A process in which arming fails runs as without us, and ``enable --status`` knows why."""
    environment.enable()
    (environment.folder / "keras.py").write_text("print('keras')\n")
    program = "import sys, time; sys.path.insert(0, '.'); time.monotonic_ns = lambda: 1 / 0; import keras; print('on')"
    assert environment.run(program) == ("keras\non\n", "", 0)
    status = tool("enable", "--status", "--python", environment.python).stdout
    assert "not measured since then: 1 process;" in status, status
    assert "ZeroDivisionError" in status


def test_a_framework_for_a_moment_leaves_nothing(environment: Environment) -> None:
    """A process that imports a framework and ends at once leaves neither a run directory nor a session."""
    environment.enable()
    (environment.folder / "keras.py").write_text("print('keras')\n")
    program = (
        "import sys; sys.path.insert(0, '.'); import keras\n"
        "from stepscope.agent import state; print(state.CURRENT is not None, sys.path[1:2])"
    )
    out, err, code = environment.run(program)
    assert (out.splitlines()[:2], err, code) == (["keras", out.splitlines()[1]], "", 0)
    assert out.splitlines()[1].startswith("True ")
    assert str(SOURCE) not in out
    assert environment.runs() == []
    assert not environment.sessions.exists()


@pytest.mark.parametrize("variable", ["STEPSCOPE_ALWAYS", "STEPSCOPE_RUN"])
def test_left_out(environment: Environment, tmp_path: Path, variable: str) -> None:
    """STEPSCOPE_ALWAYS=0 leaves a process out; what ``run`` arms is left to it."""
    environment.enable()
    value = "0" if variable == "STEPSCOPE_ALWAYS" else str(tmp_path)
    out, _, _ = environment.run("import sys; print(type(sys.meta_path[0]).__name__)", env=plain(**{variable: value}))
    assert out != "StepscopeWaits\n"


def test_a_real_stepscope_is_itself(environment: Environment) -> None:
    """Where the program imports stepscope itself, it gets the package, and the agent is that package's."""
    environment.enable()
    (environment.folder / "keras.py").write_text("")
    program = (
        "import sys, stepscope; sys.path.insert(0, '.'); import keras; print(stepscope.__file__); stepscope.step()"
    )
    out, err, _ = environment.run(program, env=plain(PYTHONPATH=str(SOURCE)))
    assert (out, err) == (f"{SOURCE}/stepscope/__init__.py\n", "")


def test_a_foreign_file_is_left_alone(environment: Environment) -> None:
    """A file of that name that we did not write is neither replaced nor deleted."""
    environment.pth.write_text("/somewhere\n")
    for done in (environment.enable(), environment.disable()):
        assert done.returncode == 64
        assert "was not written by stepscope enable" in done.stderr
    assert environment.pth.read_text() == "/somewhere\n"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--python", "/no/such/python"), 67, "no such program"),
        (("--python", "/bin/true"), 67, "is not a working Python"),
        (("--quota", "x"), 64, "x is not a size"),
        (("--quota", "10M"), 64, "expected at least"),
        (("--job-quota", "1K"), 64, "expected at least"),
        (("--keep", "0"), 64, "a number of days above 0"),
    ],
)
def test_what_cannot_be_enabled(environment: Environment, options: tuple[str, ...], code: int, words: str) -> None:
    """One clear line and the documented exit code."""
    done = tool("enable", "--python", environment.python, *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not environment.pth.exists()


@pytest.mark.parametrize("version", ["2.7", "3.8"])
def test_too_old(version: str, find_python: Callable[[str], str]) -> None:
    """A Python below 3.9 is refused."""
    done = tool("enable", "--python", find_python(version))
    assert done.returncode == 67


def test_without_rights(environment: Environment) -> None:
    """Site-packages that cannot be written: the line says who can."""
    if os.geteuid() == 0:
        environment.site.rename(environment.site.with_name("away"))
        environment.site.write_text("")  # no directory any more: what root meets too
    else:
        environment.site.chmod(0o500)
    done = environment.enable()
    assert done.returncode == 64
    assert "cannot be" in done.stderr


def test_settings_are_what_site_ignores(environment: Environment) -> None:
    """The settings are one comment line of ASCII JSON, the other line is executed by ``site``."""
    environment.enable("--no-sources")
    first, second = environment.pth.read_text("ascii").splitlines()
    assert json.loads(first.removeprefix("# stepscope enable "))["sources"] is False
    assert second.startswith("import sys; exec(")
    assert sys.executable in first
