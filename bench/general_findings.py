"""Where do the general findings alone point? Runs cases of bench/cases and reports them without any specific finding.

A specific detector knows the pattern of a case; another program may have a pattern that none knows. So each case is
reported as if no specific detector existed, and the first lines of its largest components are compared with the lines
of ``case.toml``. Prints a table; ``--write`` also writes it to docs/benchmarks/general-findings.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import _judge
from stepscope.causes.general import spent_lines
from stepscope.derive import steps_view
from stepscope.derive.view import SessionView
from stepscope.diagnosis import analyze, reasons, settle
from stepscope.model.report.components import COMPONENTS, REF
from stepscope.model.report.report import Component
from stepscope.sessions import bundle
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "bench" / "cases"
PAGE = ROOT / "docs" / "benchmarks" / "general-findings.md"
PAGE_HEAD = """# Where do the general findings alone point?

Printed by `python bench/general_findings.py --write`. Each slow program of bench/cases is reported as if no
specific detector existed. *first line*: the first place of the largest component is a line of the case; *any line*: one
of the first three places of any component of 5 % and more is.

"""
MIN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is told of one case."""

    case: str
    component: str
    share: float
    place: str
    told: str
    first: bool
    any: bool


def session_of(case: _judge.Case, folder: Path | None, budget: str, timeout: float) -> Path:
    """The session of the slow program: a kept one, or a new run."""
    path = (folder or Path(tempfile.mkdtemp())) / f"{case.name}.stepscope"
    if not path.exists():
        program = case.program("slow")
        command = [sys.executable, "-m", "stepscope", "run", "-q", "--budget", budget, "--session", str(path)]
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        job = _judge.command_of(program, sys.executable, command)
        subprocess.run(job, cwd=program.parent, env=env, timeout=timeout, capture_output=True, check=False)
    return path


def row_of(case: _judge.Case, session: Path) -> Row:
    """What the general findings say of a session."""
    view = SessionView(bundle.open_session(session))
    steps = steps_view.of(view)
    anatomy = [part for part in analyze.components(view) if part.ratio >= MIN_SHARE]
    if steps is None or not anatomy:
        return Row(case=case.name, component="no steps", share=0.0, place="", told="", first=False, any=False)
    general = settle.build(view, (), (), analyze.components(view), ()).findings
    shown = {part.component for part in anatomy}
    places = {name: [s.place for s in spent_lines.of(steps, name)] for name in COMPONENTS if name in shown}
    mine = next(some for name, some in places.items() if name == anatomy[0].component)
    top = anatomy[0]
    every = [place for some in places.values() for place in some]
    every += [place for finding in general for place in finding.where]
    return Row(
        case=case.name,
        component=top.component,
        share=top.ratio,
        place=f"{mine[0].file}:{mine[0].line} {mine[0].function}".strip() if mine else "none",
        told=_told(general, top),
        first=_hits(case, mine[:1]),
        any=_hits(case, every),
    )


def _told(general: Sequence[Finding], top: Component) -> str:
    """The general finding about a component; unexplained without one."""
    mine = [f for f in general if reasons.subject(f, REF) == top.component]
    return f"{mine[0].severity} {mine[0].code}: {mine[0].title}" if mine else "unexplained"


def _hits(case: _judge.Case, places: Sequence[Place]) -> bool:
    """Whether a place is one of the case's."""
    found: list[dict[str, object]] = [{"file": p.file, "line": p.line, "end_line": p.end_line} for p in places]
    return bool(_judge.meets_place({"where": found}, case.known))


def table(rows: Sequence[Row]) -> str:
    """The page."""
    first, some = sum(row.first for row in rows), sum(row.any for row in rows)
    lines = [
        f"{len(rows)} cases: the first line is right in {first}, one of the lines in {some}.",
        "",
        "| case | largest component | first line | first line right | any line right | what is told of it |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        marks = f"{'yes' if row.first else 'no'} | {'yes' if row.any else 'no'}"
        lines.append(
            f"| {row.case} | {row.component} {row.share:.0%} | `{row.place}` | {marks} | {row.told.replace('|', '/')} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description="what the general findings alone say of bench/cases")
    parser.add_argument("--only", default="", help="parts of case names, comma-separated")
    parser.add_argument(
        "--sessions", type=Path, metavar="FOLDER", help="keep sessions here, and use those that are there"
    )
    parser.add_argument("--kept", action="store_true", help="only cases with a kept session")
    parser.add_argument("--budget", default="20%", help="of stepscope run: short programs need more for an op trace")
    parser.add_argument("--timeout", type=float, default=200.0, help="seconds a program may take")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/general-findings.md")
    options = parser.parse_args()
    cases = [case for case in _judge.load(CASES, [p for p in options.only.split(",") if p]) if not case.clean]
    rows = []
    for case in cases:
        if options.kept and not (options.sessions / f"{case.name}.stepscope").exists():
            continue
        rows.append(row_of(case, session_of(case, options.sessions, options.budget, options.timeout)))
        print(rows[-1], file=sys.stderr, flush=True)
    page = table(rows)
    print(page)
    if options.write:
        PAGE.write_text(PAGE_HEAD + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
