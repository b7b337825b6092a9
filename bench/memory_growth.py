"""Which line makes memory grow, or stands at its highest: a capture of memory beside memray, on five programs.

Each program of ``programs/memory_growth`` runs alone, under ``stepscope run`` with one capture of memory in its middle,
and under memray from its start. Its own comment says which line it is. The programs were written by the authors of the
capture: they are for development, not a judgement. CPU time is that of the program for the same work.

``--memray``: a Python that has memray and, by PYTHONPATH, TensorFlow. It is no dependency of stepscope.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs" / "memory_growth"
PAGE = ROOT / "docs" / "benchmarks" / "memory-growth.md"
RESULTS = ROOT / "build" / "memory-growth.jsonl"
ROUNDS = {"array_list": 1500, "fit_callback": 30, "variable_history": 3000, "native_cache": 2500, "peak": 90}
SECONDS = 8
TIMEOUT_S = 900
READS = """
import json, sys, memray
reader = memray.FileReader(sys.argv[1])
said = {}
for what, records in (("grows", reader.get_leaked_allocation_records(merge_threads=True)),
                      ("peaks", reader.get_high_watermark_allocation_records(merge_threads=True))):
    sizes = {}
    for record in records:
        own = [f"{line}" for _, file, line in record.stack_trace() if file.endswith(sys.argv[2])]
        sizes[own[0] if own else "0"] = sizes.get(own[0] if own else "0", 0) + record.size
    total = sum(sizes.values()) or 1
    line, size = max(sizes.items(), key=lambda pair: pair[1])
    said[what] = [int(line), size / total, total]
print(json.dumps(said))
"""
Row = dict[str, object]


def main() -> None:
    """Run what is not in the results yet; print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--memray", default="", help="a Python that has memray")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--only", default="", help="one program")
    given = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    known = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    done = {row["program"] for row in known}
    for name in ROUNDS:
        if given.memray and name not in done and given.only in {"", name}:
            known.append(measured(name, given.memray))
            with RESULTS.open("a") as stream:
                stream.write(json.dumps(known[-1]) + "\n")
    text = table(known)
    print(text)
    if given.write:
        page = PAGE.read_text()
        head, _, rest = page.partition("<!-- table -->\n")
        PAGE.write_text(f"{head}<!-- table -->\n{text}<!-- end -->{rest.partition('<!-- end -->')[2]}")


def measured(name: str, memray: str) -> Row:
    """One program, three times."""
    program = PROGRAMS / f"{name}.py"
    text = program.read_text()
    marked = next(i for i, line in enumerate(text.splitlines(), 1) if re.search(r"# (keeps|peaks)$", line))
    row: Row = {"program": name, "line": marked, "peaks": "# peaks" in text}
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        words = [str(program), str(ROUNDS[name])]
        row["plain_cpu_s"] = cpu_of(run([sys.executable, *words, str(where / "a")]))
        row.update(captured(name, [*words, str(where / "ready")], where))
        out = where / "memray.bin"
        said = run([memray, "-m", "memray", "run", "-q", "-o", str(out), *words, str(where / "b")])
        row["memray_cpu_s"], row["memray_bytes"] = cpu_of(said), out.stat().st_size
        row["memray"] = json.loads(run([memray, "-c", READS, str(out), f"{name}.py"]))
    return row


def captured(name: str, words: list[str], where: Path) -> Row:
    """The program under ``stepscope run``, with a capture once it has begun its work."""
    stepscope = [sys.executable, "-m", "stepscope"]
    job = subprocess.Popen(
        [*stepscope, "run", "--session", str(where / "s"), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    ready = Path(words[-1])
    deadline = time.monotonic() + TIMEOUT_S
    while not ready.exists() and job.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    command = [*stepscope, "trace", f"{name}.py", "--kind", "memory", "--seconds", str(SECONDS), "--wait", "1"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    out, _ = job.communicate(timeout=TIMEOUT_S)
    note = re.search(r"note +(.*)", said.stdout)
    return {"note": note[1] if note else said.stderr.strip(), "stepscope_cpu_s": cpu_of(out.decode())}


def run(words: list[str]) -> str:
    """The output of a command that must end well."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


def cpu_of(out: str) -> float:
    """CPU seconds that a program says."""
    return float(json.loads(next(line for line in out.splitlines() if line.startswith('{"cpu_s"')))["cpu_s"])


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    columns = ["program", "line", "the capture: grew", "the capture: highest", "variables that grew"]
    columns += ["memray: not freed", "memray: highest", "CPU s alone, captured, memray"]
    lines = ["| " + " | ".join(columns) + " |", "|---|---:|---|---|---|---|---|---|"]
    for row in rows:
        note = str(row["note"])
        grew, _, rest = note.partition("; highest ")
        highest, _, variables = rest.partition("; variables that grew: ")
        memray = row["memray"]
        assert isinstance(memray, dict)
        grows, peaks = (f"line {memray[what][0]}, {100 * memray[what][1]:.0f} %" for what in ("grows", "peaks"))
        cpu = " / ".join(f"{float(str(row[key])):.1f}" for key in ("plain_cpu_s", "stepscope_cpu_s", "memray_cpu_s"))
        cells = [row["program"], row["line"], grew, highest, variables or "-", grows, peaks, cpu]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
