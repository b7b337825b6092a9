"""Questions to a fleet of made-up sessions, each beside the same SQL by ``duckdb.connect()`` in one process.

Every question runs in processes of its own, ours and the plain one in turn; CPU time, wall time and the peak of memory
count from after the imports. Ours lists the place, keeps one part for each session, loads, asks and makes the answer;
the plain one gives DuckDB the pattern of all files and the same texts. Then the exactness: parts sent twice, in
another order, of a second version of the format, foreign files and a cut upload, against the truth of who made them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

import _fleet_parts
import _stats
from stepscope.diagnosis.analyze import report_of
from stepscope.fleet import part
from stepscope.fleet.questions import Asked
from stepscope.fleet.rows import encoded
from stepscope.sessions import bundle
from stepscope.sessions.fleet.sending import Destination
from stepscope.use_cases import importing
from stepscope.use_cases.fleet import asking

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "fleet.md"
DATA = ROOT / "tests" / "data"
TRACES = ("torch-loader-bound.json", "jax-network-input.xplane.pb")
"""Traces of a GPU that are imported, for parts of sessions without processes."""
QUESTIONS = ("jobs", "finding", "line", "team", "host", "version", "flame")
HEAD = """# Questions to a fleet

Printed by `make bench-fleet ARGS=--write`. Made-up parts (seeded) of {sessions:,} sessions with {lines} lines and
{stacks} stacks each, in a local folder: {mib:.0f} MiB, {median_bytes:,} bytes in the median.
{rounds} rounds, ours and the plain one in turn, each in its own process; CPU time, wall time and peak memory from
after the imports, DuckDB {duckdb} on {cpus} CPUs. The machine ran other work at the time: CPU time and the ratio say
more than wall time. *Plain*: the same SQL texts by `duckdb.connect()` on the pattern of all files with its defaults,
which chooses and checks nothing and makes no answer. *More*: CPU time of ours over plain, the median over the rounds
with its 95 % interval.

| question | CPU | wall | memory | plain: CPU | wall | memory | more | wall at {fewer:,} sessions |
|---|---|---|---|---|---|---|---|---|
"""
CHILD = """
import json, os, resource, sys, time
sys.path.insert(0, {bench!r})
import duckdb, msgspec
from stepscope.fleet import flame, questions
from stepscope.fleet.engine import Engine, select, bound, text_of
from stepscope.fleet.questions import Asked
from stepscope.use_cases.fleet import asking
from stepscope.sessions.fleet.sending import Destination
import stepscope.fleet.part_names, stepscope.sessions.gathering.opening
way, question, folder = sys.argv[1:4]
by = None if question in ("jobs", "flame") else question
read = questions.STACKS if question == "flame" else questions.JOBS if by is None else questions.read_of(by)
asked = Asked()

def ours():
    scope = asking.Scope(place=Destination(url=folder), asked=asked)
    if question == "flame":
        profile, read = asking.flame(scope, "python", None)
        return [len(profile.samples), read.sessions]
    answer = asking.jobs(scope) if by is None else asking.top(scope, by)
    msgspec.json.encode(answer)
    return [len(answer.jobs) + len(answer.costs), answer.parts.sessions]

