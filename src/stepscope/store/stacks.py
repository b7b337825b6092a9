"""A stack profile as one Parquet file: its samples are the rows, the rest is in the file's metadata.

Metadata ``profile``: base64 of zlib of JSON (``ProfileHead``). One file is one profile, written whole or not at all.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.store import tables
from stepscope.tables import layout, nesting
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import Frame, SampleTable, StackProfile, StackTable, Thread

if TYPE_CHECKING:
    from pathlib import Path

MAX_HEAD_BYTES = 1 << 30
"""Maximum unpacked size of the metadata: some ten million stacks."""
HEAD_KEY = "profile"


class ProfileHead(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a stack profile other than its samples."""

    event: str
    unit: str
    name: str = ""
    begin_ns: int = -1
    end_ns: int = -1
    lost: int = 0
    unread: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    threads: tuple[Thread, ...] = ()
    frames: tuple[Frame, ...] = ()
    parents: tuple[int, ...] = ()
    """Caller's stack of each stack, -1 for a root."""
    leaves: tuple[int, ...] = ()
    """Leaf of each stack, an index into ``frames``."""


def write(session: Path, name: str, profile: StackProfile) -> Path:
    """Store a profile in the session directory ``session``; ``name`` (like "cpu-0001") distinguishes it from the
    others.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.STACKS / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, encode(profile))
    return path


def encode(profile: StackProfile) -> bytes:
    """The file's bytes."""
    head = ProfileHead(
        event=profile.event,
        unit=profile.unit,
        name=profile.name,
        begin_ns=profile.begin_ns,
        end_ns=profile.end_ns,
        lost=profile.lost,
        unread=profile.unread,
        diagnostics=tuple(profile.diagnostics),
        threads=tuple(profile.threads),
        frames=tuple(profile.frames),
        parents=tuple(profile.stacks.parent.tolist()),
        leaves=tuple(profile.stacks.frame.tolist()),
    )
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(head), 1)).decode()
    return tables.encode(tables.columns_of(profile.samples), {HEAD_KEY: packed})


def decode(data: bytes) -> StackProfile:
    """The inverse of ``encode``.

    Raises:
        ValueError: it is damaged, or not a stack profile.
    """
    columns, metadata = tables.read_columns(data)
    head = _head(metadata.get(HEAD_KEY, ""))
    if len(head.parents) != len(head.leaves):
        raise ValueError(f"{len(head.parents)} callers of {len(head.leaves)} stacks")
    samples: dict[str, np.ndarray] = {}
    for name in SampleTable.__struct_fields__:
        kind = np.float64 if name == "weight" else np.int64
        if name == "op_thread" and name not in columns:  # from a window of an earlier stepscope
            samples[name] = np.zeros(len(columns["at_ns"]), np.int64)
            continue
        if name not in columns:
            raise ValueError(f"column {name} is missing")
        values = columns[name].to_numpy(zero_copy_only=False)
        if values.dtype != kind:
            raise ValueError(f"column {name} is {values.dtype}, expected {np.dtype(kind)} without gaps")
        samples[name] = values
    return StackProfile(
        event=head.event,
        unit=head.unit,
        name=head.name,
        begin_ns=head.begin_ns,
        end_ns=head.end_ns,
        lost=head.lost,
        unread=head.unread,
        diagnostics=head.diagnostics,
        threads=head.threads,
        frames=head.frames,
        stacks=StackTable(parent=np.array(head.parents, np.int64), frame=np.array(head.leaves, np.int64)),
        samples=SampleTable(**samples),
    )


def _head(packed: str) -> ProfileHead:
    try:
        text = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), MAX_HEAD_BYTES)
        with nesting.bounded():
            return msgspec.json.decode(text, type=ProfileHead)
    except (zlib.error, ValueError) as error:
        raise ValueError(f"its metadata {HEAD_KEY!r} is missing or damaged: {error}") from error
