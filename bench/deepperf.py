"""Is everything seen that DeepPerf reports? Holds the checker against its published fixes and against its own scripts.

Published: the fixed problems of its list (``fixed_performance_problems.xlsx``), each at the commit before and after the
fix, in clones of the projects; a pair counts when a rule reports the changed lines before and not after. And the places
where it told projects of repeated nodes (C1), as their trackers show them (``deepperf_c1.csv``), each at the commit of
the report. Scripts: its reports on trees, as JSON files ``TREE.graph.json`` and ``TREE.data.json`` with ``found``:
pairs of C1, C2 or C3 and its message. Each report is matched by a finding of ours at the same call, at any severity, or
rejected for a reason that the analyses of the checker give; what the reasons about cost rest on is measured by
--measure. With --write the tables go to docs/benchmarks/deepperf.md, whose other sections stay.

Usage: deepperf.py [--clones DIR] [--reports DIR --trees DIR] [--measure] [--list] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import _clones
import _deepperf_graphs
import known_fixes
from stepscope.check.context import Call, Context, Engine
from stepscope.check.costs import DECODES, PARSES, PYTHON, READS, RESIZES
from stepscope.check.inference.tags import Tag
from stepscope.check.registry import ALL
from stepscope.check.run.plan import Plan
from stepscope.check.run.run import check_file, unhindered
from stepscope.check.source import discover
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import target

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "deepperf.md"
VERSION = (2, 5)
"""TensorFlow at the time of DeepPerf's reports, summer 2021; the reports state no version."""
NEWEST = (2, 21)
Version = tuple[int, int]
OURS = {"C1": ("OPS001", "OPS003", "OPS004"), "C2": ("TFD002", "TFD009"), "C3": ("TFD001",)}
SLACK = 3
TABLE = ("| checker | number | |", "|---|---|---|")
THEN = "at the TensorFlow that a project pins, else 1.15 where it uses what only version 1 has, else 2.5"
PUBLISHED = (
    ("sql-machine-learning/elasticdl", "C1", 1, "ddfa3b7f"),
    ("batzner/indrnn", "C1", 1, "8239a81"),
    ("amansrivastava17/embedding-as-service", "C1", 1, "8cd4087"),
    ("tensorlayer/tensorlayer", "C1", 2, ""),
    ("tensorforce/tensorforce", "C1", 4, ""),
    ("CLUEbenchmark/CLUE", "C3", 1, "7c2cda4"),
    ("tensorflow/agents", "C3", 4, "3a3c4106"),
    ("titu1994/tf-TabNet", "C3", 2, "5885441"),
    ("dsindex/etagger", "C3", 1, "b7194a2"),
    ("yanx27/PointASNL", "C3", 3, "ec90b99"),
    ("Keyird/DeepLearning-TensorFlow2", "C3", 4, "0141791"),
    ("akanyaani/gpt-2-tensorflow2.0", "C3", 1, "d9107ae"),
    ("EscVM/Efficient-CapsNet", "C3", 1, "d906f6c"),
    ("tensorflow/hub", "C3", 3, "78382aa"),
    ("keras-team/keras", "C3", 1, "279fabea17"),
    ("calmisential/Basic_CNNs_TensorFlow2", "C3", 1, ""),
    ("ryfeus/lambda-packs", "C3", 2, ""),
)
"""Project, DeepPerf's checker, problems in its list, and the commit of the fix; "" where its history shows none."""
_REPORT = re.compile(r"\((?P<what>\w+)\) in (?P<path>[^\n]+?\.py)/(?P<line>\d+) should be called with")
_REPEATED = re.compile(r" in (?P<path>[^\n]+?\.py), line (?P<line>\d+), column \d+")
_ORDER = re.compile(r"before \((?P<what>\w+)\) in (?P<path>[^\n]+?\.py)/(?P<line>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One of DeepPerf's reports."""

    rule: str
    path: str
    """Path below the tree."""
    line: int


def published(clones: Path) -> list[str]:
    """Rows of the first table, one per project."""
    text = []
    for repo, rule, problems, fix in PUBLISHED:
        clone = _clones.find(clones, repo)
        if not fix or clone is None:
            why = "no clone" if clone is None else "its history shows no fix"
            text.append(f"| {repo} | {rule} | {problems} | | | out of reach: {why} |")
            continue
        seen, told = _pair(clone, fix)
        verdict = "yes" if seen else "no"
        text.append(f"| {repo} | {rule} | {problems} | {fix} | {', '.join(sorted(told)) or 'silent'} | {verdict} |")
    return text


def _pair(clone: _clones.Clone, fix: str) -> tuple[bool, set[str]]:
    """Whether findings at the changed lines are gone after the fix, and the findings there before."""
    version = ".".join(map(str, VERSION))
    before, _ = known_fixes.findings(clone, f"{fix}^", version)
    after, _ = known_fixes.findings(clone, fix, version)
    gone, told = False, set()
    for path, hunks in clone.hunks(f"{fix}^", fix, ".").items():
        old, new = ([_lines(*getattr(hunk, side)) for hunk in hunks] for side in ("old", "new"))
        was = [f for f in before.get(path, []) if known_fixes.near(f.where[0], old, 1)]
        left = {f.code for f in after.get(path, []) if known_fixes.near(f.where[0], new, 0)}
        told |= {f"{f.code}:{f.where[0].line}" for f in was}
        gone = gone or any(f.code not in left for f in was)
    return gone, told


def _lines(first: int, number: int) -> tuple[int, int]:
    return first, first + max(number, 1) - 1


def reports(found: Path, tree: Path) -> Iterator[Report]:
    """Reports of one of DeepPerf's scripts on a tree."""
    patterns = {"C1": _REPEATED, "C2": _ORDER, "C3": _REPORT}
    for rule, message in dict.fromkeys(map(tuple, json.loads(found.read_text())["found"])):
        match = patterns[rule].search(message)
        if match is not None:
            path = match["path"].partition(f"/{tree.name}/")[2]
            yield Report(rule=rule, path=path, line=int(match["line"]))


def judge(tree: Path, said: list[Report], then: Version = VERSION) -> Iterator[tuple[Report, str, bool]]:
    """Each report with "" where it is matched, else the reason; and whether the newest TensorFlow still has it.

    Args:
        tree: the project.
        said: the reports.
        then: TensorFlow that they are judged for.
    """
    files = [path.as_posix() for path in discover.discover([tree])]
    codes = {code for some in OURS.values() for code in some}
    rules = [rule for rule in ALL if rule.code in codes]
    told: dict[tuple[int, int], dict[tuple[str, str], list[int]]] = {}
    engines = {}
    with unhindered():
        for version in (then, NEWEST):
            readers = {path: Path(path).read_bytes for path in files}
            engines[version] = Engine(Project(readers, [tree.as_posix()]), target(version, "benchmark"))
            told[version] = defaultdict(list)
            for path in {(tree / report.path).as_posix() for report in said}:
                for hit in check_file(engines[version], path, Plan(rules, version)).hits:
                    told[version][path, hit.code].append(hit.span.line)
        for report in said:
            path = (tree / report.path).as_posix()
            there = {
                version: any(abs(line - report.line) <= SLACK for c in OURS[report.rule] for line in found[path, c])
                for version, found in told.items()
            }
            reason = "" if there[then] else why_not(engines[then], path, report)
            yield report, reason, there[NEWEST]


def why_not(engine: Engine, path: str, report: Report) -> str:
    """Why a report is no finding of ours."""
    if report.rule == "C1":
        return _deepperf_graphs.why_not(engine, path, report.line)
    module = engine.project.load(path)
    if module is None:
        return f"file not read: {engine.project.skipped.get(path, 'not concerned')}"
    ctx = Context(engine, module, ALL[0])
    calls = [c for c in ctx.calls("map", "interleave", "map_with_legacy_function") if c.receiver is not None]
    near = [c for c in calls if abs((c.node.func.end_lineno or 0) - report.line) <= SLACK]
    near.sort(key=lambda c: abs((c.node.func.end_lineno or 0) - report.line))
    call = next((c for c in near if ctx.tag(c.receiver or c.node) is Tag.DATASET), None)
    if call is None:
        return "what is mapped is not known to be a Dataset"
    return _not_sequential(ctx, call) if report.rule == "C3" else _not_batched(ctx, call)


def _not_sequential(ctx: Context, call: Call) -> str:
    """Why a map that looks sequential is not reported."""
    if call.argument(3 if call.word == "interleave" else 1, "num_parallel_calls") is not None:
        return "is parallel: the argument is given"
    given = call.argument(0, "map_func")
    function = ctx.function(given) if given is not None else None
    if function is None:
        return "its function is not in the project"
    if not ctx.functions.effects(function):
        return "casts and shapes of one element: cheaper than handing it to a thread"
    return "a handful of elements"


def _not_batched(ctx: Context, call: Call) -> str:
    """Why a map before a batch stays there."""
    given = call.argument(0, "map_func")
    function = ctx.function(given) if given is not None else None
    if function is None:
        return "its function is not in the project"
    kinds = {effect.kind for effect in ctx.functions.effects(function)}
    called = ctx.functions.called(function)
    reasons = (
        ("random" in kinds, "draws for each element: on a batch it would draw once for all"),
        ("python" in kinds or called & PYTHON, "runs Python on one element"),
        (called & (READS | DECODES), "reads or decodes one file: has no form for batches"),
        (called & PARSES, "splits or parses one string into parts of differing length"),
        (called & RESIZES, "makes elements of differing size alike: they cannot be batched before"),
    )
    return next((why for holds, why in reasons if holds), "not known to give the same on batches")


def scripts(found: Path, trees: Path, *, tell: bool) -> tuple[list[str], int]:
    """The table of its scripts' reports, and the number of trees."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    still: Counter[str] = Counter()
    names = sorted(path for kind in ("graph", "data") for path in found.glob(f"*.{kind}.json"))
    for path in names:
        tree = trees / path.name.removesuffix(".json").rpartition(".")[0]
        said = list(reports(path, tree))
        then = _deepperf_graphs.version_of(tree, VERSION) if path.name.endswith(".graph.json") else VERSION
        for report, reason, newest in judge(tree, said, then) if said else ():
            _count(counts, still, report, reason, newest=newest)
            if tell:
                print(f"{tree.name}: {report.path}:{report.line} {report.rule}: {reason or 'matched'}", file=sys.stderr)
    return _rows(counts, still), len({name.name.rpartition(".")[0].rpartition(".")[0] for name in names})


def told(clones: Path, *, tell: bool) -> tuple[list[str], int, int]:
    """The table of its reports of repeated nodes to projects, with the number of projects and of unavailable ones."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    still: Counter[str] = Counter()
    places: dict[tuple[str, str], list[Report]] = defaultdict(list)
    for place in _deepperf_graphs.published():
        places[place.repo, place.commit].append(Report(rule="C1", path=place.path, line=place.line))
    absent = 0
    for (repo, commit), said in places.items():
        clone = _clones.find(clones, repo)
        if clone is None or _clones.has(clone, [commit]):
            absent += 1
            continue
        with tempfile.TemporaryDirectory(prefix="deepperf-") as name:
            tree = Path(name)
            clone.export(commit, tree)
            for report, reason, newest in judge(tree, said, _deepperf_graphs.version_of(tree, VERSION)):
                _count(counts, still, report, reason, newest=newest)
                if tell:
                    print(f"{repo}: {report.path}:{report.line}: {reason or 'matched'}", file=sys.stderr)
    return _rows(counts, still), len(places), absent


def _count(counts: dict[str, Counter[str]], still: Counter[str], report: Report, reason: str, *, newest: bool) -> None:
    counts[report.rule][reason or "matched"] += 1
    still[report.rule] += newest


def _rows(counts: dict[str, Counter[str]], still: Counter[str]) -> list[str]:
    text = []
    for rule, reasons in sorted(counts.items()):
        total = reasons.total()
        matched = f"{reasons['matched']} matched; {still[rule]} are told of on {_dot(NEWEST)}"
        text.append(f"| {rule} | {total} reports | {matched} |")
        text += [f"| {rule} | {n} | {why} |" for why, n in reasons.most_common() if why != "matched"]
    return text


def _dot(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def main() -> int:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description="DeepPerf's reports, held against ours")
    parser.add_argument("--clones", type=Path, default=os.environ.get(_clones.VARIABLE), help="folder of clones")
    parser.add_argument(
        "--reports", type=Path, help="folder of TREE.graph.json and TREE.data.json, what its scripts found"
    )
    parser.add_argument("--trees", type=Path, help="folder of the trees that it looked at")
    parser.add_argument("--measure", action="store_true", help="measure what a repeated op costs")
    parser.add_argument("--list", action="store_true", help="each report on a line, on stderr")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    text = ["# DeepPerf's reports and ours", "", "Printed by `make bench-deepperf`.", ""]
    if options.clones:
        head = [
            "## Its published fixes",
            "",
            "| project | checker | problems | fix | told at the changed lines | seen |",
        ]
        text += [*head, "|---|---|---|---|---|---|", *published(Path(options.clones)), ""]
        rows, number, absent = told(Path(options.clones), tell=options.list)
        text += ["## What it told projects of repeated nodes", ""]
        text += [f"{number} projects (`bench/deepperf_c1.csv`), {absent} of them out of reach, {THEN}.", ""]
        text += [*TABLE, *rows, ""]
    if options.reports and options.trees:
        rows, number = scripts(options.reports, options.trees, tell=options.list)
        text += ["## Its scripts", ""]
        text += [f"{number} trees; C1 {THEN}; C2 and C3 at TensorFlow {_dot(VERSION)}.", "", *TABLE, *rows, ""]
    if options.measure:
        text += ["## What a repeated op costs", "", "CPU time on the newest TensorFlow.", "", "| | |", "|---|---|"]
        text += [*_deepperf_graphs.measured(), ""]
    print("\n".join(text))
    if options.write:
        PAGE.write_text(_with_others("\n".join(text), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def _with_others(text: str, page: str) -> str:
    """The text, completed with the page's sections that this run did not make: each needs its own inputs."""
    made = {section.partition("\n")[0] for section in text.split("\n## ")[1:]}
    others = [section for section in page.split("\n## ")[1:] if section.partition("\n")[0] not in made]
    return text.rstrip("\n") + "\n" + "".join(f"\n## {section.strip()}\n" for section in others)


if __name__ == "__main__":
    sys.exit(main())
