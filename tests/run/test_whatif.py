"""``whatif`` with real jobs: what a setting brings, what it does not, and what goes wrong."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.run.conftest import PATIENCE_S, Project, environment, wait_for, what_is_left

from stepscope.sandbox import isolation

WAITS = """
import os, sys, time, stepscope
assert "PYTHONPATH" in os.environ
wait = 0.02 if os.environ.get("MALLOC_CONF", "") == "" else 0.004
print("waiting", wait, *sys.argv[1:])
for _ in range(60):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(wait)
"""


REACHES = """
import socket, urllib.request
for _ in range(3):
    try: urllib.request.urlopen("http://s3.example.com/bucket")
    except OSError: pass
socket.create_server(("127.0.0.1", 0)).close()
try: import wandb
except ImportError: pass
"""


def isolated() -> None:
    problem = isolation.problem()
    if problem:
        pytest.skip(problem)


def git(folder: Path, *words: str) -> str:
    """Output of git."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def tried_and_against(project: Project) -> None:
    """A setting that brings much, and an earlier commit that is slower; the job wants to reach something."""
    git(project.root, "init", "-q")
    project.script("train.py", WAITS.replace("0.02", "0.06"))
    git(project.root, "add", "train.py")
    git(project.root, "commit", "-q", "-m", "Slow")
    project.script("train.py", REACHES + WAITS)
    words = ("--rounds", "3", "--json", "--against", "HEAD", "train.py", "--epochs", "2", "--try", "jemalloc-keep")
    there, mark = what_is_left(), str(project.root)
    before = there.there()
    done = project.run("whatif", *words, env=environment(LEFT=mark), patience_s=4 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (project.root / "left.json").write_text(json.dumps(there.left(before, mark, only_marked=True)))
    (project.root / "out.json").write_text(done.stdout)
    (project.root / "err.txt").write_text(done.stderr)


@pytest.fixture(name="tried", scope="module")
def _tried(ran_once: Callable[[Callable[[Project], None]], Project]) -> Path:
    """The folder of an experiment that several tests look at."""
    return ran_once(tried_and_against).root


@pytest.mark.alone
def test_the_gain_is_measured_and_stands_in_an_interval(tried: Path) -> None:
    report = json.loads((tried / "out.json").read_text())
    (result,) = (one for one in report["results"] if one["remedy"] == "jemalloc-keep")
    assert report["schema"] == "stepscope.whatif/1"
    assert report["measure"] == "step"
    assert report["ns"] > 20e6
    assert result["ratio"] == pytest.approx(result["ns"] / report["ns"], rel=0.5)
    assert result["low"] < result["ratio"] < result["high"]
    assert result["ratio"] < 0.8
    rounds = [(run["round"], run["remedy"]) for run in report["runs"] if run.get("stage", "") != "stacks"]
    for number in (1, 2, 3):
        names = [name for of, name in rounds if of == number]
        assert (names[0], names[-1], names.count("jemalloc-keep")) == ("", "", 1)
    assert {of for of, _ in rounds} == {1, 2, 3}
    assert report["noise"]["low"] < report["noise"]["ratio"] < report["noise"]["high"]
    folder = tried / report["folder"]
    assert all((folder / run["session"] / "report.json").is_file() for run in report["runs"])
    assert json.loads((folder / "whatif.json").read_text("utf-8")) == report
    page = (folder / "whatif.html").read_text("utf-8")
    assert "Best: jemalloc-keep makes a step" in page
    assert "stacks-0-kept" in page, "a job of a quarter of a second is sampled from its first mark"
    assert "waiting 0.004 --epochs 2" in (folder / "1-jemalloc-keep.log").read_text("utf-8")
    assert "round 3: unchanged" in (tried / "err.txt").read_text()
    assert report["joined"] == report["runs"][0]["session"]
    joined = json.loads((folder / report["joined"] / "report.json").read_text("utf-8"))
    (found,) = [one for one in joined["findings"] if one["code"] == "EXP002"]
    assert (found["severity"], found["cost"]["ratio"]) == ("high", pytest.approx(1 - result["ratio"]))


@pytest.mark.alone
def test_an_earlier_commit_is_compared(tried: Path) -> None:
    """The commit before the fix is found slower than the fix; the worktree is gone."""
    report = json.loads((tried / "out.json").read_text())
    (result,) = (one for one in report["results"] if one["remedy"] != "jemalloc-keep")
    assert 1.8 < result["ratio"] < 10, result
    assert report["against"].startswith("commit ")
    assert len(git(tried, "worktree", "list").splitlines()) == 1


@pytest.mark.alone
def test_what_the_job_wants_to_reach_is_in_the_report(tried: Path) -> None:
    """Host, port and attempts of one run, the trackers that it imports, and that it had no network."""
    isolated()
    report = json.loads((tried / "out.json").read_text())
    assert report["peers"] == [{"peer": "s3.example.com:80", "attempts": 3}]
    assert report["trackers"] == ["W&B"]
    assert not report["network"]


@pytest.mark.alone
def test_its_folder_is_all_that_stays(tried: Path) -> None:
    """The trials are isolated."""
    isolated()
    assert json.loads((tried / "left.json").read_text()) == []


def test_what_fails_is_not_possible(project: Project) -> None:
    """A setting and another script; what the runs write is thrown away."""
    project.script(
        "train.py",
        "import os\nprint('no such data')\nopen('written', 'w')\n"
        "raise SystemExit(3 if 'MALLOC_CONF' in os.environ else 0)\n",
    )
    project.script("other.py", "print('another')\nopen('written', 'w')\nraise SystemExit(4)\n")
    words = ("--folder", "tried", "--try", "jemalloc-keep", "--against", "other.py", "train.py")
    done = project.run("whatif", *words)
    assert done.returncode == 0, done.stderr
    assert "not possible: the run 1-jemalloc-keep ended with exit code 3;" in done.stdout
    assert "nothing that was tried is possible with this job" in done.stdout
    assert (project.root / "tried" / "1-jemalloc-keep.log").read_text("utf-8") == "no such data\n"
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("against "))
    assert "not possible: the run 1-against ended with exit code 4;" in line
    assert (project.root / "tried" / "1-against.log").read_text("utf-8") == "another\n"
    if "thrown away" in done.stdout:
        assert not (project.root / "written").exists()


