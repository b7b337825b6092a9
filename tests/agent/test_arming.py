"""Arming: nothing changes for the job, whatever it does with its start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Armed

STATE = (
    "import sys; print([m for m in sys.modules if m.startswith('stepscope')], sys.path, 'sitecustomize' in sys.modules)"
)


def sitecustomize(folder: Path, text: str) -> str:
    """Put a sitecustomize of the user's into ``folder``; that folder as a search path."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(text)
    return str(folder)


def test_a_program_without_framework_leaves_no_trace(armed: Armed) -> None:
    """A process that imports no framework writes nothing at all."""
    result = armed.start("print('hello')")
    assert (result.stdout, result.stderr, result.returncode) == ("hello\n", "", 0)
    assert list((armed.folder / "procs").iterdir()) == []


def test_search_path_is_as_without_us(armed: Armed) -> None:
    """The job sees the sys.path that it has without stepscope, and no sitecustomize of ours."""
    program = "import sys; print(sys.path, 'sitecustomize' in sys.modules)"
    plain = armed.start(program, env={"PYTHONPATH": "/nowhere", "STEPSCOPE_RUN": ""}).stdout
    ours = armed.start(program, env={"PYTHONPATH": "/nowhere"}).stdout
    assert ours == plain.replace(repr(str(armed.folder / "arm")) + ", ", "")
    assert str(armed.folder) not in ours


def test_users_sitecustomize_runs(armed: Armed, tmp_path: Path) -> None:
    """The job's own sitecustomize is executed, under its name, with its own file."""
    path = sitecustomize(tmp_path / "site", "import sys; sys.from_site = __file__, __name__")
    result = armed.start(
        "import sys, sitecustomize; print(*sys.from_site, sitecustomize.__file__)", env={"PYTHONPATH": path}
    )
    assert result.stdout.split() == [path + "/sitecustomize.py", "sitecustomize", path + "/sitecustomize.py"]


@pytest.mark.parametrize("text", ["1/0", "import no_such_module_at_all", "raise ImportError(name='sitecustomize')"])
def test_error_in_users_sitecustomize_shows_as_without_us(armed: Armed, tmp_path: Path, text: str) -> None:
    """What a broken sitecustomize of the user's prints is the same, and the job goes on."""
    path = sitecustomize(tmp_path / "site", text)
    plain = armed.start("print('on')", env={"STEPSCOPE_RUN": "", "PYTHONPATH": path})
    ours = armed.start("print('on')", env={"PYTHONPATH": path})
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    assert ours.stdout == "on\n"


def test_users_sitecustomize_may_use_the_api(armed: Armed, tmp_path: Path) -> None:
    """A sitecustomize of the user's that imports stepscope gets the stub."""
    path = sitecustomize(tmp_path / "site", "import stepscope; stepscope.step()")
    assert armed.start("import stepscope; stepscope.step()", env={"PYTHONPATH": path}).stderr == ""
    assert len(armed.processes()[0].kinds(1)) == 1


@pytest.mark.parametrize("flags", [("-W", "error"), ("-X", "dev"), ("-O",), ("-B",), ("-s",), ("-X", "utf8")])
def test_interpreter_flags(armed: Armed, flags: tuple[str, ...]) -> None:
    """Warnings as errors, development mode and the like: nothing is printed, the process is measured."""
    result = armed.start("import stepscope; stepscope.step(); stepscope.step(); print('on')", *flags)
    assert (result.stdout, result.stderr) == ("on\n", "")
    assert len(armed.processes()[0].kinds(1)) == 1


@pytest.mark.parametrize("flag", ["-S", "-I", "-E"])
def test_interpreters_that_cannot_be_armed_run(armed: Armed, flag: str) -> None:
    """Without site, or with PYTHONPATH ignored, the job runs unmeasured."""
    result = armed.start("import sys; print('stepscope.agent' in sys.modules)", flag)
    assert (result.stdout, result.stderr) == ("False\n", "")


def test_run_directory_gone(armed: Armed) -> None:
    """A process that starts after the run directory has gone is not armed."""
    (armed.folder / "config.json").rename(armed.folder / "arm" / "config.json")
    env = {"STEPSCOPE_RUN": str(armed.folder / "gone")}
    result = armed.start("import sys, stepscope; stepscope.step(); print(len(sys.meta_path))", env=env)
    assert (result.stdout.strip(), result.stderr) == (str(len_of_meta_path()), "")


def test_no_configuration(armed: Armed) -> None:
    """A run directory without configuration: the agent leaves, the hook too."""
    (armed.folder / "config.json").unlink()
    result = armed.start("import sys, stepscope; stepscope.step(); stepscope.step(); print(len(sys.meta_path))")
    assert (result.stdout.strip(), result.stderr) == (str(len_of_meta_path()), "")


def len_of_meta_path() -> int:
    """How many finders a fresh interpreter has, editable installs included."""
    import subprocess

    out = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.meta_path))"], capture_output=True, check=True
    )
    return int(out.stdout)


def test_stub_offers_the_api_and_installed_submodules(armed: Armed) -> None:
    """In the job ``stepscope`` is the stub; submodules that do not travel come from a real installation."""
    env = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    result = armed.start(
        """
        import stepscope, stepscope.agent, stepscope.tables.units
        print(stepscope.__file__, stepscope.agent.__file__, stepscope.tables.units.format_ns(5))
        """,
        env=env,
    )
    stub, agent, text = result.stdout.split(maxsplit=2)
    assert stub == str(armed.folder / "arm/stepscope/__init__.py")
    assert agent == str(armed.folder / "arm/stepscope/agent/__init__.py")
    assert text == "5 ns\n"


def test_unknown_name_of_the_stub(armed: Armed) -> None:
    """A name that the stub does not have is an AttributeError, as in any package."""
    result = armed.start("import stepscope; stepscope.nothing")
    assert result.stderr.endswith("AttributeError: module 'stepscope' has no attribute 'nothing'\n")


def test_arming_loads_nothing_of_the_standard_library(armed: Armed) -> None:
    """Arming imports no module that a bare interpreter has not imported already."""
    program = "import sys; print(sorted(m for m in sys.modules))"
    plain = set(eval(armed.start(program, env={"STEPSCOPE_RUN": ""}).stdout))
    ours = set(eval(armed.start(program).stdout))
    assert ours - plain == {"__future__", "stepscope", "stepscope.agent", "stepscope.agent.bootstrap"}


def test_no_thread_and_no_file_until_needed(armed: Armed) -> None:
    """Armed and idle: one thread, no descriptor of ours, no exit handler that shows."""
    program = "import os; print(len(os.listdir('/proc/self/task')), sorted(os.listdir('/proc/self/fd')))"
    assert armed.start(program).stdout == armed.start(program, env={"STEPSCOPE_RUN": ""}).stdout


def test_process_line(armed: Armed) -> None:
    """The first line says which process this is and how it was started."""
    armed.start("import stepscope; stepscope.step()")
    (process,) = armed.processes()
    first = process.started
    assert (first.origin, first.executable) == ("exec", sys.executable)
    assert process.folder.name.startswith(f"{first.pid}-")
