"""What xprof's pages say, in a few lines that do not name the program."""

from __future__ import annotations

import json
from pathlib import Path

from _judge import Json

TOP = 6
STEP_PARTS = ("infeed", "host_compute", "device_compute", "kernel_launch", "compile", "outfeed", "other")


def digest(folder: Path) -> str:
    """The overview's statement and warnings, parts of a step, input ops, ops, widest events, memory at its peak."""
    if not (folder / "overview_page.json").exists():
        return "no pages"
    overview = _tables(folder / "overview_page.json")
    said = [_overview(overview)]
    said += [f"input: {one}" for one in _input(_tables(folder / "input_pipeline_analyzer.json"))]
    said += [f"op: {one}" for one in _ops(_tables(folder / "framework_op_stats.json"))]
    totals = folder / "trace_totals.json"
    for thread, name, ms, count in json.loads(totals.read_text())[: 2 * TOP] if totals.exists() else ():
        said.append(f"trace: {thread}: {name} {ms:.1f} ms in {count}")
    memory = folder / "memory_profile.json"
    said += [f"memory: {one}" for one in _memory(json.loads(memory.read_text()))] if memory.exists() else []
    return "\n".join(said)


def _tables(path: Path) -> list[Json]:
    data = json.loads(path.read_text()) if path.exists() else []
    return data if isinstance(data, list) else []


def _merged(tables: list[Json]) -> dict[str, str]:
    return {name: value for table in tables for name, value in table.get("p", {}).items()}


def _overview(tables: list[Json]) -> str:
    facts = _merged(tables)
    warnings = [
        row["c"][1]["v"].split(".")[0]
        for table in tables
        if [column["id"] for column in table.get("cols", ())] == ["severity", "message"]
        for row in table["rows"]
    ]
    parts = [f"{part} {facts.get(f'{part}_time_ms_avg', '?')}" for part in STEP_PARTS]
    names = ("statement", "bottleneck", "kernel_launch_statement", "all_other_statement", "remark_text")
    stated = [f"{name}: {facts[name]}" for name in names if facts.get(name)]
    eager = f"eager: host {facts.get('host_op_time_eager_percent')}"
    step = f"step {facts.get('steptime_ms_average')} ms: {', '.join(parts)}"
    return "\n".join([*stated, eager, step, *(f"warning: {one}" for one in warnings)])


def _input(tables: list[Json]) -> list[str]:
    said = []
    for table in tables:
        names = [column["id"] for column in table.get("cols", ())]
        if "opName" in names:
            rows = [{n: c["v"] for n, c in zip(names, row["c"], strict=True)} for row in table["rows"]]
            rows.sort(key=lambda row: -row["selfTimeInMs"])
            said += [f"{row['opName']} {row['selfTimeInMs']:.1f} ms ({row['category']})" for row in rows[:TOP]]
    conclusion = _merged(tables).get("input_conclusion", "")
    return [conclusion, *said] if said else []


def _ops(tables: list[Json]) -> list[str]:
    if not tables:
        return []
    names = [column["id"] for column in tables[0]["cols"]]
    rows = [{n: c["v"] for n, c in zip(names, row["c"], strict=True)} for row in tables[0]["rows"]]
    rows.sort(key=lambda row: -row["total_self_time"])
    whole = sum(row["total_self_time"] for row in rows if row["type"] != "IDLE") or 1.0
    """Without idle time: its row says how much of the capture had no op."""
    said = []
    for row in rows[: TOP + 2]:
        time = f"{row['total_self_time'] / 1e3:.1f} ms"
        share = f" ({100 * row['total_self_time'] / whole:.0f} %)" if row["type"] != "IDLE" else ""
        said.append(f"{row['type']} {row['operation']} {time}{share} in {row['occurrences']:.0f}, {row['eager']}")
    return said


def _memory(page: Json) -> list[str]:
    said = []
    for allocator, profile in page.get("memoryProfilePerAllocator", {}).items():
        summary = profile.get("profileSummary", {})
        peak = int(summary.get("peakStats", {}).get("peakBytesInUse", 0)) / 2**20
        said.append(f"{allocator}: peak {peak:.0f} MiB")
        snapshots = profile.get("memoryProfileSnapshots", [])
        held = []
        for active in profile.get("activeAllocations", []):
            if int(active["snapshotIndex"]) >= 0:
                made = snapshots[int(active["snapshotIndex"])]["activityMetadata"]
                size = int(made.get("allocationBytes", 0)) * int(active["numOccurrences"]) / 2**20
                held.append((size, made))
            else:
                special = profile["specialAllocations"][int(active["specialIndex"])]
                size = int(special.get("allocationBytes", 0)) * int(active["numOccurrences"]) / 2**20
                held.append((size, special))
        held.sort(key=lambda one: -one[0])
        said += [f"at peak {s:.1f} MiB {m.get('tfOpName')} {m.get('tensorShape', '')}" for s, m in held[:TOP]]
    return said
