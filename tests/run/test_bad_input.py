"""What ``stepscope run`` does with what cannot be run, cannot be stored, or fails."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.sessions.bundle import open_session

from .conftest import SOURCE, Project, environment, spans

ROOT = os.geteuid() == 0
NOBODY = 65534


def one_line(text: str) -> str:
    """The only line of a text."""
    (line,) = text.splitlines()
    return line


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("run", "missing.py"), 67, "missing.py: no such file"),
        (("run",), 64, "nothing to run"),
        (("run", "--"), 64, "nothing to run"),
        (("run", "--", "no-such-program"), 67, "no-such-program: no such program"),
        (("run", "--", "./plain"), 67, "./plain: not executable; chmod +x"),
        (("run", "--", "./bad"), 67, "./bad: the interpreter in its first line does not exist"),
        (("run", "--nonsense", "x.py"), 64, "--nonsense"),
        (("run", "-m"), 64, "-m"),
        (("nonsense",), 64, "nonsense"),
        (("pack", "nothing.stepscope"), 65, "nothing.stepscope: no such session"),
        (("unpack", "nothing.zip"), 65, "nothing.zip: no such file"),
    ],
)
def test_what_cannot_be_run(project: Project, args: tuple[str, ...], code: int, words: str) -> None:
    """One clear line, the documented exit code, and nothing left behind."""
    project.script("plain", "echo x\n")
    project.script("bad", "#!/no/such/interpreter\n").chmod(0o755)
    done = project.run(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in one_line(done.stderr)
    assert project.sessions() == []


def test_exception_of_the_script_is_untouched(project: Project) -> None:
    """A script that raises shows the traceback of a plain run, and its exit code is passed on."""
    project.script("raises.py", "def f():\n    raise ValueError('mine')\nf()\n")
    plain = subprocess.run(
        [sys.executable, "raises.py"], cwd=project.root, env=environment(), capture_output=True, text=True, check=False
    )
    done = project.run("run", "raises.py")
    assert done.returncode == plain.returncode == 1
    assert done.stderr.startswith(plain.stderr)
    assert project.session().manifest.exit_code == 1


@pytest.mark.parametrize("ending", ["sys.exit(7)", "os._exit(7)"])
def test_exit_code_is_passed_on(project: Project, ending: str) -> None:
    """A job's exit code is the launcher's, also without a normal interpreter exit; its records are all there."""
    project.script("leave.py", f"import os, sys, stepscope\nfor _ in range(100): stepscope.step()\n{ending}\n")
    assert project.run("run", "leave.py").returncode == 7
    session = project.session()
    assert session.manifest.exit_code == 7
    assert len(session.workers[0].records) >= 99


def test_two_runs_into_one_session(project: Project) -> None:
    """A session's place that is taken is refused before the job starts."""
    project.script("mark.py", "open('ran', 'w')\n")
    project.run("run", "-q", "--session", "s.stepscope", "steps.py", "1")
    before = (project.root / "s.stepscope" / "manifest.json").read_bytes()
    done = project.run("run", "--session", "s.stepscope", "mark.py")
    assert done.returncode == 65
    assert "s.stepscope already exists" in one_line(done.stderr)
    assert not (project.root / "ran").exists()
    assert (project.root / "s.stepscope" / "manifest.json").read_bytes() == before


def test_job_that_never_makes_a_step(project: Project) -> None:
    """A measured process without a single step gets a report all the same."""
    project.script("stepless.py", "import stepscope\nstepscope.metric('loss', 1.0)\n")
    done = project.run("run", "stepless.py")
    assert done.returncode == 0
    assert done.stderr.startswith("stepscope ")
    assert len(project.session().workers) == 1


def test_report_that_cannot_be_copied(project: Project) -> None:
    """An unwritable --report-json costs a line, not the exit code."""
    done = project.run("run", "-q", "--report-json", "no/such/place.json", "steps.py", "1")
    assert done.returncode == 0
    assert "no/such/place.json could not be written" in one_line(done.stderr)


def test_session_in_a_place_that_cannot_be_made(project: Project) -> None:
    """Where --session cannot be made the job runs, and its session lies in a temporary directory."""
    project.script("file", "")
    done = project.run(
        "run", "--session", "file/s.stepscope", "steps.py", "3", env=environment(TMPDIR=str(project.root))
    )
    assert (done.returncode, done.stdout) == (0, "ready\ndone\n")
    line = next(x for x in done.stderr.splitlines() if "cannot hold a session" in x)
    path = Path(line.rsplit(" ", 1)[1])
    assert path.parent == project.root
    try:
        assert open_session(path).manifest.state == "finished"
        assert "cannot hold a session" in open_session(path).manifest.diagnostics[0].text
    finally:
        shutil.rmtree(path)


