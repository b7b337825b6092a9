"""Is the first finding right on programs by authors who have not seen stepscope?

Runs a batch of bench/strangers once and writes docs/benchmarks/strangers.md. ``--seal`` writes the hashes of a new
batch, before its first run. A stopped run continues where it was; results belong to one tree of ``src/``. Columns and
procedure: bench/strangers/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import _judge
from _judge import Json

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "bench" / "strangers"
PAGE = ROOT / "docs" / "benchmarks" / "strangers.md"
OLD_PYTHON = ROOT / ".venv-tf215" / "bin" / "python"
CHECKS = ("top1", "any", "place", "led", "cost", "interval", "gone")
MARKS = {True: "yes", False: "no", None: "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one program, or pair of programs."""

    case: str
    clean: bool
    error: str
    checks: Mapping[str, bool | None]
    first: str
    """Title of the first finding above info; "" if there is none."""
    said: float | None
    """Cost of the first right finding."""
    truth: float | None
    """Share of the time that the fix removes."""
    ends: tuple[float, float] | None = None
    """Of the interval of ``said``."""
    alarms: int = 0
    """Number of findings above info on a clean program."""
    not_seen: tuple[float, ...] = ()
    """Share of the wall time that no part of the ledger holds, of each run."""

    @property
    def silent(self) -> bool:
        """Whether the report of a slow program leads nowhere."""
        return not self.clean and not self.first and not self.checks.get("led")


def sealed(batch: Path) -> str:
    """Hashes of a batch's files, one a line."""
    files = sorted(path for path in batch.rglob("*") if path.is_file() and path.name != "hashes.txt")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(batch)}\n" for path in files)


def tree() -> str:
    """Git's hash of ``src/`` as it is committed.

    Raises:
        SystemExit: something in it is not committed.
    """
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT, check=False).returncode:
        raise SystemExit("src/ differs from the last commit; commit first, so that the result names its code")
    said = subprocess.run(["git", "rev-parse", "HEAD:src"], cwd=ROOT, check=True, capture_output=True, text=True)
    return said.stdout.strip()


def says(finding: Json, known: Json) -> bool:
    """Whether title and first remedy name the true cause."""
    return _judge.right({**finding, "name": "", "remedies": finding["remedies"][:1]}, known)


def leads(report: Json | None, known: Json) -> bool:
    """Whether a finding of any severity, or an unexplained entry, points at the culprit's lines or says the cause."""
    report = report or {}
    entries = [entry for entry in report.get("ledger", ()) if entry["settled_by"] == "unexplained"]
    findings = report.get("findings", ())
    return any(_judge.meets_place(one, known) for one in (*findings, *entries)) or any(says(f, known) for f in findings)


def unseen(*runs: _judge.Ran) -> tuple[float, ...]:
    """The ledgers' "not seen" of some runs."""
    ledgers = [(ran.report or {}).get("ledger", ()) for ran in runs]
    return tuple(
        sum(e["ratio"] for e in ledger if e["phase"] == "not-seen" and e["maker"] is None)
        for ledger in ledgers
        if ledger
    )


def row_of(case: _judge.Case, runs: Mapping[str, _judge.Ran]) -> Row:
    """Judge what was run."""
    error = "; ".join(f"{kind}: {ran.error}" for kind, ran in runs.items() if ran.error)
    if case.clean:
        found = runs["clean"].findings
        return Row(
            case=case.name,
            clean=True,
            error=error,
            checks={},
            first="; ".join(f["title"] for f in found),
            said=None,
            truth=None,
            alarms=len(found),
            not_seen=unseen(*runs.values()),
        )
    slow, known = runs["slow"], case.known
    found = [f for f in slow.findings if f["severity"] != "ask"]
    hit = next((f for f in found if says(f, known)), None)
    truth = 1 - 1 / known["measured"]["ratio"]
    dies = "memory_limit_mib" in known
    checks: dict[str, bool | None] = dict.fromkeys(CHECKS, False)
    checks |= {"cost": None, "interval": None, "gone": None, "led": leads(slow.report, known)}
    checks["place"] = _judge.meets_place(found[0], known) if found else False
    if hit is not None:
        cost = hit["cost"]
        checks |= {
            "top1": hit is found[0],
            "any": True,
            "cost": None if dies else abs(cost["ratio"] - truth) <= _judge.COST_SLACK * truth,
            "interval": None if dies else cost["low"] <= truth <= cost["high"],
            "gone": all(f["code"] != hit["code"] for f in runs["fixed"].findings),
        }
    return Row(
        case=case.name,
        clean=False,
        error=error,
        checks=checks,
        first=found[0]["title"] if found else "",
        said=hit["cost"]["ratio"] if hit is not None else None,
        truth=truth,
        ends=(hit["cost"]["low"], hit["cost"]["high"]) if hit is not None else None,
        not_seen=unseen(*runs.values()),
    )


