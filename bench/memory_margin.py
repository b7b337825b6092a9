"""How near may a job come to its limit of memory under ``stepscope run``?

A program that trains and fills memory, slowly or at once, runs in a control group whose limit is what the program holds
at most, measured alone, and 8 to 64 MiB: alone and under ``run``. Counted is how often it lives.

What has been run is kept in ``--results`` and not run again; ``--tree`` names the stepscope that ran, ``--stepscope``
is its command. Needs root and a control group of memory (v1 or v2).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import cast

import _left_behind
from _memory_limit import MIB, group

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "programs" / "margin" / "fills.py"
PAGE = ROOT / "docs" / "benchmarks" / "out-of-memory.md"
RESULTS = ROOT / "build" / "memory-margin.jsonl"
TIMEOUT_S = 300
MARGINS = (8, 16, 32, 64)
WIDE_MIB = 4000
FILLS = {"slowly": ("300", "50"), "at once": ("300", "0")}
"""Arguments of the program."""
_RECLAIMED = {"total_inactive_file", "total_active_file", "inactive_file", "active_file"}
_CODE = "DX102"
Row = dict[str, object]


def held(folder: Path) -> int:
    """Bytes in a group that the kernel cannot take back."""
    version_1 = (folder / "memory.usage_in_bytes").exists()
    used = int((folder / ("memory.usage_in_bytes" if version_1 else "memory.current")).read_text())
    fields = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
    prefix = "total_" if version_1 else ""
    return used - sum(int(n) for name, n in fields if name in _RECLAIMED and name.startswith(prefix or name))


def run(command: list[str], limit_mib: int) -> tuple[int, int]:
    """(exit code, most bytes held) of a command in a group with a limit."""
    most = [0]
    over = threading.Event()

    def watch(folder: Path) -> None:
        while not over.wait(0.01):
            most[0] = max(most[0], held(folder))

    with group(limit_mib) as folder:

        def enter() -> None:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

        watching = threading.Thread(target=watch, args=(folder,))
        watching.start()
        try:
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
            done = subprocess.run(
                command,
                env=environment,
                preexec_fn=enter,
                capture_output=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        finally:
            over.set()
            watching.join()
    return done.returncode, most[0]


class Results:
    """Rows so far, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def find(self, **fields: object) -> list[Row]:
        """The rows with these fields."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in fields.items())]

    def add(self, row: Row) -> Row:
        """Keep a row."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows.append(row)
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()
        return row


def need_mib(results: Results, fill: str) -> int:
    """What the program holds alone at most."""
    known = results.find(fill=fill, tree="need")
    if not known:
        code, most = run([sys.executable, str(PROGRAM), *FILLS[fill]], WIDE_MIB)
        if code:
            raise SystemExit(f"{PROGRAM.name} failed alone: {code}")
        known = [results.add({"fill": fill, "tree": "need", "most_mib": -(-most // MIB)})]
    return cast("int", known[0]["most_mib"])


def one(results: Results, fill: str, margin: int, tree: str, stepscope: str) -> None:
    """One run."""
    command = [sys.executable, str(PROGRAM), *FILLS[fill]]
    row: Row = {"fill": fill, "margin": margin, "tree": tree, "load": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder) / "s.stepscope"
        if tree != "alone":
            command = [stepscope, "run", "--quiet", "--session", str(session), "--", *command]
        row["code"], most = run(command, need_mib(results, fill) + margin)
        row["most_mib"] = most // MIB
        if (session / "report.json").exists():
            said = json.loads((session / "report.json").read_text())["diagnostics"]
            row["said"] = [d["text"] for d in said if d["code"] == _CODE]
    results.add(row)


def table(results: Results, trees: list[str]) -> str:
    """The runs as a table of Markdown."""
    lines = [f"| fills | room beside its own need | {' | '.join(trees)} |", "|---|---:|" + "---:|" * len(trees)]
    for fill in FILLS:
        for margin in MARGINS:
            cells = []
            for tree in trees:
                rows = results.find(fill=fill, margin=margin, tree=tree)
                cells.append(f"{sum(row['code'] == 0 for row in rows)} of {len(rows)}")
            lines.append(f"| {fill} | {margin} MiB | {' | '.join(cells)} |")
    return "\n".join(lines)


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", default=["alone", "under run"], help="columns of the table")
    parser.add_argument("--runs", type=int, default=5, help="of each cell")
    parser.add_argument("--margins", type=int, nargs="*", default=MARGINS)
    parser.add_argument("--stepscope", default=str(Path(sys.executable).parent / "stepscope"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    results = Results(options.results)
    for number in range(options.runs):  # interleaved: the machine's load changes
        for fill in FILLS:
            for margin in options.margins:
                for tree in options.trees:
                    if len(results.find(fill=fill, margin=margin, tree=tree)) <= number:
                        one(results, fill, margin, tree, options.stepscope)
    text = table(results, options.trees)
    sys.stdout.write(text + "\n")
    if options.write:
        page = PAGE.read_text()
        begin, end = "<!-- margins -->", "<!-- end of margins -->"
        before, _, rest = page.partition(begin)
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
