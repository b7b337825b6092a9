"""Ten programs that die for lack of memory, and the same ten that come close and do not: is it told who held it?

Each program of ``programs/memory`` runs under ``stepscope run`` in a control group with a small limit, or with a limit
of its address space, four times: with a size that dies, with one that comes close, with the size that the first report
said would have fitted, and with 1.25 times that. The session that the death left must name the owner and a line of it;
the close run must end well without a finding of memory. The programs were written by the
authors of the detector: they are for development, not a judgement.

What has been run is kept in ``--results`` and not run again. Needs root and a control group of memory (v1 or v2).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import _left_behind
from _memory_limit import group

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs" / "memory"
PAGE = ROOT / "docs" / "benchmarks" / "out-of-memory.md"
RESULTS = ROOT / "build" / "out-of-memory.jsonl"
TIMEOUT_S = 900
MORE = 1.25
Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program, its limit, and what must be said of its death."""

    name: str
    limit_mib: int
    dies: int
    close: int
    cause: str
    """What grows, in words."""
    says: str
    """Part of the title that names the owner; "": nothing that is recorded shows one, only the line can be named."""
    line: str
    """Part of a line of the program that must be among the places."""
    space: bool = False
    """The limit is that of the address space."""
    slow: bool = False
    """It dies after many steps."""
    sized: bool = True
    """Whether a size that fits can be said."""


CASES = (
    Case(
        name="batch_of_images",
        limit_mib=2000,
        dies=256,
        close=96,
        cause="batch",
        says="a step with 256 samples",
        line="model.fit(",
    ),
    Case(
        name="batch_of_sequences",
        limit_mib=2000,
        dies=96,
        close=16,
        cause="batch",
        says="a step with 96 samples",
        line="train_step(tokens",
    ),
    Case(
        name="wide_layer",
        limit_mib=2000,
        dies=4000,
        close=500,
        cause="model",
        says="",
        line="model",
        sized=False,
    ),
    Case(
        name="all_images",
        limit_mib=2000,
        dies=6000,
        close=2200,
        cause="all data in memory",
        says="images in load_images",
        line="images",
    ),
    Case(
        name="cached_input",
        limit_mib=2000,
        dies=10_000,
        close=5000,
        cause="cache of the input",
        says="cache of the input",
        line=".cache()",
        slow=True,
    ),
    Case(
        name="shuffled_images",
        limit_mib=2000,
        dies=8000,
        close=3000,
        cause="shuffle buffer",
        says="shuffle buffer",
        line=".shuffle(BUFFER)",
    ),
    Case(
        name="kept_outputs",
        limit_mib=2000,
        dies=600,
        close=180,
        cause="kept results",
        says="history in train",
        line="history.append",
        slow=True,
    ),
    Case(
        name="kept_features",
        limit_mib=2000,
        dies=600,
        close=200,
        cause="kept results",
        says="extractor.features",
        line="self.features.append",
        slow=True,
    ),
    Case(
        name="whole_test_set",
        limit_mib=2000,
        dies=2500,
        close=100,
        cause="whole data set at once",
        says="",
        line="model(tests)",
        sized=False,
    ),
    Case(
        name="one_hot_labels",
        limit_mib=8000,
        dies=40_000,
        close=10_000,
        cause="all data in memory",
        says="an array of float32[40000,50000]",
        line="np.zeros",
        space=True,
    ),
)


def run(case: Case, size: int, session: Path) -> tuple[int, float]:
    """(exit code, seconds) of a run with its session."""
    program = [sys.executable, str(PROGRAMS / f"{case.name}.py"), str(size)]
    if case.space:
        limited = f"ulimit -v {case.limit_mib * 1024}; exec {' '.join(program)}"
        program = ["sh", "-c", limited]
    stepscope = [str(Path(sys.executable).parent / "stepscope"), "run", "--session", str(session), "--"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    began = time.monotonic()
    with group(100_000 if case.space else case.limit_mib) as folder:

        def enter() -> None:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            [*stepscope, *program],
            env=environment,
            preexec_fn=enter,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
            cwd=session.parent,
        )
    return done.returncode, time.monotonic() - began


