"""Does a fix change what a program prints or computes? Programs by seed, run before and after, in warm interpreters.

For each rule that has a fix, programs with its pattern are made from bench/fixes (see ``_fix_programs``), fixed by the
rule's safe fixes and, apart, its unsafe ones, and run in interpreters that have imported TensorFlow. Output and public
variables are compared: types, shapes, element types, values. A program that fails before the fix is thrown
away and counted. The first program of each rule that differs is printed.

Usage: fix_property.py [--snippets N] [--seed N] [--only CODE,CODE] [--write]
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import _fix_programs
from _warm import Ran, Warm, difference
from stepscope.check.context import Engine
from stepscope.check.fixing.rounds import Outcome, fix
from stepscope.check.hits import Hit
from stepscope.check.registry import ALL
from stepscope.check.run.run import check
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import parse, target

PAGE = _fix_programs.ROOT / "docs" / "benchmarks" / "fix-property.md"
OLD_PYTHON = _fix_programs.ROOT / ".venv-tf215" / "bin" / "python"
VERSION = "2.21"
FILE = "train.py"
NUMBERS = ("ran", "offered", "applied", "equal", "different")


@dataclass(slots=True)
class Tally:
    """Results of one rule's programs."""

    generated: int = 0
    ran: int = 0
    """Number of programs that ran without an error before any fix."""
    offered: int = 0
    """Number of programs that the rule reports with a fix."""
    applied: int = 0
    """Number of programs whose text the fix changed."""
    safe: int = 0
    """Number of programs changed by a safe fix alone."""
    equal: int = 0
    different: int = 0
    example: str = ""
    """First program that differs, and how."""
    broken: list[str] = field(default_factory=list)
    """Errors of programs that failed before any fix."""


def fixed(text: str, code: str, *, unsafe: bool, version: str = "") -> tuple[str, bool]:
    """A program after the fixes of one rule, and whether one was offered."""
    rules = [rule for rule in ALL if rule.code == code]

    def hits(contents: dict[str, bytes]) -> dict[str, Sequence[Hit]]:
        readers = {path: (lambda data=data: data) for path, data in contents.items()}
        engine = Engine(Project(readers, ["."]), target(parse(version or VERSION) or (2, 21), "bench"))
        return {r.path: list(r.hits) for r in check(engine, contents, rules) if not r.skipped}

    first = {FILE: text.encode()}
    found = hits(first)
    outcome: Outcome = fix(
        found,
        first.__getitem__,
        lambda changed: hits({**first, **changed}),
        version=parse(version or VERSION) or (2, 21),
        allowed=("safe", "unsafe") if unsafe else ("safe",),
    )
    offered = any(hit.fix is not None for hit in found.get(FILE, ()))
    return outcome.contents.get(FILE, text.encode()).decode(), offered


def judge(warm: Warm, code: str, text: str, tally: Tally, version: str = "") -> None:
    """Fix a program both ways, run the results, count."""
    tally.generated += 1
    ways = {unsafe: fixed(text, code, unsafe=unsafe, version=version) for unsafe in (False, True)}
    tally.offered += ways[True][1]
    before = warm.run(text)
    if before.error:
        tally.broken.append(f"{before.error}\n{text}")
        return
    tally.ran += 1
    changed = {unsafe: after for unsafe, (after, _) in ways.items() if after != text}
    if not changed:
        return
    tally.applied += 1
    tally.safe += False in changed
    runs: dict[str, Ran] = {}
    for after in changed.values():
        if after not in runs:
            runs[after] = warm.run(after)
            wrong = difference(before, runs[after])
            if wrong:
                tally.different += 1
                tally.example = tally.example or f"{wrong}\n--- before\n{text}--- after\n{after}"
                return
    tally.equal += 1


def run(code: str, snippets: int, seed: int, warm: Warm) -> Tally:
    """Judge the programs of one rule: each template in turn, one seed each."""
    tally = Tally()
    templates = _fix_programs.load(code)
    texts = list(templates.texts.values())
    for number in range(snippets):
        program = _fix_programs.varied(texts[number % len(texts)], seed * 1_000_003 + number)
        judge(warm, code, program, tally, templates.version)
    return tally


def python_for(code: str) -> str:
    """The interpreter for a rule's programs; "" if none has the TensorFlow that they need."""
    if not _fix_programs.load(code).version:
        return sys.executable
    return str(OLD_PYTHON) if OLD_PYTHON.exists() else ""


def shares(wanted: Sequence[str], snippets: int) -> dict[str, int]:
    """Programs per rule, so that they are ``snippets`` in total."""
    return {code: snippets // len(wanted) + (i < snippets % len(wanted)) for i, code in enumerate(wanted)}


def table(tallies: dict[str, Tally], seed: int) -> str:
    """The page: one line per rule, then programs that differ."""
    names = {rule.code: rule.name for rule in ALL}
    total = {n: sum(getattr(t, n) for t in tallies.values()) for n in ("generated", *NUMBERS)}
    head = (
        f"Seed {seed}, TensorFlow {VERSION}: {total['generated']} programs, {total['ran']} ran, a fix applied to "
        f"{total['applied']}: {total['equal']} equal, {total['different']} different."
    )
    lines = [
        head,
        "",
        "| rule | generated | ran | fix offered | fix applied | of them safe | equal | different | compared |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for code, t in tallies.items():
        compared = _fix_programs.load(code).compared
        cells = (
            f"{code} {names[code]}",
            t.generated,
            t.ran,
            t.offered,
            t.applied,
            t.safe,
            t.equal,
            t.different,
            compared,
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    idle = [code for code, t in tallies.items() if not t.applied]
    lines += ["", f"No fix was applied for: {', '.join(idle)}." if idle else "Every rule had a fix applied."]
    for code, t in tallies.items():
        if t.example:
            lines += ["", f"## {code}: the first that differs", "", "```", t.example.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Generate, fix, run, compare, print."""
    parser = argparse.ArgumentParser(description="does a fix change what a program prints or computes?")
    parser.add_argument("--snippets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="codes, comma-separated")
    parser.add_argument("--jobs", type=int, default=2, help="warm interpreters")
    parser.add_argument("--broken", action="store_true", help="print the programs that failed before any fix")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(_fix_programs.ROOT)}")
    options = parser.parse_args(words)
    wanted = [c for c in _fix_programs.codes() if not options.only or c in options.only.split(",")]
    parts = shares(wanted, options.snippets)

    groups = [wanted[i :: options.jobs] for i in range(options.jobs)]

    def several(group: Sequence[str]) -> dict[str, Tally]:
        found: dict[str, Tally] = {}
        with contextlib.ExitStack() as stack:
            warm: dict[str, Warm] = {}
            for code in group:
                python = python_for(code)
                if python and python not in warm:
                    warm[python] = stack.enter_context(Warm(python))
                found[code] = run(code, parts[code], options.seed, warm[python]) if python else Tally()
                print(code, found[code].applied, found[code].different, file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(options.jobs) as pool:
        tallies = {code: t for found in pool.map(several, groups) for code, t in found.items()}
    page = table(dict(sorted(tallies.items())), options.seed)
    print(page)
    if options.broken:
        for code, t in sorted(tallies.items()):
            for text in t.broken[:1]:
                print(f"### {code}: {len(t.broken)} failed before any fix, the first: {text}")
    if options.write:
        head = "# Do fixes change results?\n\nPrinted by `make bench-fix-property`.\n\n"
        PAGE.write_text(head + page, encoding="utf-8")
    return int(any(t.different for t in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
