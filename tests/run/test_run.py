"""What ``stepscope run`` does with a job that is left alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.wire.kinds import Kind

from .conftest import Project, environment, spans, wait_for

SECRETS = ("--api-key=hunter22", "--token", "hunter33", "--password", "correct-horse")


def with_secrets(project: Project) -> None:
    """A job whose command line has secrets."""
    done = project.run("run", "--report-json", "out.json", "steps.py", "300", *SECRETS)
    assert (done.returncode, done.stdout) == (0, "ready\ndone\n"), done.stderr
    (project.root / "stderr").write_text(done.stderr)


@pytest.fixture(name="ran", scope="module")
def _ran(ran_once: Callable[[Callable[[Project], None]], Project]) -> Project:
    """The project of that job."""
    return ran_once(with_secrets)


def test_every_record_of_the_job_is_in_the_session(ran: Project) -> None:
    """A job's steps and spans are all stored, once, in order of time."""
    (worker,) = ran.session().workers
    records = worker.records
    assert (records.kind == Kind.SPAN).sum() == 300
    assert sorted(records.seq.tolist()) == list(range(1, len(records) + 1))
    assert (records.start_ns[1:] >= records.start_ns[:-1]).all()
    assert 0 < records.start_ns[0] < records.start_ns[-1] < ran.session().manifest.ended_ns
    assert worker.info.clean_exit


def test_closed_standard_streams(project: Project) -> None:
    """A job whose standard streams are closed, as a service's are, finds them closed, and is measured."""
    project.script(
        "says.py",
        """
import os, stepscope
with stepscope.span("work"): pass
closed = []
for number in range(3):
    try: os.fstat(number)
    except OSError: closed.append(number)
open("closed", "w").write(str(closed))
""",
    )
    command = project.command("run", "--session", "s.stepscope", sys.executable, "says.py")
    closing = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    done = subprocess.run([*closing, *command], cwd=project.root, env=environment(), check=False)
    assert done.returncode == 0
    assert (project.root / "closed").read_text() == "[0, 1, 2]"
    assert spans(project.session()) == 1


def test_manifest_says_what_was_run(ran: Project) -> None:
    """Command, exit code, state, host and worker stand in the manifest; secrets do not."""
    manifest = ran.session().manifest
    hidden = ("--api-key=***", "--token", "***", "--password", "***")
    assert manifest.command == (sys.executable, "steps.py", "300", *hidden)
    assert (manifest.exit_code, manifest.state, manifest.sidecar_starts) == (0, "finished", 1)
    assert manifest.cwd == str(ran.root)
    assert manifest.host.cpus == os.cpu_count()
    assert "hunter" not in (ran.sessions()[0] / "manifest.json").read_text()
    assert not Path(manifest.run_dir).exists()


def test_secrets_of_the_command_line_are_in_no_file(ran: Project) -> None:
    """Nothing of a masked argument is stored anywhere in the session."""
    session = ran.session()
    stored = [e.argv for w in session.workers for e in w.events if hasattr(e, "argv")]
    assert "correct-horse" not in repr(stored)
    assert "correct-horse" not in repr([w.info.command for w in session.workers])


def test_report_goes_to_stderr_and_files(ran: Project) -> None:
    """The report is printed to stderr, lies in the session in four forms and is copied as JSON on request."""
    (path,) = ran.sessions()
    said = (ran.root / "stderr").read_text()
    assert said.startswith("stepscope ")
    assert str(path.name) in said
    assert {p.name for p in path.glob("report.*")} == {"report.json", "report.txt", "report.md", "report.html"}
    assert json.loads((ran.root / "out.json").read_text())["session"]["exit_code"] == 0


def test_module_form(project: Project) -> None:
    """``run -m package`` runs a module with its options untouched."""
    (project.root / "pkg").mkdir()
    project.script("pkg/__init__.py", "")
    project.script("pkg/__main__.py", "import sys; print(sys.argv[1:])")
    done = project.run("run", "-m", "pkg", "-m", "x", "--session", "y", "--", "z")
    assert done.stdout == "['-m', 'x', '--session', 'y', '--', 'z']\n"
    assert project.sessions()[0].name.startswith("pkg-")


def test_command_form(project: Project) -> None:
    """``run -- command`` runs a shell script that starts Python, and measures that Python."""
    shell = project.script("train.sh", f"#!/bin/sh\n'{sys.executable}' steps.py 50\nexit 4\n")
    shell.chmod(0o755)
    done = project.run("run", "--", "./train.sh")
    assert (done.returncode, done.stdout) == (4, "ready\ndone\n")
    (worker,) = project.session().workers
    assert (worker.records.kind == Kind.SPAN).sum() == 50


def test_script_without_first_line_runs_by_the_shell(project: Project) -> None:
    """An executable text without ``#!`` runs as it would from a shell."""
    project.script("plain", "echo hello $1\n").chmod(0o755)
    assert project.run("run", "--", "./plain", "you").stdout == "hello you\n"


def test_options_of_the_script_are_its_own(project: Project) -> None:
    """Everything behind the script goes to the script, ``--`` included."""
    project.script("args.py", "import sys; print(sys.argv[1:])")
    done = project.run("run", "args.py", "--quiet", "-m", "--", "--session", "x")
    assert done.stdout == "['--quiet', '-m', '--', '--session', 'x']\n"


