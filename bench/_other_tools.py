"""Runs programs of the study under other tools, in copies that contain neither the answer nor the other version."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import _judge
import _memory_limit
from judge_strangers import OLD_PYTHON
from stepscope.check.use_cases import check as stepscope_check

HOOK = Path(__file__).resolve().parent / "programs" / "other_tools"
XLA_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
SHARE, LATEST = 0.3, 1.5
"""The profiler starts after this share of the steady steps' CPU time, at most after so many CPU seconds."""
LONGEST = 0.6
"""CPU seconds of a capture, at most."""
READ = """
import json, sys
from collections import Counter
from pathlib import Path
from xprof.convert import raw_to_tool_data as convert
files = sorted(str(path) for path in Path(sys.argv[1]).rglob("*.xplane.pb"))
out = Path(sys.argv[2])
for tool in sys.argv[3:]:
    try:
        data, _ = convert.xspace_to_tool_data(files, tool, {"tqx": "out:json"})
    except BaseException as error:
        data = json.dumps({"error": repr(error)})
    if data is not None:
        (out / f"{tool}.json").write_bytes(data if isinstance(data, bytes) else str(data).encode())
data, _ = convert.xspace_to_tool_data(files, "trace_viewer", {})
threads, totals, counts = {}, Counter(), Counter()
for event in json.loads(data)["traceEvents"]:
    where = event.get("pid"), event.get("tid")
    if event.get("ph") == "M" and event["name"] == "thread_name":
        threads[where] = event["args"]["name"].split("/")[0]
    elif event.get("ph") == "X":
        totals[where, event["name"]] += event["dur"]
        counts[where, event["name"]] += 1
top = [[threads.get(k[0], ""), k[1], v / 1e3, counts[k]] for k, v in totals.most_common(30)]
(out / "trace_totals.json").write_text(json.dumps(top))
"""
"""Asks xprof for its pages, and sums the events that its trace viewer shows, by thread and name."""
TOOLS = ("overview_page", "input_pipeline_analyzer", "framework_op_stats", "memory_profile", "hlo_stats")
ROOM_MIB = 12 * 1024
"""Memory that a program may take which has a limit, and is captured without it."""
Figures = _judge.Json


def number(name: str) -> str:
    """A row's number while its answers are read: says nothing of what it is about."""
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def steady(case: _judge.Case) -> float:
    """CPU seconds of the slow program's steady steps, as measured with the pair."""
    runs = [run for run in case.known["measured_runs"] if run["program"] == "slow"]
    return float(min(runs[0]["loop_cpu_seconds"]))


def run(
    case: _judge.Case,
    kind: str,
    task: Figures,
    flags: Mapping[str, str] | None = None,
    *,
    mib: int,
    cpu: int,
    wall: float,
) -> Figures:
    """Run a program with the hook: its steady steps' figures, CPU seconds in all, peak, exit code, end of its output.

    Args:
        case: the row.
        kind: ``slow`` or ``fixed``.
        task: what the hook is to do.
        flags: variables of the program's environment.
        mib: limit of memory; 0 for none.
        cpu: CPU seconds that it may take.
        wall: seconds that it may take.
    """
    python = str(OLD_PYTHON) if case.known["runs_on"] == ["2.15"] else sys.executable
    with tempfile.TemporaryDirectory(prefix="other-tools-") as scratch:
        folder, out, task_file = (Path(scratch) / part for part in ("case", "said.json", "task.json"))
        skip = {"case.toml", "__pycache__", "fixed.py" if kind == "slow" else "slow.py"}
        shutil.copytree(case.folder, folder, ignore=shutil.ignore_patterns(*skip))
        env = {**_judge.environment(python), "OTHER_TOOLS": str(task_file), "PYTHONPATH": str(HOOK)}
        env |= flags or {}
        task_file.write_text(json.dumps({**task, "out": str(out)}))
        with _memory_limit.group(mib) if mib else contextlib.nullcontext() as group:
            enter = f"echo $$ > {group}/cgroup.procs && " if group else ""
            command = ["sh", "-c", f'{enter}ulimit -t {cpu} && exec "$@"', "sh", python, f"{kind}.py"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            code, output = _judge.execute(command, folder, timeout=wall, env=env)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        figures = json.loads(out.read_text()) if out.exists() else {}
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            **figures,
            "code": code,
            "all_cpu_seconds": round(spent, 2),
            "load": os.getloadavg()[0],
            "end": output[-1500:],
        }