def python_for_anybody() -> str:
    """A Python that every user may run, of this version.

    Skips where there is none.
    """
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            code = "import sys; print(*sys.version_info[:2])"
            done = subprocess.run([candidate, "-c", code], user=NOBODY, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if done.stdout.split() == [str(n) for n in sys.version_info[:2]]:
            return candidate
    pytest.skip("no Python of this version that an unprivileged user may run")


@pytest.mark.skipif(not ROOT, reason="needs root to become another user")
def test_unprivileged_user_in_an_unwritable_directory(project: Project) -> None:
    """A user without rights in the current directory gets a session elsewhere, and is told where."""
    python = python_for_anybody()
    for folder in (project.root, *project.root.parents[:-2]):
        folder.chmod(0o755)
    temporary = project.root / "tmp"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    packages = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    env = environment(PYTHONPATH=":".join([str(SOURCE), *packages]), HOME="/nonexistent", TMPDIR=str(temporary))
    done = subprocess.run(
        [python, "-m", "stepscope", "run", "steps.py", "20"],
        cwd=project.root,
        env=env,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    if "PermissionError" in done.stderr or "No module named" in done.stderr:
        pytest.skip("this checkout cannot be read by an unprivileged user")
    assert (done.returncode, done.stdout) == (0, "ready\ndone\n"), done.stderr
    line = next(x for x in done.stderr.splitlines() if "cannot hold a session" in x)
    path = Path(line.rsplit(" ", 1)[1])
    try:
        session = open_session(path)
        assert session.manifest.state == "finished"
        assert spans(session) == 20
    finally:
        shutil.rmtree(path)


def in_namespace(project: Project, setup: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run stepscope in a mount namespace of its own after a shell line.

    Skips where that is not allowed.
    """
    if not ROOT or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and mount namespaces")
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'set -e\n{setup}\nexec "$@"', "sh", *project.command(*args)],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_small_shared_memory(project: Project) -> None:
    """With the 64 MB /dev/shm of a container the job keeps it for itself, and nothing is lost."""
    script = project.script(
        "both.py",
        (project.root / "steps.py").read_text()
        + "import os\ns = os.statvfs('/dev/shm')\nassert s.f_bavail * s.f_frsize >> 20 >= 46, s\n",
    )
    done = in_namespace(project, "mount -t tmpfs -o size=64m tmpfs /dev/shm", "run", script.name, "50")
    assert (done.returncode, done.stdout) == (0, "ready\ndone\n"), done.stderr
    assert spans(project.session()) == 50
    assert project.session().workers[0].info.lost_records == 0


def test_nowhere_to_write(project: Project) -> None:
    """Where no run directory can be made the job runs as without us, and the loss is stated."""
    setup = "for d in /dev/shm /tmp /var/tmp; do mount -t tmpfs -o size=64k tmpfs $d; done"
    script = project.script("hello.py", "import sys; print('hello'); sys.exit(3)")
    checkout = str(Path(__file__).resolve().parents[2])
    if checkout.startswith(("/tmp/", "/var/tmp/")):  # a clone that lies there stays to be seen
        keep, place = "/run/stepscope-checkout", shlex.quote(checkout)
        setup = f"mkdir -p {keep} && mount --bind {place} {keep} && {setup}"
        setup += f"; mkdir -p {place} && mount --bind {keep} {place}"
    if str(project.root).startswith("/tmp/"):
        setup = (
            f"mkdir -p /run/stepscope-test && mount --bind {project.root} /run/stepscope-test && {setup} "
            "&& cd /run/stepscope-test"
        )
    done = in_namespace(project, setup, "run", script.name)
    for left in ("/run/stepscope-test", "/run/stepscope-checkout"):
        shutil.rmtree(left, ignore_errors=True)
    assert (done.returncode, done.stdout) == (3, "hello\n"), done.stderr
    assert "nothing is recorded" in one_line(done.stderr)


def test_disk_that_fills_up(project: Project) -> None:
    """A disk that the job itself fills costs records, not the job; the loss is stated."""
    full = project.root / "disk"
    full.mkdir()
    script = project.script(
        "fill.py",
        "import stepscope, time\n"
        "try:\n"
        "    with open('filler', 'wb') as stream:\n"
        "        while True: stream.write(b'x' * 65536); stream.flush()\n"
        "except OSError: pass\n"
        "for _ in range(2000): stepscope.step()\n"
        "print('end')\n",
    )
    setup = (
        f"mount -t tmpfs -o size=12m tmpfs {full}\ncd {full}\ntrap 'cp -r {full}/s.stepscope {project.root}/kept' EXIT"
    )
    command = project.command("run", "--session", "s.stepscope", str(script))
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{setup}\n"$@"; code=$?; exit $code', "sh", *command],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("needs root and mount namespaces")
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "No space left on device" in done.stderr
    assert "free some space, then run: stepscope report" in done.stderr
    kept = project.root / "kept"
    assert open_session(kept).manifest.command[-1] == str(script)


def test_full_disk_that_gets_room_again(project: Project) -> None:
    """What a full disk refused waits in the run directory, and the session's opening stores it."""
    session = project.root / "disk" / "s.stepscope"
    session.parent.mkdir()
    if (
        not ROOT
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(session.parent)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs root to mount")
    try:
        filler = session.parent / "filler"
        script = project.script(
            "fill.py",
            "import os, stepscope\n"
            f"fd = os.open({str(filler)!r}, os.O_WRONLY | os.O_CREAT)\n"
            "try:\n    while True: os.write(fd, bytes(65536))\n"
            "except OSError: pass\n"
            "for _ in range(2000):\n    with stepscope.span('x'): pass\n",
        )
        done = project.run("run", "--session", str(session), script.name)
        assert done.returncode == 0
        assert "free some space" in done.stderr
        filler.unlink()
        recovered = open_session(session)
        assert recovered.manifest.state == "recovered"
        assert spans(recovered) == 2000
        assert not Path(recovered.manifest.run_dir).exists()
    finally:
        subprocess.run(["umount", str(session.parent)], check=True)


@pytest.mark.skipif(not ROOT, reason="needs root to mount")
def test_read_only_home(project: Project) -> None:
    """A home that cannot be written changes nothing."""
    home = project.root / "home"
    home.mkdir()
    done = in_namespace(
        project,
        f"mount -t tmpfs -o ro tmpfs {home}\nexport HOME={home}",
        "run",
        "steps.py",
        "10",
    )
    assert (done.returncode, done.stdout) == (0, "ready\ndone\n"), done.stderr
    assert spans(project.session()) == 10