def measured(case: Case, part: str, size: int) -> Row:
    """One run, and what its report says."""
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder) / "s.stepscope"
        code, seconds = run(case, size, session)
        report = json.loads((session / "report.json").read_text()) if (session / "report.json").exists() else {}
        if keep := os.environ.get("KEEP"):
            subprocess.run(["cp", "-r", str(session), f"{keep}/{case.name}-{part}.stepscope"], check=False)
    found = [f for f in report.get("findings", ()) if f["severity"] not in ("info", "ask")]
    death = next((f for f in found if f["code"] == "MEM004"), None)
    row: Row = {"name": case.name, "part": part, "size": size, "code": code, "seconds": round(seconds, 1)}
    row["load"] = round(os.getloadavg()[0], 1)
    row["findings"] = [f"{f['code']} {f['title']}" for f in found]
    row["room"] = (report.get("memory_room") or {}).get("batch_fits")
    if death is not None:
        lines = (PROGRAMS / f"{case.name}.py").read_text().splitlines()
        places = [p for p in death["where"] if p["file"].endswith(f"{case.name}.py")]
        row["title"] = death["title"]
        row["lines"] = [lines[p["line"] - 1].strip() for p in places]
        evidence = {e["metric"]: e["value"] for e in death["evidence"]}
        row["fits"] = int(evidence.get("size_that_fits", 0))
    return row


class Results:
    """Rows so far, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def get(self, case: Case, part: str, size: int) -> Row:
        """A row; it is made if there is none."""
        known = [r for r in self.rows if (r["name"], r["part"], r["size"]) == (case.name, part, size)]
        if known:
            return known[-1]
        row = measured(case, part, size)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows.append(row)
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()
        return row


def named(case: Case, row: Row) -> tuple[bool, bool]:
    """Whether the owner was named, and a line of it."""
    lines = cast("list[str]", row.get("lines") or [])
    title = str(row.get("title", ""))
    return bool(title) and case.says in title, any(case.line in line for line in lines)


def table(results: Results, cases: Sequence[Case]) -> str:
    """The runs as a table of Markdown."""
    head = "| program | grows | died | owner named | line named | said to fit | fits | 1.25 times it dies | close run |"
    lines = [head, "|---|---|---|---|---|---:|---|---|---|"]
    counts = [0] * 6
    for case in cases:
        dead = results.get(case, "dies", case.dies)
        owner, line = named(case, dead)
        close = results.get(case, "close", case.close)
        alarms = [f for f in cast("list[str]", close["findings"]) if f.startswith("MEM")]
        quiet = close["code"] == 0 and not alarms
        fits = cast("int", dead.get("fits") or 0)
        does = dies = None
        if fits:
            does = results.get(case, "fits", fits)["code"] == 0
            dies = results.get(case, "more", int(fits * MORE) + 1)["code"] != 0
        marks = [bool(dead["code"]), owner if case.says else None, line, does, dies, quiet]
        counts = [count + bool(mark) for count, mark in zip(counts, marks, strict=True)]
        said = [{True: "yes", False: "**no**", None: "-"}[mark] for mark in marks]
        grows = f"{case.cause}, {'slowly' if case.slow else 'at once'}"
        lines.append(
            f"| {case.name} {case.dies:,} | {grows} | {' | '.join(said[:3])} | {fits or '-':,} | "
            f"{' | '.join(said[3:])} |"
            if fits
            else f"| {case.name} {case.dies:,} | {grows} | {' | '.join(said[:3])} | - | {' | '.join(said[3:])} |"
        )
    total = " | ".join(f"{count} of {len(cases)}" for count in counts[:3])
    lines.append(f"| all | | {total} | | {' | '.join(f'{count} of {len(cases)}' for count in counts[3:])} |")
    return "\n".join(lines)


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs; without: all")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.names or case.name in options.names]
    text = table(Results(options.results), cases)
    sys.stdout.write(text + "\n")
    if options.write:
        page = PAGE.read_text()
        begin, end = "<!-- table -->", "<!-- end -->"
        before, _, rest = page.partition(begin)
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
