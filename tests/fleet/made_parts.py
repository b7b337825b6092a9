"""Parts that tests make without a session."""

from __future__ import annotations

from pathlib import Path

from stepscope.fleet import schema
from stepscope.fleet.part_names import PartName, digest
from stepscope.fleet.rows import Row, encoded

HOUR_NS = 3600 * 10**9


def rows_of(
    *, user: str = "ann", wall_h: float = 1.0, devices: int = 0, finding: str = "INP003", end: int = 0
) -> list[Row]:
    """A job whose steps take all of its wall time, half of it at one line, a tenth by a finding."""
    words = {"user": user, "project": "nets", "program": "train", "host": "a", "end": "code", "started": "2026-11-30"}
    wall = round(wall_h * HOUR_NS)
    amounts = {"wall_ns": wall, "cpu_ns": 2 * wall, "devices": devices, "steps": 100, "step_ns": wall // 100}
    return [
        *(Row(kind="about", name=name, text=text) for name, text in words.items()),
        *(Row(kind="amount", name=name, number=number) for name, number in {**amounts, "exit_code": end}.items()),
        Row(kind="version", name="torch", text="2.9"),
        Row(
            kind="finding",
            name=finding,
            text="python-generator-input",
            time_ns=wall // 10,
            self_ns=wall // 20,
            ratio=0.1,
            low=0.05,
            high=0.2,
        ),
        Row(
            kind="line",
            name="",
            detail="own",
            file="train.py",
            line=41,
            function="make",
            time_ns=wall // 2,
            self_ns=wall // 4,
            cpu_ns=wall,
            ratio=0.5,
        ),
        Row(kind="stack", name="python", text="main (train.py);make (train.py)", time_ns=wall // 2, number=10),
        Row(kind="stack", name="python", text="main (train.py)", time_ns=wall // 2, number=10),
    ]


def put(folder: Path, session: str, rows: list[Row], *, day: str = "2026-11-30", version: int = 1) -> Path:
    """Write a part where a place keeps it."""
    data = encoded(session, rows)
    return put_bytes(folder, session, data, day=day, version=version)


def put_bytes(folder: Path, session: str, data: bytes, *, day: str = "2026-11-30", version: int = 1) -> Path:
    """Write bytes under the name that they have as a part."""
    path = folder / PartName(session=session, version=version, hash=digest(data), day=day).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


VERSION = schema.VERSION