def capture(case: _judge.Case, keep: Path, xprof: str, *, cpu: int, wall: float) -> Figures:
    """Profile the slow program's steady steps; what xprof makes of it stays in ``keep``.

    A row with a limit of memory runs without it, in so much that the machine is safe.
    """
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    whole = steady(case)
    early = whole < 1
    task: dict[str, object] = {
        "logdir": str(keep / "log"),
        "after": 0.0 if early else min(SHARE * whole, LATEST),
        "length": LONGEST if early else min(LONGEST, whole / 2),
    }
    mib = ROOM_MIB if "memory_limit_mib" in case.known else 0
    figures = dict(run(case, "slow", task, mib=mib, cpu=cpu, wall=wall))
    if figures.get("capture") == "done":
        read = subprocess.run(
            [xprof, "-c", READ, str(keep / "log"), str(keep), *TOOLS],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if read.returncode:
            figures["error"] = read.stderr[-500:]
    return figures


def xla(case: _judge.Case, *, cpu: int, wall: float) -> Figures:
    """Run the slow program as it is, with XLA's automatic clustering, and with ``jit_compile=True`` everywhere.

    A row with a limit of memory runs under it. Of each run: CPU seconds of the steady steps, or how it ended.
    """
    limits = {"mib": case.known.get("memory_limit_mib", 0), "cpu": cpu, "wall": wall}
    flags = {"TF_XLA_FLAGS": XLA_FLAGS}
    return {
        "slow": cost(run(case, "slow", {}, **limits)),
        "auto": cost(run(case, "slow", {}, flags, **limits)),
        "jit": cost(run(case, "slow", {"jit": True}, flags, **limits)),
    }


def cost(ran: Figures) -> float | str:
    """CPU seconds of the steady steps, or how the program ended."""
    code = ran["code"]
    if code == 0:
        return round(float(ran["cpu_seconds"]), 3)
    if code is None:
        return "out of time"
    if code < 0:
        return signal.Signals(-code).name
    errors = re.findall(r"(?:^[\w.]*(?:Error|Exception)\b|tf2xla conversion failed).*", ran["end"], re.MULTILINE)
    return f"exit {code}" + (f": {errors[-1][:80]}" if errors else "")


def deepperf(case: _judge.Case, folder: Path) -> Figures:
    """DeepPerf's two scripts on a folder that holds the slow program alone: checkers and lines of their reports."""
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="other-tools-") as scratch:
        shutil.copy(case.program("slow"), scratch)
        for script in ("graph_detect.py", "data_detect.py"):
            command = [str(folder / ".venv" / "bin" / "python"), script, scratch]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
            if ran.returncode:
                return {"error": f"{script}: {ran.stderr.strip().splitlines()[-1]}"}
            found += deepperf_said(ran.stdout)
    return {"found": found}


def deepperf_said(output: str) -> list[str]:
    """Its reports: their checker and line."""
    patterns = {
        "C1": r"\[Checker1 Find\] \S+ in \S+\.py, line (\d+)",
        "C2": r"before \(\w+\) in [^\n]+?\.py/(\d+)",
        "C3": r"in [^\n]+?\.py/(\d+) should be called with",
    }
    return [f"{code} {line}" for code, pattern in patterns.items() for line in re.findall(pattern, output)]


def ruff(case: _judge.Case) -> Figures:
    """Rules of ruff about performance, numpy and likely bugs."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "PERF,NPY,B", "--output-format", "json"]
    ran = subprocess.run([*command, str(case.program("slow"))], capture_output=True, text=True, check=False)
    found = json.loads(ran.stdout)
    return {
        "found": [{"code": one["code"], "line": one["location"]["row"], "message": one["message"]} for one in found]
    }


def check(case: _judge.Case) -> Figures:
    """``stepscope check`` for the TensorFlow that the row runs on; findings above info."""
    version = "2.15" if case.known["runs_on"] == ["2.15"] else "2.21"
    report = stepscope_check.check(
        stepscope_check.Options(paths=(case.program("slow"),), target_version=version)
    ).report
    found = [one for one in report.findings if one.severity not in {"info", "ask"}]
    return {
        "found": [
            {
                "code": one.code,
                "line": one.where[0].line,
                "message": " ".join((one.name, one.title, *(remedy.text for remedy in one.remedies[:1]))),
            }
            for one in found
            if one.where
        ]
    }


def short(said: Figures) -> str:
    """A result on one line."""
    return json.dumps(said)[:160] if "found" not in said else f"{len(said['found'])} found"
