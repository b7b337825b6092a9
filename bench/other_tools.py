"""What do other tools say of the study's 58 problems, today?

Runs TensorFlow's profiler read by xprof, XLA, DeepPerf, ruff and ``stepscope check`` on the slow programs of
bench/dlperf that reproduce. What is there stays: results of XLA and DeepPerf are lines of
bench/other_tools_results.toml, those of the others files of one row and one tool below ``--keep``.

``--read`` prints what xprof's pages say of each row, by number and without its name: who reads it writes
bench/other_tools_xprof.toml before the truth is looked at. ``--write`` writes docs/benchmarks/other-tools.md,
whose sections after the table are written by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import _judge
import _other_tools as others
import _xprof_pages
from judge_strangers import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAIRS = ROOT / "bench" / "dlperf"
PAGE = ROOT / "docs" / "benchmarks" / "other-tools.md"
STUDY = ROOT / "docs" / "benchmarks" / "study.md"
READ = ROOT / "bench" / "other_tools_xprof.toml"
RESULTS = ROOT / "bench" / "other_tools_results.toml"
THEN = ROOT / "bench" / "other_tools_study.toml"
ENOUGH = 0.5
"""Share of the fix's gain that XLA must bring to help."""
COLUMNS = ("xprof", "XLA", "DeepPerf", "ruff", "check", "run")
OLD = ("profiler", "xla", "documentation")
HELPS = {"cause", "cause (trace)", "yes"}
ASKS = {
    "C1": "builds graph nodes in a loop; move it out of the loop",
    "C2": "batch before map",
    "C3": "num_parallel_calls is not set",
}
"""What DeepPerf's checkers ask for."""
Results = dict[str, dict[str, _judge.Json]]
"""By tool and row."""


def reproduce() -> list[_judge.Case]:
    """Rows that reproduce, those that need a limit of memory last."""
    known = [case for case in _judge.load(PAIRS) if not {"unverified", "gone"} & set(case.known)]
    return sorted(known, key=lambda case: ("memory_limit_mib" in case.known, others.number(case.name)))


def gain(case: _judge.Case, slow: float, other: float) -> float:
    """Share of the fix's gain that another run of the slow program has, by CPU seconds of the steady steps.

    Args:
        case: the row; what its fix gains was measured with the pair.
        slow: CPU seconds of the steady steps, without the tool.
        other: with it.
    """
    return (1 - other / slow) / (1 - 1 / float(case.known["measured"]["cpu_ratio"]))


def xla_said(case: _judge.Case, said: _judge.Json) -> str:
    """Verdict on XLA, from CPU seconds of the runs that lived; ``fails`` if none did."""
    lived = [said[way] for way in ("auto", "jit") if not isinstance(said[way], str)]
    dies = isinstance(said["slow"], str)
    if dies and "memory_limit_mib" in case.known:
        return "yes" if lived else "no"
    if dies or not lived:
        return "fails"
    return "yes" if max(gain(case, said["slow"], one) for one in lived) >= ENOUGH else "no"


def lines_said(case: _judge.Case, found: Sequence[_judge.Json]) -> str:
    """Verdict on a checker: ``cause`` if a warning at a culprit's lines says it, ``line`` if one stands there."""
    best = "-"
    for one in found:
        place = {"where": [{"file": "slow.py", "line": one["line"]}]}
        if _judge.meets_place(place, case.known):
            best = "cause" if best == "cause" or cause_said(case, str(one["message"])) else "line"
    return best


def cause_said(case: _judge.Case, text: str) -> bool:
    """Whether a text names the true cause, by the words that count for stepscope's own findings."""
    finding = {"name": "", "title": text, "remedies": ()}
    return _judge.right(finding, case.known)


def recorded() -> dict[str, str]:
    """Verdicts on ``stepscope run``, from the study's page: ``cause`` if cause and place are right at rank 1."""
    verdicts = {}
    for line in STUDY.read_text().partition("\n| gone |")[0].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) > 6 and cells[4] in {"yes", "no"}:
            verdicts[cells[0]] = "cause" if cells[4] == cells[5] == "yes" else "line" if cells[5] == "yes" else "-"
    return verdicts


def verdicts(case: _judge.Case, keep: Path, read: Mapping[str, Mapping[str, str]], results: Results) -> dict[str, str]:
    """A row's verdicts by column; "" where a tool was not run."""
    result = dict.fromkeys(COLUMNS, "")
    result["xprof"] = read.get(others.number(case.name), {}).get("verdict", "")
    if case.name in results["xla"]:
        result["XLA"] = xla_said(case, results["xla"][case.name])
    if case.name in results["deepperf"]:
        result["DeepPerf"] = deepperf_said(case, results["deepperf"][case.name])
    for tool in ("ruff", "check"):
        said = load(keep, case, tool)
        if said is not None:
            result[tool] = lines_said(case, said["found"])
    result["run"] = recorded().get(case.name, "")
    return result


def deepperf_said(case: _judge.Case, said: _judge.Json) -> str:
    """Verdict on DeepPerf: as on any checker, by what its checkers ask for."""
    if "error" in said:
        return "fails"
    reports = [one.split() for one in said["found"]]
    return lines_said(case, [{"line": int(line), "message": ASKS[code]} for code, line in reports])


def load_results() -> Results:
    """Committed results, by tool and row."""
    return {"xla": {}, "deepperf": {}, **tomllib.loads(RESULTS.read_text())}