def test_sources_are_copied_while_the_job_runs(project: Project) -> None:
    """The copy is of what runs: there before the job ends, and not what the file is edited to meanwhile."""
    text = "import os, time\n" + project.root.joinpath("steps.py").read_text()
    text += "while not os.path.exists('stop'):\n    stepscope.step()\n    time.sleep(0.001)\n"
    script = project.script("edited.py", text)
    job = project.start("run", "-q", "--session", "a.stepscope", "edited.py", "3")
    index = project.root / "a.stepscope" / "captures" / "sources" / "index.json"
    wait_for(index.is_file, "the copies of the sources")
    script.write_text("changed = True\n")
    (project.root / "stop").touch()
    job.communicate(timeout=60)
    assert project.session().sources == {str(script): text}


def test_names_do_not_collide(project: Project) -> None:
    """A run within the minute of another one gets another session; with --quiet the job's output is all there is."""
    now = time.time()
    taken = {f"steps-{time.strftime('%m%d-%H%M', time.localtime(now + 60 * k))}" for k in range(5)}
    for name in taken:
        project.root.joinpath(f"{name}.stepscope").mkdir()
    assert project.run("run", "-q", "steps.py", "1").stderr == ""
    (second,) = project.root.glob("*-2.stepscope")
    assert second.name.removesuffix("-2.stepscope") in taken


def test_sources_travel(project: Project) -> None:
    """The script's text is in the session, without its secrets; with --no-sources it is not."""
    text = "import stepscope\nAPI_KEY = 'abcdef123456'\n" + project.root.joinpath("steps.py").read_text()
    script = project.script("named.py", text)
    project.run("run", "-q", "--session", "a.stepscope", "named.py", "3")
    project.run("run", "-q", "--no-sources", "--session", "b.stepscope", "named.py", "3")
    from stepscope.sessions.bundle import open_session

    sources = open_session(project.root / "a.stepscope").sources
    assert sources[str(script)] == text.replace("abcdef123456", "***")
    assert open_session(project.root / "b.stepscope").sources == {}


def test_job_is_as_without_us(project: Project) -> None:
    """Process group, signal mask, ignored signals, file descriptors, argv and search path equal a plain run's."""
    project.script(
        "probe.py",
        "import os, signal, sys\n"
        "status = open('/proc/self/status').read()\n"
        "print(os.getpgrp() == os.getpgid(os.getppid()), signal.pthread_sigmask(0, []))\n"
        "masks = [l.split() for l in status.splitlines() if l.startswith(('SigBlk', 'SigIgn'))]\n"
        "print([(name, int(mask, 16) & ~(3 << 31)) for name, mask in masks])  # 32, 33: glibc's own\n"
        "print(sorted(int(f) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)))\n"
        "print(sys.argv, sys.path, sys.flags, os.getcwd())\n",
    )
    plain = subprocess.run(
        [sys.executable, "probe.py", "x"],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert project.run("run", "probe.py", "x").stdout == plain.stdout


def test_job_without_framework_is_measured_all_the_same(project: Project) -> None:
    """A job that imports no TensorFlow gets a report that says so, with its process and host sampled."""
    project.script("plain.py", "import time; time.sleep(0.1); print('plain')")
    done = project.run("run", "plain.py")
    assert (done.returncode, done.stdout) == (0, "plain\n")
    session = project.session()
    assert session.workers == []
    assert len(session.host) >= 1
    assert "no Python process of the job imported a framework" in session.manifest.diagnostics[0].text
    assert done.stderr.startswith("stepscope ")


def test_children_are_measured_too(project: Project) -> None:
    """A child process that steps gets a worker of its own."""
    project.script(
        "parent.py", "import subprocess, sys; subprocess.run([sys.executable, 'steps.py', '20'], check=True)"
    )
    project.run("run", "parent.py")
    (worker,) = project.session().workers
    assert (worker.records.kind == Kind.SPAN).sum() == 20
    assert worker.info.command[-2:] == ("steps.py", "20")


def test_launcher_is_light() -> None:
    """What runs before the job has started imports none of the heavy packages."""
    ours = "stepscope.cli.main, stepscope.cli.run, stepscope.use_cases.record"
    code = f"import sys, {ours}; print({{'numpy', 'pyarrow', 'rich', 'msgspec'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_user_modules_do_not_shadow_the_sidecars(project: Project) -> None:
    """Files named like packages of the sidecar's, in the job's directory and on its PYTHONPATH, change nothing."""
    for name in ("json", "numpy", "select", "msgspec", "pyarrow"):
        project.script(f"{name}.py", "raise RuntimeError('shadowed')")
    library = project.root / "library"
    (library / "empty").mkdir(parents=True)
    (library / "empty" / "numpy.py").write_text("raise RuntimeError('shadowed')")
    (library / "entry").write_text("from stepscope.cli.main import main; main()")
    env = environment(PYTHONPATH=f"{environment()['PYTHONPATH']}:{library / 'empty'}", PYTHONWARNINGS="error")
    done = subprocess.run(
        [sys.executable, str(library / "entry"), "run", "--", "/bin/echo", "hello"],
        env=env,
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "hello\n"
    assert project.session().manifest.state == "finished"


def test_python_of_the_active_environment(project: Project) -> None:
    """A script runs with the Python of the active virtual environment, not with stepscope's own."""
    python = project.root / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho other\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = project.run("run", "-q", "steps.py", "1", env=environment(VIRTUAL_ENV=str(project.root / "venv")))
    assert done.stdout == "other\nready\ndone\n"


def test_relative_search_path_still_works(project: Project) -> None:
    """A relative PYTHONPATH of the user's is the job's too, behind ours."""
    (project.root / "lib").mkdir()
    project.script("lib/mine.py", "print('mine')")
    project.script("use.py", "import mine, sys; print(sys.path[1])")
    env = environment(PYTHONPATH=f"lib:{environment()['PYTHONPATH']}")
    assert project.run("run", "-q", "use.py", env=env).stdout.startswith("mine\n")
