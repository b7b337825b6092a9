"""Is the first finding right? Runs every case of bench/cases under stepscope and judges the reports.

Prints a table with precision, recall and top-1 accuracy and writes it to docs/benchmarks/diagnosis.md (whole runs
only). Reports are kept below ``--keep``, in a folder named by the state of ``src``; what is there is not run again, so
that it may be stopped and continued. ``--python`` runs the programs with another Python, for example one with an older
TensorFlow. ``--measure`` runs the programs without stepscope, slow and fixed in turn, and writes their ratio into
case.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import _judge
import judge_strangers

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "bench" / "cases"
PAGE = ROOT / "docs" / "benchmarks" / "diagnosis.md"
MARKS = {True: "yes", False: "no", None: "-"}


def others(case: str, folder: Path) -> str:
    """CPUs that other processes took while a case's programs ran, the mean of each run: the load beside its row."""
    said = []
    for kind in ("slow", "fixed", "clean"):
        path = folder / f"{case}.{kind}.json"
        series = (json.loads(path.read_text()) or {}).get("series", {}) if path.exists() else {}
        cores = [cores for cores in series.get("res:others_cores", ()) if cores is not None]
        said += [f"{sum(cores) / len(cores):.1f}"] if cores else []
    return ", ".join(said) or "-"


def table(verdicts: Sequence[_judge.Verdict], folder: Path) -> str:
    """The page: shares first, then one line per case; ``folder``: its reports."""
    shares = _judge.shares(verdicts)
    pairs = [verdict for verdict in verdicts if not verdict.clean]
    clean = [verdict for verdict in verdicts if verdict.clean]
    alarms = sum(verdict.wrong for verdict in clean)
    head = (
        f"{len(pairs)} slow/fixed pairs, {len(clean)} clean programs. "
        f"top-1 {shares['top1']:.0%}, recall {shares['recall']:.0%}, precision {shares['precision']:.0%}, "
        f"false alarms on clean programs {alarms}."
    )
    lines = [
        head,
        "",
        f"| case | {' | '.join(_judge.CHECKS)} | cost said (true) | others | first finding |",
        f"|---|{'---|' * (len(_judge.CHECKS) + 3)}",
    ]
    for verdict in pairs:
        marks = " | ".join(MARKS[verdict.checks[check]] for check in _judge.CHECKS)
        cost = "-" if verdict.cost is None else f"{verdict.cost:.2f} ({verdict.truth:.2f})"
        first = verdict.error or (verdict.titles[0] if verdict.titles else "nothing significant found")
        load = others(verdict.case, folder)
        lines.append(f"| {verdict.case} | {marks} | {cost} | {load} | {first.replace('|', '/')} |")
    lines += ["", "| clean program | others | false alarms |", "|---|---|---|"]
    for verdict in clean:
        said = verdict.error or "; ".join(verdict.titles) or "none"
        lines.append(f"| {verdict.case} | {others(verdict.case, folder)} | {said.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def store_ratio(case: _judge.Case, ratio: float, runs: int) -> None:
    """Write a measured ratio into case.toml."""
    path = case.folder / "case.toml"
    line = f"measured = {{ ratio = {ratio:.2f}, runs = {runs} }}"
    path.write_text(re.sub(r"^measured = .*$", line, path.read_text(), flags=re.MULTILINE))


def measure(cases: Sequence[_judge.Case], python: str, runs: int, timeout: float) -> int:
    """Measure slow against fixed, in turn, and store the ratio of the best runs: other load only ever adds.

    Returns how many cases failed.
    """
    failed = 0
    for case in cases:
        kinds = ("clean",) if case.clean else ("slow", "fixed")
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        try:
            for _ in range(1 if case.clean else runs):
                for kind in kinds:
                    times[kind].append(_judge.measure(case.program(kind), python, timeout))
        except RuntimeError as error:
            failed += 1
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)
            continue
        if not case.clean:
            ratio = min(times["slow"]) / min(times["fixed"])
            each = ", ".join(f"{s / f:.2f}" for s, f in zip(times["slow"], times["fixed"], strict=True))
            print(f"{case.name}: {ratio:.2f} ({each})", flush=True)
            store_ratio(case, ratio, runs)
        else:
            print(f"{case.name}: runs", flush=True)
    return failed