def plain():
    con = duckdb.connect()
    con.execute("SET enable_progress_bar = false")
    columns = {{"order": "wall_hours", "group": questions._GROUPS.get(by, ""), "root": "whole"}}
    values = {{**asked.values, "event": "python"}}
    def run(name):
        sql, used = bound(text_of(name), columns)
        return con.execute(sql, {{key: values[key] for key in used}})
    files = {{"files1": folder + "/fleet/*/*.parquet", "kinds": list(read.kinds)}}
    con.execute("CREATE TEMPORARY TABLE parts AS " + select(1, "$files1", read.columns), files)
    run("jobs_table")
    con.execute("CREATE TEMPORARY TABLE prices AS SELECT DISTINCT device AS price_of, 0.0 AS device_hour FROM jobs")
    name = question if by is None else "top_group" if by in questions._GROUPS else "top_" + by
    return [len(run(name).fetchall()), 0]

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before, cpu, wall = peak(), time.process_time(), time.perf_counter()
rows = ours() if way == "ours" else plain()
found = {{"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "mib": (peak() - before) / 1024}}
print(json.dumps({{**found, "rows": rows, "duckdb": duckdb.__version__}}))
"""


def ask(way: str, question: str, folder: Path) -> dict[str, float]:
    """One question in a process of its own."""
    code = CHILD.format(bench=str(ROOT / "bench"))
    done = subprocess.run(
        [sys.executable, "-c", code, way, question, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and with ``--write`` write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as name:
        folder, fewer = Path(name) / "all", Path(name) / "fewer"
        began = time.process_time()
        truth = _fleet_parts.write(folder, asked.sessions)
        print(f"made in {time.process_time() - began:.0f} s of CPU time", flush=True)
        _fleet_parts.write(fewer, asked.sessions // 10)
        page, asked_of = measured(folder, fewer, asked.sessions, asked.rounds)
        exact, bad = exactness(folder, truth)
        page += exact + real_parts(Path(name))
    print(page)
    if asked.write:
        PAGE.write_text(page)
    return 1 if bad or not asked_of else 0


def measured(folder: Path, fewer: Path, sessions: int, rounds: int) -> tuple[str, int]:
    """The table."""
    rows = []
    version = ""
    for question in QUESTIONS:
        runs: dict[str, list[dict[str, float]]] = {"ours": [], "plain": [], "fewer": []}
        for _ in range(rounds):
            for way in ("ours", "plain"):
                runs[way].append(ask(way, question, folder))
            runs["fewer"].append(ask("ours", question, fewer))
        version = str(runs["ours"][0]["duckdb"])
        rows.append(row(question, runs))
        print(rows[-1], end="", flush=True)
    sizes = sorted(path.stat().st_size for path in folder.rglob("*.parquet"))
    head = HEAD.format(
        sessions=sessions,
        lines=_fleet_parts.LINES,
        stacks=_fleet_parts.STACKS,
        mib=sum(sizes) / (1 << 20),
        median_bytes=sizes[len(sizes) // 2],
        rounds=rounds,
        duckdb=version,
        cpus=os.cpu_count(),
        fewer=sessions // 10,
    )
    return head + "".join(rows), len(rows)


def row(question: str, runs: dict[str, list[dict[str, float]]]) -> str:
    """One question."""

    def of(way: str, what: str) -> float:
        return median(one[what] for one in runs[way])

    pairs = zip(runs["ours"], runs["plain"], strict=True)
    more = _stats.bootstrap([one["cpu_s"] / other["cpu_s"] for one, other in pairs])
    cells = "".join(
        f" {of(way, 'cpu_s'):.2f} s | {of(way, 'wall_s'):.2f} s | {of(way, 'mib'):.0f} MiB |"
        for way in ("ours", "plain")
    )
    named = question if question in {"jobs", "flame"} else f"top --by {question}"
    return f"| {named} |{cells} {more.value:.2f} ({more.low:.2f}-{more.high:.2f}) | {of('fewer', 'wall_s'):.2f} s |\n"


def exactness(folder: Path, truth: _fleet_parts.Truth) -> tuple[str, int]:
    """Disturb the place, ask, and compare with the truth; the number of differences."""
    done = disturb(folder)
    scope = asking.Scope(place=Destination(url=str(folder)), asked=Asked(limit=100_000))
    users, findings, lines = (asking.top(scope, by) for by in ("user", "finding", "line"))
    profile, _ = asking.flame(scope, "python", None)
    wall_ns = round(sum(one.wall_hours for one in users.costs) * 3.6e12)
    found_lines = {(one.project, one.file, one.line, one.function): one.jobs for one in lines.costs}
    checks = {
        "sessions": (users.parts.sessions, truth.sessions),
        "jobs by user": ({one.name: one.jobs for one in users.costs}, dict(truth.users)),
        "jobs by finding": ({one.name: one.jobs for one in findings.costs}, dict(truth.findings)),
        "jobs by line": (found_lines, dict(truth.lines)),
        "wall time, to 1e-9": (abs(wall_ns / truth.wall_ns - 1) < 1e-9, True),
        "weight of all stacks, in ns": (sum(map(int, profile.samples.weight.tolist())), truth.stack_ns),
        "parts left out as damaged": (len(users.parts.damaged), done["cut"]),
    }
    table = "".join(f"| {name} | {'equal' if got == true else 'NOT EQUAL'} |\n" for name, (got, true) in checks.items())
    said = (
        f"\n## Exactness\n\nInto the same folder: {done['twice']} parts a second time under another day, "
        f"{done['versions']} as version 2 of the format with a column more, {done['foreign']} foreign file, "
        f"{done['cut']} parts of further sessions cut short. Against what was made:\n\n| | |\n|---|---|\n"
    )
    return said + table, sum(got != true for got, true in checks.values())


def disturb(folder: Path) -> dict[str, int]:
    """Parts twice, in a second version, cut, and files of others; how many of each."""
    paths = sorted(folder.rglob("*.parquet"))
    draw = random.Random(7)
    twice, second = draw.sample(paths, len(paths) // 20), draw.sample(paths, len(paths) // 20)
    for path in twice:
        other = folder / "fleet" / "2026-12-24" / path.name
        other.parent.mkdir(exist_ok=True)
        shutil.copy(path, other)
    for path in second:
        table = pq.read_table(path)
        sink = pa.BufferOutputStream()
        pq.write_table(table.append_column("energy_j", pa.array([1.0] * len(table))), sink)
        _fleet_parts.put(folder, table["session"][0].as_py(), path.parent.name, sink.getvalue().to_pybytes(), version=2)
    cut = 5
    for number in range(cut):
        session, day, rows = _fleet_parts.session_of(10**6 + number, _fleet_parts.Truth())
        path = _fleet_parts.put(folder, session, day, encoded(session, rows))
        path.write_bytes(path.read_bytes()[: 100 + 1000 * number])
    (paths[0].parent / "notes.txt").write_text("of a user")
    return {"twice": len(twice), "versions": len(second), "cut": cut, "foreign": 1}


def real_parts(folder: Path) -> str:
    """What parts of real sessions cost: those of the tests, and folders that STEPSCOPE_BENCH_SESSIONS names."""
    named = os.environ.get("STEPSCOPE_BENCH_SESSIONS", "").split(os.pathsep)
    paths = [DATA / "mirrored-replicas" / "slow.stepscope", *map(Path, filter(None, named))]
    for trace in TRACES:
        (folder / trace).write_bytes(lzma.decompress((DATA / "gpu-h100" / f"{trace}.xz").read_bytes()))
        paths.append(folder / f"{trace}.stepscope")
        importing.import_files([folder / trace], paths[-1])
    rows = []
    for path in paths:
        session = bundle.open_session(path)
        report = report_of(session)
        spent = []
        for _ in range(6):  # the first imports
            began = time.process_time()
            made = part.of(bundle.open_session(path), report)
            spent.append(time.process_time() - began)
        origin = f"{session.manifest.mode}: {report.session.framework or report.session.end}"
        rows.append((origin, report.session.steps, len(made.data), median(spent[1:])))
    head = "\n## Parts of real sessions\n\nOpened and made, CPU time beyond the imports, the median of five.\n\n"
    return head + _table(rows)


def _table(rows: Sequence[tuple[str, int, int, float]]) -> str:
    lines = [f"| {name} | {steps:,} | {size:,} | {spent * 1000:.0f} ms |\n" for name, steps, size, spent in rows]
    return "| frameworks | steps | bytes | CPU |\n|---|---|---|---|\n" + "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
