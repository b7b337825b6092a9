"""Files near a job: cells of notebooks get the notebook's name and number, models their denormal weights."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MS, Frame, Job
from tests.readers.onnx_bytes import model

from stepscope.derive.python.notebook_cells import hash_of
from stepscope.derive.view import SessionView
from stepscope.diagnosis import nearby
from stepscope.model.log.events import InferenceSession
from stepscope.model.session.session import Session
from stepscope.store import manifests
from stepscope.tables import layout

IMPORTS, TRAINS = "import tensorflow as tf\n", "\n\ndef slow(x):\n    return x\n"


def book(path: Path, *sources: str) -> None:
    """A notebook: a cell of text, then these of code, as lists of lines."""
    code = [{"cell_type": "code", "source": text.splitlines(keepends=True), "outputs": []} for text in sources]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, *code], "metadata": {}}))


def ran(folder: Path, *texts: str, command: tuple[str, ...] = ("python", "-m", "ipykernel_launcher")) -> Session:
    """A kernel in a folder whose cells of these texts ran."""
    job = Job()
    job.function(file=_path(texts[0])).every(100 * MS, 40, dur=90 * MS)
    for text in texts:
        job.samples([5 * MS], Frame(_path(text), "slow", 1))
    session = job.session()
    return msgspec.structs.replace(
        session, manifest=msgspec.structs.replace(session.manifest, cwd=str(folder), command=command)
    )


def _path(text: str) -> str:
    return f"/tmp/ipykernel_4711/{hash_of(text)}.py"


def place(session: Session, text: str, line: int = 1) -> str:
    """A place as a report says it."""
    found = {"cells": nearby.cells(session)}
    view = SessionView(msgspec.structs.replace(session, manifest=msgspec.structs.replace(session.manifest, **found)))
    where = view.place(_path(text), line)
    return f"{where.file}:{where.line}"


def test_a_cell_has_its_notebook_and_number(tmp_path: Path) -> None:
    """As ``check`` counts: cells of text, and empty lines that the kernel drops, too."""
    book(tmp_path / "train.ipynb", IMPORTS, TRAINS)
    session = ran(tmp_path, TRAINS)
    assert place(session, TRAINS, 2) == "train.ipynb cell 3:4"
    assert place(session, IMPORTS) == "train.ipynb cell 2:1"


def test_of_several_notebooks_it_is_that_with_most_cells_that_ran(tmp_path: Path) -> None:
    book(tmp_path / "a.ipynb", IMPORTS, "other()")
    book(tmp_path / "b.ipynb", TRAINS, IMPORTS)
    session = ran(tmp_path, IMPORTS, TRAINS)
    assert [place(session, one) for one in (IMPORTS, TRAINS)] == ["b.ipynb cell 3:1", "b.ipynb cell 2:3"]


@pytest.mark.parametrize("copy", ["a copy", "an edited cell", "the same text twice", "no notebook", "none at all"])
def test_what_is_not_known_is_said_as_before(copy: str, tmp_path: Path) -> None:
    """Two notebooks with the same cells, a text that two cells have, and one that was edited since, name nothing."""
    path = tmp_path / "a.ipynb"
    book(path, *([TRAINS + "#"] if copy == "an edited cell" else [TRAINS, TRAINS] if "twice" in copy else [TRAINS]))
    if copy == "a copy":
        book(tmp_path / "b.ipynb", IMPORTS, TRAINS)
    elif copy == "no notebook":
        path.write_text('{"cells": [{"cell_type": "code", "source"')
    elif copy == "none at all":
        path.unlink()
    assert place(ran(tmp_path, TRAINS), TRAINS) == f"notebook cell {hash_of(TRAINS)}:1"


def test_a_notebook_that_the_command_names(tmp_path: Path) -> None:
    """``jupyter execute`` runs it from anywhere."""
    (tmp_path / "nb").mkdir()
    book(tmp_path / "nb" / "train.ipynb", TRAINS)
    session = ran(tmp_path, TRAINS, command=("jupyter", "execute", "nb/train.ipynb"))
    assert place(session, TRAINS) == "nb/train.ipynb cell 2:3"


def test_no_notebook_is_read_without_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most jobs are none of a kernel."""
    monkeypatch.setattr(nearby, "_notebooks", lambda _: pytest.fail("looked for notebooks"))
    assert nearby.cells(Job().session()) == ()


def test_the_manifest_keeps_it(tmp_path: Path) -> None:
    """A report made later, or elsewhere, says the same: the notebook may be gone by then."""
    book(tmp_path / "train.ipynb", TRAINS)
    session = ran(tmp_path, TRAINS)
    folder = tmp_path / "s.stepscope"
    folder.mkdir()
    layout.write_atomic(folder / layout.MANIFEST, msgspec.json.encode(session.manifest))
    kept = nearby.keep(folder, session)
    (tmp_path / "train.ipynb").unlink()
    assert manifests.read_manifest(folder) == kept.manifest
    assert [cell.name for cell in kept.manifest.cells] == ["train.ipynb cell 2"]
    assert nearby.keep(folder, kept) is kept


def loaded(folder: Path, name: str = "net.onnx") -> Session:
    """A job that loaded a model."""
    job = Job()
    job.event(InferenceSession(model=name, file=str(folder / "src" / "serve.py"), line=4, at=3 * MS))
    session = job.session()
    manifest = msgspec.structs.replace(session.manifest, cwd=str(folder), started_unix_ns=10**18)
    return msgspec.structs.replace(session, manifest=manifest)


@pytest.mark.parametrize("folder", ["", "src"])
def test_denormal_weights_of_a_model(folder: str, tmp_path: Path) -> None:
    """In the working directory, or with the source that loads it."""
    path = tmp_path / folder / "net.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model({"w": np.array([1.0, 1e-40, 0.0, -1e-44], np.float32)}))
    os.utime(path, ns=(0, 10**18))
    (found,) = nearby.models(loaded(tmp_path))
    assert (found.model, found.floats, found.denormal) == ("net.onnx", 4, 2)


@pytest.mark.parametrize("why", ["written later", "no model", "missing"])
def test_another_file_says_nothing_of_the_model(why: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x0a" if why == "no model" else model({"w": np.full(4, 1e-40, np.float32)}))
    os.utime(path, ns=(0, 10**18 + (10**12 if why == "written later" else 0)))
    if why == "missing":
        path.unlink()
    assert nearby.models(loaded(tmp_path)) == ()
