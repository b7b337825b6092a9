"""``stepscope run --fleet`` and ``stepscope fleet``, as users type them."""

from __future__ import annotations

import msgspec
import pytest

from stepscope.model.api.fleet import FleetAnswer

from .conftest import Project, environment

TRAIN = "import sys\nexec(open('steps.py').read())\nsys.exit(3 if len(sys.argv) > 2 else 0)\n"


@pytest.fixture(name="home")
def _home(project: Project) -> dict[str, str]:
    return environment(
        XDG_STATE_HOME=str(project.root / "state"), XDG_CACHE_HOME=str(project.root / "cache"), STEPSCOPE_TEAM="vision"
    )


def answer(project: Project, home: dict[str, str], *words: str) -> FleetAnswer:
    """The answer of a question."""
    done = project.run("fleet", *words, "--format", "json", env=home)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=FleetAnswer)


def test_from_a_run_to_an_answer(project: Project, home: dict[str, str]) -> None:
    """Three jobs leave parts, one of them twice: three sessions, with their team, their ends and attempts."""
    project.script("train.py", TRAIN)
    for words, code in ((("200", "fail"), 3), (("200", "fail"), 3), (("300",), 0)):
        done = project.run("run", "--fleet", "parts", "train.py", *words, env=home)
        assert done.returncode == code, done.stderr
        assert "at parts; ask: stepscope fleet jobs parts" in done.stderr
    assert project.run("fleet", "add", str(project.sessions()[0]), "--to", "parts", env=home).returncode == 0
    found = answer(project, home, "jobs", "parts")
    assert (found.parts.sessions, found.parts.others, found.parts.damaged) == (3, 0, ())
    assert {(job.team, job.program) for job in found.jobs} == {("vision", "train.py")}
    assert sorted(job.exit_code or 0 for job in found.jobs) == [0, 3, 3]
    (again,) = [job for job in found.jobs if job.restarts]
    assert again.exit_code == 3, "the second attempt of the same command, and no other"
    assert again.restarts in {job.session for job in found.jobs if job.exit_code == 3}
    (team,) = answer(project, home, "top", "parts", "--by", "team").costs
    assert (team.name, team.jobs, team.failed) == ("vision", 3, 2)
    whole, *each = answer(project, home, "goodput", "parts").goodput
    assert (whole.attempts, whole.failed, sorted(job.attempts for job in each)) == (3, 2, [1, 2])
    assert 0.0 < whole.steps_hours + whole.lost_hours < whole.held_hours
    done = project.run("fleet", "changes", "parts", "--by", "job", "--exit-code", env=home)
    assert done.returncode == 3, done.stderr
    assert "3 sessions: cannot tell; expected 5 or more" in done.stdout


def test_a_place_that_is_not_there(project: Project, home: dict[str, str]) -> None:
    """The job's exit code is the job's, the part waits, and the next run sends both."""
    project.script("parts", "a file, no folder")
    done = project.run("run", "--fleet", "parts", "steps.py", "100", env=home)
    assert done.returncode == 0
    assert "not sent: " in done.stderr
    (project.root / "parts").unlink()
    done = project.run("run", "--fleet", "parts", "steps.py", "100", env=home)
    assert done.returncode == 0
    assert answer(project, home, "jobs", "parts").parts.sessions == 2
    assert list((project.root / "state").rglob("*.parquet")) == []


def test_an_address_that_can_never_work(project: Project, home: dict[str, str]) -> None:
    """Is refused before the job starts."""
    done = project.run("run", "--fleet", "nowhere://x", "steps.py", "5", env=home)
    assert done.returncode == 64
    assert "ready" not in done.stdout
    assert "fsspec knows no nowhere://" in done.stderr