def store(results: Results) -> None:
    """Write them, below the file's comment."""
    lines = [line for line in RESULTS.read_text().splitlines() if line.startswith("#")]
    for tool, rows in results.items():
        lines += ["", f"[{tool}]"]
        for name, said in sorted(rows.items()):
            values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in said.items())
            lines.append(f"{name} = {{ {values} }}")
    RESULTS.write_text("\n".join(lines) + "\n")


def load(keep: Path, case: _judge.Case, tool: str) -> _judge.Json | None:
    """A stored result."""
    path = keep / f"{case.name}.{tool}.json"
    found: _judge.Json | None = json.loads(path.read_text()) if path.exists() else None
    return found


def page(
    rows: Mapping[str, Mapping[str, str]], then: Mapping[str, Mapping[str, int]], known: Sequence[_judge.Case]
) -> str:
    """The table, and above it the sums."""
    sums = []
    for column in COLUMNS:
        asked = [row[column] for row in rows.values() if row[column]]
        sums.append(f"{column} {sum(one in HELPS for one in asked)} of {len(asked)}")
    union = sum(any(row[c] in HELPS for c in COLUMNS[:4]) for row in rows.values())
    left = sum(not all(row.values()) for row in rows.values())
    old = [then[case.known["study_id"]] for case in known]
    was = [f"{tool} {sum(one[tool] == 1 for one in old)}" for tool in OLD]
    was.append(f"any of them {sum(any(one[tool] == 1 for tool in OLD) for one in old)}")
    today = f"Helped today, of the rows that a tool was run on: {', '.join(sums)}; any of the first four {union}."
    pairs = f"the {len(known)} of [the study's 58 rows](study.md) that reproduce today"
    before = "profiler 2, xla 4, documentation 12, any of them 17"
    lines = [
        *("# Other tools on the study's problems", ""),
        f"Printed by `make bench-other-tools ARGS=--write`: {pairs}.",
        "",
        f"Helped in 2022, of all 58: {before}; of these {len(known)}: {', '.join(was)}.",
        "",
        f"{today} Rows on which a tool was not run: {left}. {_ours(rows)}",
        "",
        "| row | study: profiler | XLA | documentation | " + " | ".join(COLUMNS) + " |",
        f"|---|---|---|---|{'---|' * len(COLUMNS)}",
    ]
    marks = {-1: "n/a", 0: "no", 1: "yes"}
    for case in sorted(known, key=lambda one: one.name):
        label = then[case.known["study_id"]]
        cells = " | ".join(marks[label[tool]] for tool in OLD)
        lines.append(f"| {case.name} | {cells} | {' | '.join(rows[case.name][c] or 'not run' for c in COLUMNS)} |")
    return "\n".join(lines) + "\n"


def _ours(rows: Mapping[str, Mapping[str, str]]) -> str:
    ours = [(row["check"] in HELPS, row["run"] in HELPS) for row in rows.values() if row["check"] and row["run"]]
    both, check, run = (ours.count(one) for one in ((True, True), (True, False), (False, True)))
    return (
        f"Of stepscope, check alone tells {check}, run alone {run}, both {both}, neither {ours.count((False, False))}."
    )


def main() -> int:
    """Run what is not there yet, print the page."""
    parser = argparse.ArgumentParser(description="other tools on the study's problems")
    parser.add_argument("--tools", default="check,ruff", help="of xprof, xla, deepperf, ruff, check; comma-separated")
    parser.add_argument("--only", default="", help="parts of names, comma-separated")
    parser.add_argument("--xprof", default="", help="Python of an environment with xprof (pip install xprof)")
    parser.add_argument("--deepperf", default="", help="folder of DeepPerf's scripts; its .venv has jedi")
    parser.add_argument("--cpu", type=int, default=120, help="CPU seconds that a program may take")
    parser.add_argument("--wall", type=float, default=600.0, help="seconds that a program may take")
    parser.add_argument("--keep", type=Path, default=ROOT / ".other-tools", help="keeps results here")
    parser.add_argument("--read", action="store_true", help="print what xprof's pages say, by number; run nothing")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/other-tools.md")
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    limits = {"cpu": options.cpu, "wall": options.wall}
    ways: dict[str, Callable[[_judge.Case], _judge.Json]] = {
        "xprof": lambda case: others.capture(
            case, options.keep / "xprof" / others.number(case.name), options.xprof, **limits
        ),
        "xla": partial(others.xla, **limits),
        "deepperf": partial(others.deepperf, folder=Path(options.deepperf)),
        "ruff": others.ruff,
        "check": others.check,
    }
    known = reproduce()
    if options.read:
        for case in known:
            folder = options.keep / "xprof" / others.number(case.name)
            print(f"[{folder.name}]\n{_xprof_pages.digest(folder)}\n")
        return 0
    results = load_results()
    for tool in options.tools.split(","):
        for case in known:
            asked = not options.only or any(part in case.name for part in options.only.split(","))
            path = options.keep / f"{case.name}.{tool}.json"
            if not asked or path.exists() or case.name in results.get(tool, {}):
                continue
            said = ways[tool](case)
            if tool in results:
                results[tool][case.name] = said
                store(results)
            else:
                path.write_text(json.dumps(said, indent=1))
            print(f"{tool} {others.number(case.name)}: {others.short(said)}", file=sys.stderr, flush=True)
    read = tomllib.loads(READ.read_text()) if READ.exists() else {}
    then = tomllib.loads(THEN.read_text())
    text = page({case.name: verdicts(case, options.keep, read, results) for case in known}, then, known)
    print(text)
    if options.write:
        after = PAGE.read_text().partition("\n## ") if PAGE.exists() else ("", "", "")
        PAGE.write_text(text + after[1] + after[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
