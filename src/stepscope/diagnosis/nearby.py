"""Files near a job, looked at once, when its report is written: the notebook of its cells, the weights of its models.

What they say is kept in the manifest. A file is near if it lies in a working directory of the job, in the folder of the
source that names it, or if the command names it; one that changed after it was loaded is left out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.check.source import notebook
from stepscope.derive.python import notebook_cells
from stepscope.model.log.events import InferenceSession, ProcessStarted
from stepscope.model.session.session import CELL
from stepscope.readers import onnx_weights
from stepscope.store import manifests
from stepscope.tables import layout
from stepscope.tables.errors import FormatError
from stepscope.tables.nearby import ModelWeights, NotebookCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.model.session.session import Session

MAX_NOTEBOOKS, MAX_NOTEBOOK_BYTES, MAX_CELLS = 50, 20_000_000, 2_000
MAX_MODELS, MAX_MODEL_BYTES = 8, 512_000_000
SLACK_NS = 1_000_000_000
"""Of a file's time against the job's clock."""


def keep(folder: Path, session: Session) -> Session:
    """The session with what files near the job say, which its manifest has from now on.

    Raises:
        OSError: the manifest cannot be written.
    """
    known = session.manifest
    if known.mode in {"import", "merge"} or known.models or (known.cells and known.mode != CELL):
        return session
    found = {"cells": known.cells or cells(session), "models": models(session)}
    if found == {"cells": known.cells, "models": known.models}:
        return session
    manifest = msgspec.structs.replace(manifests.read_manifest(folder), **found)
    layout.write_atomic(folder / layout.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return msgspec.structs.replace(session, manifest=msgspec.structs.replace(known, **found))


def cells(session: Session) -> tuple[NotebookCell, ...]:
    """The cells of the notebooks that hold those that ran; of one that several notebooks hold, that of the notebook
    with the most of them, or none.
    """
    ran = {number for file in _files(session) if (number := notebook_cells.hash_in(file))}
    if not ran:
        return ()
    books = [_compiled(path, session.manifest.cwd) for path in _notebooks(session)]
    best: dict[str, tuple[int, NotebookCell | None]] = {}
    for book in books:
        held = len(ran & book.keys())
        for key, cell in book.items() if held else ():
            most = best[key][0] if key in best else 0
            if held >= most:
                best[key] = held, cell if held > most else None
    return tuple(cell for _, cell in best.values() if cell is not None)[:MAX_CELLS]


def _files(session: Session) -> Iterator[str]:
    """Files that lines of the logs name."""
    for worker in session.workers:
        for event in worker.events:
            yield from (getattr(event, field, "") for field in ("file", "call_file", "fn_file"))


def _folders(session: Session) -> list[Path]:
    """Working directories of the job's processes."""
    started = (event.cwd for worker in session.workers for event in worker.all(ProcessStarted))
    return [Path(one) for one in dict.fromkeys([session.manifest.cwd, *started]) if one]


def _notebooks(session: Session) -> list[Path]:
    """Notebooks near the job, those that its command names first."""
    folders = _folders(session)
    named = [folder / word for folder in folders for word in session.manifest.command if word.endswith(".ipynb")]
    try:
        there = [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]
    except OSError:
        there = []
    found = dict.fromkeys(Path(os.path.normpath(path)) for path in (*named, *there))
    return [path for path in found if path.is_file()][:MAX_NOTEBOOKS]


def _compiled(path: Path, cwd: str) -> dict[str, NotebookCell]:
    """The cells of a notebook by the number that a kernel gives them, without texts that two cells share."""
    try:
        if path.stat().st_size > MAX_NOTEBOOK_BYTES:
            return {}
        code = notebook.texts(path.read_bytes())
    except (OSError, ValueError):
        return {}
    name = os.path.relpath(path, cwd) if cwd and path.is_relative_to(cwd) else str(path)
    found: dict[str, list[NotebookCell]] = defaultdict(list)
    for number, text in code:
        for body, above in notebook_cells.compiled(text):
            key = notebook_cells.hash_of(body)
            found[key].append(NotebookCell(hash=key, name=f"{name} cell {number}", above=above))
    return {key: ones[0] for key, ones in found.items() if len(ones) == 1}


def models(session: Session) -> tuple[ModelWeights, ...]:
    """The models that ONNX Runtime loaded from files, with their weights that are denormal."""
    made = [event for worker in session.workers for event in worker.all(InferenceSession)]
    loaded = {event.model: event for event in reversed(made) if event.model}
    found = (_weights(session, event) for event in list(loaded.values())[:MAX_MODELS])
    return tuple(one for one in found if one is not None)


def _weights(session: Session, event: InferenceSession) -> ModelWeights | None:
    words = [word for word in session.manifest.command if Path(word).name == event.model]
    folders = _folders(session)
    near = [*(folder / word for folder in folders for word in words), *_in(folders, event.model)]
    near += _in([Path(event.file).parent] if event.file else [], event.model)
    loaded_ns = session.manifest.started_unix_ns + event.at + SLACK_NS
    for path in dict.fromkeys(near):
        try:
            seen = path.stat()
            if seen.st_size <= MAX_MODEL_BYTES and seen.st_mtime_ns <= loaded_ns:
                return onnx_weights.read_file(path)
        except (OSError, FormatError):  # it is not there, or no model
            continue
    return None


def _in(folders: Iterable[Path], name: str) -> list[Path]:
    return [folder / name for folder in folders]
