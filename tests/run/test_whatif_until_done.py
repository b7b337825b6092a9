"""``whatif --until-done`` with a real job, interrupted and resumed."""

import json
import signal
import subprocess

from tests.run.conftest import PATIENCE_S, Project, environment, wait_for

TWO_CAUSES = """
import os, time, stepscope
wait = 0.060
if "MALLOC_CONF" in os.environ: wait -= 0.048
if "GLIBC_TUNABLES" in os.environ: wait -= 0.009
for _ in range(20):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(wait)
"""
NAMES = "jemalloc-keep,glibc-hugepages"


def test_until_done_is_interrupted_and_resumed(project: Project) -> None:
    """Ctrl-C in the second step says how to resume; resumed, it repeats no run and comes to an end.

    Whether the second change is a sure gain depends on the machine: tests/use_cases/whatif asserts that with made-up
    runs.
    """
    project.script("train.py", TWO_CAUSES)
    process = subprocess.Popen(
        project.command("whatif", "--folder", "tried", "--until-done", "--rounds", "3", "--try", NAMES, "train.py"),
        cwd=project.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    project.started.append(process)
    folder = project.root / "tried"
    for name in ("step1-1-as-it-is", "step1-1-glibc-hugepages", "step1-2-jemalloc-keep", "step1-3-jemalloc-keep"):
        wait_for((folder / f"{name}.log").is_file, name)
    wait_for((folder / "step2-1-glibc-hugepages.log").is_file, "the second step")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "step 1: jemalloc-keep is kept" in output
    assert "ended early; to resume: stepscope whatif --resume tried" in output
    made = json.loads((folder / "experiment.json").read_text())["runs"]

    done = project.run("whatif", "--resume", "tried", "--json", patience_s=6 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert f"{len(made)} runs of this experiment are in the folder and count" in done.stderr
    assert "step1" not in done.stderr
    report = json.loads(done.stdout)
    assert report["way"]["kept"] in ([NAMES.split(",", maxsplit=1)[0]], NAMES.split(","))
    assert report["way"]["stop"] in {"no-gain", "nothing-suggested"}
    assert [step["kept"] for step in report["way"]["steps"]][:2] == [[], ["jemalloc-keep"]]
    assert report["way"]["total"]["verdict"] == "faster"
    assert report["way"]["total"]["ratio"] < 0.8
    sessions = [run["session"] for run in report["runs"]]
    assert len(set(sessions)) == len(sessions)
    assert sessions[: len(made)] == [run["session"] for run in made]
    assert all((folder / session / "report.json").is_file() for session in sessions)