def run_case(case: _judge.Case, keep: Path, timeout: float) -> Row:
    """Run the programs of one case and judge them."""
    python = str(OLD_PYTHON) if case.known.get("python") == "tf215" else sys.executable
    stepscope = [sys.executable, "-m", "stepscope", "run"]
    runs = {}
    for kind in ("clean",) if case.clean else ("slow", "fixed"):
        runs[kind] = ran = _judge.run(case, kind, stepscope, python, timeout)
        (keep / f"{case.name}.{kind}.json").write_text(json.dumps(ran.report, indent=1))
        (keep / f"{case.name}.{kind}.txt").write_text(ran.output)
    return row_of(case, runs)


def shares(rows: Sequence[Row]) -> str:
    """The figures of a batch in one line."""
    pairs, clean = [row for row in rows if not row.clean], [row for row in rows if row.clean]
    parts = [f"{len(pairs)} pairs, {len(clean)} clean programs."]
    for check in CHECKS:
        known = [bool(row.checks[check]) for row in pairs if row.checks.get(check) is not None]
        if known:
            parts.append(f"{check} {sum(known)} of {len(known)} ({sum(known) / len(known):.0%})")
    parts.append(f"silent {sum(row.silent for row in pairs)}")
    parts.append(f"false alarms {sum(row.alarms for row in clean)}")
    seen = [ratio for row in rows for ratio in row.not_seen]
    if seen:
        parts.append(f"not seen at most 5 % in {sum(ratio <= 0.05 for ratio in seen)} of {len(seen)} runs")
    return "; ".join(parts)


def table(rows: Sequence[Row]) -> str:
    """The rows of a batch."""
    lines = [shares(rows), "", f"| pair | {' | '.join(CHECKS)} | cost said (true) | first finding |"]
    lines.append(f"|---|{'---|' * (len(CHECKS) + 2)}")
    for row in rows:
        if not row.clean:
            marks = " | ".join(MARKS[row.checks.get(check)] for check in CHECKS)
            cost = "-" if row.said is None else f"{row.said:.2f}"
            first = (row.error or row.first or "nothing above info").replace("|", "/")
            lines.append(f"| {row.case} | {marks} | {cost} ({row.truth:.2f}) | {first} |")
    lines += ["", "| clean program | findings above info |", "|---|---|"]
    lines += [f"| {row.case} | {(row.error or row.first or 'none').replace('|', '/')} |" for row in rows if row.clean]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run a batch, judge it, write its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("batch", help="batch-1, ...")
    parser.add_argument("--seal", action="store_true", help="write the hashes of a batch, run nothing")
    parser.add_argument("--only", default="", help="parts of case names, comma-separated")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds a program may take")
    parser.add_argument("--keep", type=Path, default=ROOT / ".strangers", help="keeps reports and results here")
    options = parser.parse_args()
    batch = HERE / "programs" / options.batch
    if options.seal:
        (batch / "hashes.txt").write_text(sealed(batch))
        return 0
    if (batch / "hashes.txt").read_text() != sealed(batch):
        raise SystemExit(f"the programs of {options.batch} are not those that were sealed")
    keep = options.keep / f"{options.batch}-{tree()[:12]}"
    keep.mkdir(parents=True, exist_ok=True)
    done = keep / "rows.json"
    rows = [Row(**row) for row in json.loads(done.read_text())] if done.exists() else []
    for case in _judge.load(batch, [part for part in options.only.split(",") if part]):
        if all(row.case != case.name for row in rows):
            rows.append(run_case(case, keep, options.timeout))
            print(
                f"{case.name}: {dict(rows[-1].checks)} {rows[-1].first or rows[-1].error}", file=sys.stderr, flush=True
            )
            done.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(table(sorted(rows, key=lambda row: row.case)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
