"""A made-up fleet: parts of sessions that differ in all that questions ask for, and the truth about them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.fleet.part_names import PartName, digest
from stepscope.fleet.rows import Row, encoded

LINES = 200
STACKS = 150
HOUR_NS = 3600 * 10**9
USERS, TEAMS, PROJECTS, HOSTS = 120, 12, 40, 400
CODES = ("INP001", "INP003", "HST004", "GRF010", "MEM007", "GEN012", "CFG002", "DST011")
DEVICES = ("", "NVIDIA H200", "NVIDIA L4")
COMPONENTS = ("input-wait", "call", "callbacks", "other-python", "gc")
PHASES = ("start", "imports", "building", "first-steps", "steps", "evaluation", "saving", "end", "not-seen")


@dataclass
class Truth:
    """What the answers must say of the sessions made so far."""

    sessions: int = 0
    users: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    lines: Counter[tuple[str, str, int, str]] = field(default_factory=Counter)
    wall_ns: int = 0
    stack_ns: int = 0


def session_of(number: int, truth: Truth) -> tuple[str, str, list[Row]]:
    """The id, the day and the rows of one session; the same for the same number."""
    draw = random.Random(f"fleet {number}")
    project = min(PROJECTS - 1, int(draw.expovariate(0.12)))
    user = f"user{draw.randrange(USERS):03d}"
    wall_ns, steps, devices = (
        int(draw.lognormvariate(0.5, 1.0) * HOUR_NS),
        draw.randrange(200, 50_000),
        draw.randrange(9),
    )
    day = f"2026-{draw.randrange(1, 12):02d}-{draw.randrange(1, 29):02d}"
    step_ns = int(wall_ns * 0.9) // steps
    truth.sessions += 1
    truth.users[user] += 1
    truth.wall_ns += wall_ns
    about = {
        "user": user,
        "team": f"team{hash_of(user) % TEAMS:02d}",
        "project": f"project{project:02d}",
        "commit": f"{draw.getrandbits(160):040x}",
        "program": f"train_{project % 7}.py",
        "mode": "run",
        "model": f"Keras fit {project % 5}",
        "framework": "tensorflow 2.21.0",
        "host": f"host{draw.randrange(HOSTS):03d}",
        "cpu": "AMD EPYC 9354",
        "device": DEVICES[project % 3] if devices else "",
        "end": "code",
        "started": day,
    }
    amounts = {
        "started_unix_s": 1_780_000_000 + number,
        "wall_ns": wall_ns,
        "cpu_ns": int(wall_ns * draw.uniform(1, 16)),
        "device_ns": wall_ns * devices,
        "devices": devices,
        "cpus": 64,
        "hosts": 1,
        "processes": 1 + draw.randrange(9),
        "steps": steps,
        "step_ns": step_ns,
        "step_p50_ns": step_ns,
        "step_p95_ns": step_ns * 2,
        "memory_peak_bytes": draw.randrange(1 << 36),
        "exit_code": 0 if draw.random() < 0.9 else 1,
        "overhead_ppm": draw.randrange(9000),
        "lost_records": 0,
    }
    rows = [Row(kind="about", name=name, text=text) for name, text in about.items()]
    rows += [Row(kind="amount", name=name, number=value) for name, value in amounts.items()]
    versions = {"tensorflow": f"2.{15 + draw.randrange(7)}", "keras": "3.15", "allocator": "glibc"}
    rows += [Row(kind="version", name=name, text=version) for name, version in versions.items()]
    rows += [Row(kind="component", name=name, time_ns=wall_ns // 6, ratio=draw.random()) for name in COMPONENTS]
    rows += [Row(kind="ledger", name=name, time_ns=wall_ns // 9, ratio=1 / 9) for name in PHASES]
    for code in draw.sample(CODES, draw.randrange(4)):
        truth.findings[code] += 1
        ratio = draw.uniform(0.03, 0.6)
        saved = int(wall_ns * ratio)
        rows.append(
            Row(
                kind="finding",
                name=code,
                text=f"name-of-{code.lower()}",
                detail="high",
                time_ns=saved,
                self_ns=saved // 2,
                ratio=ratio,
                low=ratio * 0.9,
                high=ratio * 1.1,
                file="train.py",
                line=41,
                function="main",
            )
        )
    rows += _lines(draw, f"project{project:02d}", wall_ns, truth)
    rows += _stacks(draw, wall_ns, truth)
    return f"{number:06d}{draw.getrandbits(32):08x}", day, rows


def hash_of(text: str) -> int:
    """The same in every process."""
    return int(digest(text.encode()), 16)


def _lines(draw: random.Random, project: str, wall_ns: int, truth: Truth) -> list[Row]:
    rows = []
    for number in draw.sample(range(400), LINES):
        own = number % 3 > 0
        file, function = f"{'src' if own else 'keras/src'}/module_{number % 23}.py", f"function_{number % 61}"
        time_ns = int(wall_ns * draw.random() ** 6)
        if own:
            truth.lines[project, file, number + 1, function] += 1
        rows.append(
            Row(
                kind="line",
                name="",
                detail="own" if own else "library",
                file=file,
                line=number + 1,
                function=function,
                time_ns=time_ns,
                self_ns=time_ns // 3,
                cpu_ns=time_ns // 2,
                number=1 + time_ns // 50_000_000,
                ratio=time_ns / wall_ns if own and number % 2 else None,
            )
        )
    return rows


def _stacks(draw: random.Random, wall_ns: int, truth: Truth) -> list[Row]:
    rows = []
    for number in range(STACKS):
        state = number * 7919 + draw.randrange(3)
        states = [state >> depth for depth in range(6 + number % 12)]
        frames = ["main (train.py)", *(f"function_{one % 61} (keras/src/module_{one % 23}.py)" for one in states)]
        weight = int(wall_ns * draw.random() / STACKS)
        truth.stack_ns += weight
        rows.append(Row(kind="stack", name="python", text=";".join(frames), time_ns=weight, number=1 + weight // 10**8))
    return rows


def write(folder: Path, count: int, first: int = 0) -> Truth:
    """Write the parts of sessions from ``first`` up, ``count`` of them; return the truth about them."""
    truth = Truth()
    for number in range(first, first + count):
        session, day, rows = session_of(number, truth)
        put(folder, session, day, encoded(session, rows))
    return truth


def put(folder: Path, session: str, day: str, data: bytes, version: int = 1) -> Path:
    """Write a part under its name."""
    path = folder / PartName(session=session, version=version, hash=digest(data), day=day).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