def test_an_unchanged_run_that_fails_ends_it(project: Project) -> None:
    project.script("train.py", "print('no such data')\nraise SystemExit(3)\n")
    done = project.run("whatif", "--folder", "tried", "--try", "jemalloc-keep", "train.py")
    assert done.returncode == 67
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("stepscope: the run 1-as-it-is ended with exit code 3; its output: tried/1-as-it-is.log")


def test_a_job_that_fails_without_network_is_said_to_want_it(project: Project) -> None:
    """The error names the peers, where the program's last words speak of the network."""
    isolated()
    project.script("train.py", REACHES + "raise SystemExit('Connection refused')\n")
    done = project.run("whatif", "--folder", "tried", "--try", "glibc-keep", "train.py")
    assert done.returncode == 67
    last = done.stderr.splitlines()[-1]
    assert last.endswith("it had no network and wanted to reach s3.example.com:80 (3 times): see --allow-network")


def test_attempts_of_other_programs_are_counted(project: Project) -> None:
    """What is not Python has no name, but is known to have tried."""
    isolated()
    code = "exec 3<>/dev/udp/192.0.2.1/9"
    project.script("train.py", f"import subprocess; subprocess.run(['bash', '-c', '{code}'])\nraise SystemExit(3)\n")
    done = project.run("whatif", "--folder", "tried", "--try", "glibc-keep", "train.py")
    assert "wanted to reach something outside, by code that is not Python (1 time)" in done.stderr.splitlines()[-1]


