"""Small sessions on disk in which the test chooses every name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from tests.derive.sessions import CWD, MS, US, Job, node
from tests.web.recorded import write

from stepscope.model.report.op_table import OpTable, OpTime
from stepscope.report import json_report

if TYPE_CHECKING:
    from pathlib import Path

STEPS, STEP_NS = 60, 80 * MS


def starving(path: Path, name: str = "load", file: str = f"{CWD}/train.py", *, wait_ms: int = 60) -> Path:
    """Steps of 80 ms that wait for a map; its function, its file, its callback and its line have these names."""
    job = Job(ended_ns=STEPS * STEP_NS, command=("python", file, name))
    job.framework(version=name)
    job.sources[file] = f"# {name}\nrows = range(320)\nrows = rows.map(load)\nrows = rows.batch(32)\n"
    own = {"fn_name": name, "fn_file": file, "fn_line": 1, "fn_end_line": 2}
    made = job.dataset("MapDataset", job.dataset("RangeDataset", line=2), line=3, **own)
    made = job.dataset("BatchDataset", made, line=4, batch=32)
    iterator = job.iterator(made, batch=32)
    job.function(name, file=file, call_file=file, call_line=9, call_function=name).every(
        STEP_NS, STEPS, dur=20 * MS, start=wait_ms * MS
    )
    job.nexts().every(STEP_NS, STEPS, dur=wait_ms * MS, arg=iterator)
    job.callback(f"{name}.on_train_batch_end").every(STEP_NS, STEPS, dur=5 * MS, start=70 * MS)
    stages = (("BatchV2", 1, 100 * US), ("Map", 32, wait_ms * MS), ("Range", 32, 1 * US))
    job.model(
        iterator,
        50 * STEP_NS,
        [
            node(at, kind, *([at + 1] if at < len(stages) else []), elements=50 * each, busy=50 * busy)
            for at, (kind, each, busy) in enumerate(stages, 1)
        ],
    )
    job.rival(name, cores=0.5, seconds=4)
    made_session = job.session()
    manifest = replace(made_session.manifest, command=("python", file, name), exit_code=0)
    return write(replace(made_session, manifest=manifest), path).path


def with_ops(path: Path, name: str = "model/MatMul") -> Path:
    """The session at ``path``, with a stored report whose table of ops has one of this name."""
    stored = path / "report.json"
    report = json_report.decode(stored.read_bytes())
    op = OpTime(name=name, type=name, file=name, line=3, calls=6, ns=1_000, ratio=1.0)
    table = OpTable(trace="ops-001", steps=6, ns=1_000, joined_ratio=1.0, ops=(op,))
    stored.write_bytes(json_report.encode(replace(report, ops=table)))
    return path
