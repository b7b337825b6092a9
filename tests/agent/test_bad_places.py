"""Full disks, missing rights and other bad places: the job runs as without us, and the loss is stated."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.agent import always_on
from stepscope.model.log.events import AgentDiagnostic
from stepscope.wire import run_directory
from stepscope.wire.kinds import Kind
from stepscope.wire.log import LogWriter

from .conftest import Armed, make_run

PROGRAM = """
import os, stepscope
for i in range(100): stepscope.step()
with stepscope.span("x"): stepscope.metric("m", 1)
print("done")
"""


def codes(armed: Armed) -> list[str]:
    """The codes of all diagnostics."""
    return [line.code for process in armed.processes() for line in process.of(AgentDiagnostic)]


@pytest.mark.parametrize("limit", [0, 100, 4_000, 200_000])
def test_file_size_limit(armed: Armed, limit: int) -> None:
    """Where files may not grow the job runs on; the agent says that it has no ring if it can say anything."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = armed.start(PROGRAM, preexec_fn=limited)
    assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)
    (folder,) = (armed.folder / "procs").iterdir()
    assert not (folder / "ring").exists()
    if limit >= 4_000:
        assert codes(armed) == ["DX900"]


@pytest.fixture
def tiny(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of its own, too small for any ring, or of the size that a test asks for."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = Path(tempfile.mkdtemp())
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={getattr(request, 'param', '1200k')}", "tmpfs", folder], check=False
    ).returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def test_full_disk(armed: Armed, tiny: Path) -> None:
    """A file system without room for a ring is passed over; with no other, the agent leaves and says so."""
    armed.configure(ring_dirs=[str(tiny)])
    result = armed.start(PROGRAM)
    assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)
    assert codes(armed) == ["DX900"]
    assert list(tiny.iterdir()) == []
    armed.configure(ring_dirs=[str(tiny), str(armed.folder)])
    armed.start(PROGRAM)
    assert len(armed.processes()[1].kinds(Kind.STEP)) == 99


@pytest.mark.parametrize("tiny", ["4m"], indirect=True)
def test_run_directory_on_a_full_disk(tiny: Path) -> None:
    """A run directory that fills up takes no record and does no harm."""
    run = make_run(tiny)
    filler = os.open(tiny / "filler", os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(filler, bytes(4096)):
            pass
    os.close(filler)
    result = run.start(PROGRAM)
    assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)


@pytest.mark.parametrize("tiny", ["64m"], indirect=True)
def test_a_small_file_system_comes_last(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it has room for four rings of an always-measured job, its run directory is made elsewhere."""
    monkeypatch.setattr(run_directory, "temporary_directories", lambda: [str(tiny), str(tmp_path)])
    if os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize < 1 << 30:
        pytest.skip("the temporary directory is nearly full")
    assert run_directory.places(always_on.SLOTS) == [str(tmp_path), str(tiny)]


@pytest.mark.parametrize("tiny", ["64m"], indirect=True)
def test_logs_of_a_small_file_system_are_continued_early(tiny: Path) -> None:
    """A file of 256 KiB is followed by the next, so that what has been read makes room."""
    log = LogWriter(str(tiny))
    for number in range(300):
        log.write({"t": "x", "text": "a" * 1024, "number": number})
    log.close()
    assert sorted(path.name for path in tiny.iterdir()) == ["log-0001.jsonl", "log-0002.jsonl"]


def test_read_only_run_directory(armed: Armed) -> None:
    """Where the process cannot make its directory it runs unmeasured."""
    shutil.rmtree(armed.folder / "procs")
    (armed.folder / "procs").write_text("in the way")
    result = armed.start(PROGRAM)
    assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)


def test_closed_standard_streams(armed: Armed) -> None:
    """Their numbers stay free: what the job's libraries write to them would get into the ring."""
    for number in range(3):
        program = f"""
            import os, stepscope
            os.close({number})
            stepscope.step()
            try: os.fstat({number})
            except OSError: os._exit(7)
        """
        assert armed.start(program).returncode == 7


def test_read_only_home(armed: Armed) -> None:
    """A home that does not exist, no temporary directory, no compiled files: measured all the same."""
    env = {"HOME": "/nowhere", "TMPDIR": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": "/nowhere"}
    result = armed.start(PROGRAM, env=env)
    assert (result.stdout, result.stderr) == ("done\n", "")
    assert len(armed.processes()[0].kinds(Kind.STEP)) == 99
    assert not list((armed.folder / "arm").rglob("__pycache__"))


def unprivileged_python() -> str:
    """A Python that a user without rights can execute; skips where there is none."""
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root")
    for name in ("/usr/bin/python3", "/usr/local/bin/python3"):
        check = [name, "-c", "import sys; print(sys.version_info >= (3, 9))"]
        try:
            out = subprocess.run(check, capture_output=True, text=True, user=nobody(), check=False).stdout
        except OSError:
            continue
        if out == "True\n":
            return name
    pytest.skip("no Python that the user nobody may execute")


def nobody() -> int:
    """The user without rights."""
    return pwd.getpwnam("nobody").pw_uid


def test_unprivileged_user_who_owns_the_run(tmp_path: Path) -> None:
    """A user without rights is measured in a run directory of its own."""
    python = unprivileged_python()
    folder = Path(tempfile.mkdtemp())
    try:
        run = make_run(folder)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, nobody(), -1)
        other = Armed(folder=folder, python=python)
        result = other.start(PROGRAM, user=nobody(), cwd="/")
        assert (result.stdout, result.stderr) == ("done\n", "")
        assert len(run.processes()[0].kinds(Kind.STEP)) == 99
    finally:
        shutil.rmtree(folder)


def test_run_directory_of_another_user() -> None:
    """A process that changed its user and may not enter the run directory runs as without us."""
    python = unprivileged_python()
    folder = Path(tempfile.mkdtemp())
    try:
        make_run(folder)
        other = Armed(folder=folder, python=python)
        result = other.start("print('done')", user=nobody(), cwd="/")
        assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)
        folder.chmod(0o755)
        result = other.start(PROGRAM, user=nobody(), cwd="/")
        assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)
        assert list((folder / "procs").iterdir()) == []
    finally:
        shutil.rmtree(folder)


def test_working_directory_that_has_gone(armed: Armed) -> None:
    """A job started in a directory that is deleted at once is measured."""
    program = "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)\n"
    program += f"os.execv({armed.python!r}, [{armed.python!r}, '-c', {PROGRAM!r}])"
    result = armed.start(program)
    assert result.stdout == "done\n", result.stderr
    assert len(armed.processes()[0].kinds(Kind.STEP)) == 99


def test_run_directory_that_goes_while_the_job_runs(armed: Armed) -> None:
    """A job whose run directory is deleted in the middle runs on."""
    result = armed.start(f"""
        import os, shutil, stepscope
        stepscope.step()
        shutil.rmtree({str(armed.folder)!r})
        for _ in range(1000): stepscope.step()
        stepscope.metric("m", 1)
        if os.fork() == 0:
            stepscope.step()
            os._exit(0)
        print(os.wait()[1])
    """)
    assert (result.stdout, result.stderr) == ("0\n", "")