def test_one_worker_of_a_cluster_is_refused(project: Project) -> None:
    project.script("train.py", "")
    done = project.run("whatif", "train.py", env={**environment(), "TF_CONFIG": "{}"})
    assert done.returncode == 64
    assert "TF_CONFIG is set: one worker of a cluster cannot be tried alone" in done.stderr


def test_nothing_to_try(project: Project) -> None:
    project.script("train.py", "print('fine')\n")
    done = project.run("whatif", "--folder", "tried", "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing to try: no finding and no part of the step suggests a change; see --list\n"
    assert (project.root / "tried" / "0-as-it-is.stepscope" / "report.json").is_file()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--try", "nothing", "train.py"], "nothing"),
        (["--rounds", "2", "train.py"], "Invalid value for '--rounds'"),
        (["--try", "glibc-keep", "--folder", ".", "train.py"], "--folder .: it already exists"),
        ([], "nothing to run"),
    ],
)
def test_bad_command_lines(project: Project, words: list[str], line: str) -> None:
    project.script("train.py", "")
    done = project.run("whatif", *words)
    assert done.returncode == 64
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_ends_it_all(project: Project) -> None:
    project.script("train.py", "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        project.command("whatif", "--folder", "tried", "--try", "glibc-keep", "train.py"),
        cwd=project.root,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    project.started.append(process)
    log = project.root / "tried" / "1-as-it-is.log"
    wait_for(lambda: log.is_file() and "ready" in log.read_text("utf-8"), "the job's first line")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not (project.root / "tried" / "1-glibc-keep.log").exists()


EAGER = """
import tensorflow as tf
weight = tf.random.normal((64, 64))
for number in range(100_000):
    x = tf.random.normal((32, 64))
    first, *others = (tf.matmul(x, weight) for _ in range(5))
"""


@pytest.mark.tf
def test_values_are_looked_at(project: Project) -> None:
    """One run says which line computes the same again, and that nothing has timed it; the job does not go on."""
    project.script("train.py", EAGER)
    done = project.run(
        "whatif", "--folder", "tried", "--try", "values", "--json", "train.py", patience_s=4 * PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (claim,) = report["values"]["claims"]
    assert (report["rounds"], report["results"], [run["remedy"] for run in report["runs"]]) == (0, [], ["values"])
    assert (claim["kind"], claim["places"][0]["file"], claim["places"][0]["line"]) == ("repeated", "train.py", 6)
    assert claim["ratio"] == pytest.approx(0.8, abs=0.01)
    assert claim.get("time_ratio", 0) == 0
    assert claim["note"].startswith("leaving out these ops")


PREPARES = """
import time, tensorflow as tf
weights = tf.Variable(0.0)
@tf.function
def step(x): weights.assign_sub(0.001 * x)
def prepare():
    time.sleep(0.02)
    return tf.constant(1.0)
while True: step(prepare())
"""


@pytest.mark.tf
def test_a_trial_that_can_be_switched_needs_one_run(project: Project) -> None:
    """After one unchanged run, one in which it is on and off; its interval is of pairs of blocks of that process."""
    project.script("train.py", PREPARES)
    words = ("--folder", "tried", "--try", "stub:prepare", "--json", "train.py")
    done = project.run("whatif", *words, patience_s=4 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (result,) = report["results"]
    assert [(run["remedy"], run.get("switched", False)) for run in report["runs"]] == [
        ("", False),
        ("stub:prepare", True),
    ]
    assert (result["verdict"], result["rounds"], result.get("whole_why", "")) == ("faster", 1, "")
    assert result["pairs"] >= 4
    assert result["low"] < result["ratio"] < result["high"] < 1
    assert "stub:prepare, switched on and off" in done.stderr
    page = (project.root / "tried" / "whatif.html").read_text("utf-8")
    assert "switched on and off in one process" in page
    assert "whose stacks are of both" in page
