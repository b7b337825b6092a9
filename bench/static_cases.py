"""Which cases are visible in the source alone? The static checker over programs of cases, none of which is run.

A case is caught when a finding above info on its slow program meets a culprit's lines and has the cause, or an accepted
neighbour. The fixed and the clean program should be silent; what is said there is an alarm, to be looked at: a fix need
not touch every pattern. Prints a table, ``--write`` also writes docs/benchmarks/static-cases.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import _judge
from stepscope.check.use_cases.check import Options, check
from stepscope.tables.findings import Finding

ROOT = Path(__file__).resolve().parent.parent
CASES = (ROOT / "bench" / "cases", ROOT.parent / "shared" / "cases")
PAGE = ROOT / "docs" / "benchmarks" / "static-cases.md"
VERSION = "2.21"
"""TensorFlow version that is checked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Findings of the checker on one case."""

    case: _judge.Case
    place: tuple[Finding, ...]
    """Findings above info on the slow program, at a culprit's lines."""
    cause: tuple[Finding, ...]
    """Findings of ``place`` with the right cause."""
    others: tuple[Finding, ...]
    """Findings above info on the slow program, elsewhere."""
    alarms: tuple[Finding, ...]
    """Findings above info on the fixed or the clean program."""

    @property
    def catchable(self) -> bool:
        """Whether the source can show it, according to the case."""
        return bool(self.case.known["static_catchable"])


def look(case: _judge.Case) -> Seen:
    """Check a case's programs."""
    if case.clean:
        return Seen(case=case, place=(), cause=(), others=(), alarms=_found(case, "clean"))
    slow = _found(case, "slow")
    known = case.known
    place = tuple(f for f in slow if _judge.meets_place(msgspec.to_builtins(f), known))
    causes = {known["cause"], *known.get("also_causes", ())}
    return Seen(
        case=case,
        place=place,
        cause=tuple(f for f in place if f.cause in causes),
        others=tuple(f for f in slow if f not in place),
        alarms=_found(case, "fixed"),
    )


def _found(case: _judge.Case, kind: str) -> tuple[Finding, ...]:
    """Findings above info on a program; for a shell script, on the Python programs beside it that are not another's."""
    program = case.program(kind)
    files = [program] if program.suffix == ".py" else sorted(case.folder.glob("*.py"))
    report = check(Options(paths=tuple(files), target_version=VERSION)).report
    return tuple(f for f in report.findings if f.severity != "info")


def table(seen: Sequence[Seen]) -> str:
    """The page."""
    pairs = [s for s in seen if not s.case.clean]
    catchable = [s for s in pairs if s.catchable]
    clean = [s for s in seen if s.case.clean]
    fixed = [s for s in pairs if s.alarms]
    alarmed = [s for s in clean if s.alarms]
    head = (
        f"{len(catchable)} of {len(pairs)} slow programs can be told by their source; "
        f"caught: {sum(bool(s.cause) for s in catchable)} with place and cause, "
        f"{sum(bool(s.place) and not s.cause for s in catchable)} more at the place. "
        f"Programs with an alarm: {len(fixed)} of {len(pairs)} fixed, {len(alarmed)} of {len(clean)} clean."
    )
    lines = [head, "", "| case | caught | at the place | elsewhere | on the fixed program |", "|---|---|---|---|---|"]
    for s in pairs:
        caught = "yes" if s.cause else "cause differs" if s.place else "no" if s.catchable else "not asked"
        cells = (s.case.name, caught, *map(_codes, (s.place, s.others, s.alarms)))
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| clean program | alarms |", "|---|---|"]
    lines += [f"| {s.case.name} | {_codes(s.alarms) or 'none'} |" for s in clean]
    return "\n".join(lines) + "\n"


def _codes(findings: Sequence[Finding]) -> str:
    return ", ".join(dict.fromkeys(f"{f.code}:{f.where[0].line}" for f in findings))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; 1 when a fixed or clean program has an alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "roots", nargs="*", type=Path, help="folders of cases; default: bench/cases and ../shared/cases"
    )
    parser.add_argument("--only", nargs="*", default=(), help="cases whose name contains one of these")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    roots = options.roots or [root for root in CASES if root.is_dir()]
    seen = [look(case) for root in roots for case in _judge.load(root, options.only)]
    page = table(seen)
    print(page, end="")
    if options.write:
        PAGE.write_text(f"# What the source alone gives away\n\n{page}", encoding="utf-8")
    return 1 if any(s.alarms for s in seen) else 0


if __name__ == "__main__":
    sys.exit(main())
