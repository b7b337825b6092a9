"""``stepscope pack --redact``: nothing of the user is left in the file, and the report says the same."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
from msgspec.structs import replace

from stepscope.model.report.report import Component
from stepscope.sessions import analysis
from stepscope.sessions.bundle import unpack

from .conftest import Project, environment

SECRETS = ("zebra", "acmecorp", "customer", "churnmodel", "4711815", "giraffe")
JOB = """
import sys, time, stepscope

class Zebra:
    def churnmodel(self, giraffe):
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            pass

print("ready", flush=True)
for step in range(400):
    stepscope.step()
    with stepscope.span("zebra phase"):
        Zebra().churnmodel(step)
    stepscope.metric("giraffe_loss", step)
"""


def measured(part: Component) -> Component:
    """A part of the step, without the user's names."""
    return replace(part, name="", where=None)


def texts(folder: Path) -> list[str]:
    """All text of a session: of files, and of the columns and metadata of Parquet files, and the names of files."""
    found = []
    for path in folder.rglob("*"):
        found.append(path.relative_to(folder).as_posix())
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            found += [str(column.to_pylist()) for column in table.columns] + [str(table.schema.metadata)]
        elif path.is_file():
            found.append(path.read_text("utf-8"))
    return found


def redacted(project: Project, name: str) -> Path:
    """The unpacked copy of the session, redacted with the key of one user."""
    state = environment(XDG_STATE_HOME=str(project.root / "state"))
    done = project.run("pack", "--redact", "a.stepscope", "-o", f"{name}.zip", env=state)
    assert done.returncode == 0, done.stderr
    return unpack(project.root / f"{name}.zip", project.root / f"{name}.stepscope")


def test_no_word_of_the_user_leaks(project: Project) -> None:
    """Paths, names of spans, functions and metrics, arguments and sources; what was found and counted stays."""
    (project.root / "acmecorp").mkdir()
    project.script("acmecorp/zebra.py", JOB)
    done = project.run("run", "-q", "--session", "a.stepscope", "acmecorp/zebra.py", "--customer=4711815", "giraffe")
    assert done.returncode == 0, done.stderr
    plain = " ".join(texts(project.root / "a.stepscope")).lower()
    assert [word for word in SECRETS if word not in plain] == []
    copy = redacted(project, "one")
    left = " ".join(texts(copy)).lower()
    assert [word for word in SECRETS if word in left] == []
    assert str(project.root).lower() not in left
    before, after = (analysis.analyze(path) for path in (project.root / "a.stepscope", copy))
    assert after.session.steps == before.session.steps
    assert list(map(measured, after.anatomy)) == list(map(measured, before.anatomy))
    assert [(f.code, f.severity) for f in after.findings] == [(f.code, f.severity) for f in before.findings]
    with zipfile.ZipFile(project.root / "one.zip") as packed:
        assert not [name for name in packed.namelist() if "sources" in name]
    again = json.loads((redacted(project, "two") / "manifest.json").read_text())
    assert again["command"] == json.loads((copy / "manifest.json").read_text())["command"]
