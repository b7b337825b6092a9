"""Is compute said to be as fast as it can be on programs that an expert has tuned, and only there?

Each of ten programs is run by ``stepscope run`` tuned and untuned. What counts is the share of the step's call that is
proven: at least 70 % of the tuned ones, less of the untuned ones, whose time is in small ops, in one thread, in the
wrong type or in rearranging data.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stepscope.diagnosis import analyze
from stepscope.model.report.limits import OpLimit
from stepscope.model.report.report import Report
from stepscope.sidecar import op_replays

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "op-limits.md"
PROGRAM = ROOT / "bench" / "programs" / "tuned.py"
NAMES = (
    "products", "convolution", "precision", "dense", "lstm",
    "transformer", "embedding", "depthwise", "normalisation", "top",
)  # fmt: skip
LONG = {"lstm": 25.0}
"""Programs whose steps cost so much to trace that a short job has no op trace."""
PROVEN = 0.7
NOTES = """*Proven*: share of the step's call in ops that are as fast as they can be here. *Heaviest op*, with its share
of the call; *reached*: its time alone over its time in the steps (above 100 %: it was faster in the steps than alone);
*of roof*: shortest possible time by the machine's roofs over its time alone; *answer*: why it is not proven. *Others*:
CPUs that other processes used while the ops ran alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run."""

    name: str
    way: str
    report: Report

    @property
    def ratio(self) -> float | None:
        """Share proven; None without an answer."""
        return self.report.limits.explained_ratio if self.report.limits is not None else None

    @property
    def right(self) -> bool:
        """Whether the answer is as it should be."""
        return self.ratio is not None and (self.ratio >= PROVEN) == (self.way == "tuned")


def main() -> None:
    """Run all programs and print the table; with ``--write`` into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=NAMES, help="names of programs")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each program")
    parser.add_argument("--patience", type=float, default=0.0, help="replay again, for at most so many seconds")
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only:
            for way in ("tuned", "untuned"):
                seconds = max(given.seconds, LONG.get(name, 0.0))
                results.append(_run(Path(folder), name, way, seconds, given.patience))
                print(_line(results[-1]), flush=True)
    text = _table(results)
    print(text)
    if given.write:
        before = PAGE.read_text("utf-8").partition("<!-- figures -->")[0]
        PAGE.write_text(f"{before}<!-- figures -->\n\n{text}", "utf-8")


def _run(folder: Path, name: str, way: str, seconds: float, patience: float) -> Result:
    session = folder / f"{name}-{way}.stepscope"
    command = [sys.executable, "-m", "stepscope", "run", "--session", str(session), str(PROGRAM), name, way]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([*command, str(seconds)], check=True, capture_output=True, env=environment)
    if patience:
        op_replays.replay(session, seconds=patience)
        analyze.write_reports(session)
    report = msgspec.json.decode((session / "report.json").read_bytes(), type=Report)
    return Result(name=name, way=way, report=report)


def _line(result: Result) -> str:
    limits = result.report.limits
    if limits is None:
        return f"| {result.name} | {result.way} | no answer | | | | | | no |"
    first = limits.ops[0] if limits.ops else OpLimit(type="", calls_per_step=0, ratio=0, step_ns=0, run_ns=0)
    cells = (
        result.name,
        result.way,
        f"{100 * limits.explained_ratio:.0f} %",
        f"{first.type} ({100 * first.ratio:.0f} %)",
        f"{100 * first.reached_ratio:.0f} %",
        f"{100 * first.roof_ratio:.0f} %" if first.roof_ratio else "",
        first.why or "as fast as it can be here",
        f"{limits.others_cores:.1f} of {limits.cores}",
        "yes" if result.right else "no",
    )
    return f"| {' | '.join(cells)} |"


def _table(results: list[Result]) -> str:
    head = "| program | version | proven | heaviest op | reached | of roof | answer | others | right |"
    rule = "|---|---|---:|---|---:|---:|---|---|---|"
    right = sum(result.right for result in results)
    rows = "\n".join(_line(result) for result in results)
    return f"{right} of {len(results)} answers are right.\n\n{head}\n{rule}\n{rows}\n\n{NOTES}\n"


if __name__ == "__main__":
    main()