def ran(case: _judge.Case, kind: str, python: str, timeout: float, keep: Path) -> _judge.Ran:
    """Run a program under stepscope, and keep the report and the program's output; what is kept is not run again."""
    kept = kept_report(keep, case, kind)
    if kept.report is not None:
        return kept
    found = _judge.run(case, kind, [sys.executable, "-m", "stepscope", "run"], python, timeout)
    keep.mkdir(parents=True, exist_ok=True)
    (keep / f"{case.name}.{kind}.json").write_text(json.dumps(found.report, indent=1))
    (keep / f"{case.name}.{kind}.txt").write_text(f"load {os.getloadavg()[0]:.1f}\n{found.output}")
    return found


def kept_report(folder: Path, case: _judge.Case, kind: str) -> _judge.Ran:
    """A report that was kept."""
    path = folder / f"{case.name}.{kind}.json"
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        return _judge.Ran(report=None, error=f"no report: {error}", seconds=0.0, output="")
    return _judge.Ran(report=report, error="" if report else "no report", seconds=0.0, output="")


def judge_kept(cases: Sequence[_judge.Case], folder: Path) -> list[_judge.Verdict]:
    """Judge reports of earlier runs, for example partial ones."""
    verdicts = []
    for case in cases:
        if case.clean:
            verdicts.append(_judge.judge_clean(case, kept_report(folder, case, "clean")))
        else:
            slow, fixed = (kept_report(folder, case, kind) for kind in ("slow", "fixed"))
            verdicts.append(_judge.judge(case, slow, fixed))
    return verdicts


def diagnose(cases: Sequence[_judge.Case], python: str, timeout: float, keep: Path) -> list[_judge.Verdict]:
    """Run and judge every case."""
    verdicts = []
    for case in cases:
        if case.clean:
            verdict = _judge.judge_clean(case, ran(case, "clean", python, timeout, keep))
            state = f"{verdict.wrong} false alarms"
        else:
            slow, fixed = (ran(case, kind, python, timeout, keep) for kind in ("slow", "fixed"))
            verdict = _judge.judge(case, slow, fixed)
            state = " ".join(f"{check}={MARKS[verdict.checks[check]]}" for check in _judge.CHECKS)
        said = verdict.titles[0] if verdict.titles else "-"
        print(f"{case.name}: {verdict.error or state} :: {said}", file=sys.stderr, flush=True)
        verdicts.append(verdict)
    return verdicts


def main() -> int:
    """Run, judge, print, write."""
    parser = argparse.ArgumentParser(description="judges stepscope on bench/cases")
    parser.add_argument("--only", default="", help="parts of case names, comma-separated")
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the programs")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds a program may take")
    parser.add_argument("--measure", type=int, metavar="RUNS", default=0, help="measure slow/fixed without stepscope")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", default=ROOT / ".diagnosis", help="keeps every report")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="run nothing, judge the reports kept here")
    parser.add_argument("--no-write", action="store_true", help="leave docs/benchmarks/diagnosis.md as it is")
    options = parser.parse_args()
    # not resolved: a virtual environment's python is a link, and the link is what makes it one
    python = str(Path(options.python).absolute()) if "/" in options.python else shutil.which(options.python)
    if python is None:
        parser.error(f"no such Python: {options.python}")
    cases = _judge.load(options.cases, [part for part in options.only.split(",") if part])
    if not cases:
        parser.error("no case matches")
    if options.measure:
        return 1 if measure(cases, python, options.measure, options.timeout) else 0
    kept = options.judge or options.keep / judge_strangers.tree()[:12]
    verdicts = judge_kept(cases, kept) if options.judge else diagnose(cases, python, options.timeout, kept)
    page = table(verdicts, kept)
    print(page)
    if not options.only and not options.no_write and python == sys.executable:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        head = (
            "# Is the first finding right?\n\nPrinted by `make bench-diagnosis`; columns: bench/cases/README.md. "
            "*others*: CPUs that other processes took meanwhile.\n\n"
        )
        PAGE.write_text(head + page)
    return 0 if all(verdict.checks.get("top1", not verdict.wrong) and not verdict.error for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
