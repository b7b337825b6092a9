"""How right is a tool on the slow programs of bench/cases? Judges its answers, which it wrote as JSON.

Imports nothing of stepscope.

The form of an answer, and how to make answers with a tool: bench/ANSWERS.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import _judge
from _judge import Case, Ran, Verdict

CASES = Path(__file__).resolve().parent / "cases"
CHECKS = ("top1", "any", "line", "cost", "gone")
"""What any tool can be asked; stages and causes in the words of the codebook are stepscope's."""
MARKS = {True: "yes", False: "no", None: "-"}
UNSAID = {
    "name": "",
    "severity": "medium",
    "cause": "",
    "introduced_stage": "",
    "exposed_stage": "",
    "pipeline_stage": "",
}


def answer(path: Path) -> Ran:
    """An answer as the judge takes it.

    Raises:
        ValueError, TypeError: it is no JSON of that form; the message names what is wrong.
    """
    if not path.exists():
        return Ran(report=None, error="not answered", seconds=0.0, output="")
    said = json.loads(path.read_text())
    if not isinstance(said, Mapping) or not isinstance(said.get("findings"), list):
        raise TypeError("want an object with a list of findings")
    return Ran(report={"findings": [_finding(one) for one in said["findings"]]}, error="", seconds=0.0, output="")


def _finding(said: object) -> dict[str, object]:
    if not isinstance(said, Mapping) or not isinstance(said.get("title"), str):
        raise TypeError("want a title in each finding")
    where = [dict(place) for place in said.get("where", ())]
    if not all(isinstance(place.get("file"), str) and isinstance(place.get("line"), int) for place in where):
        raise ValueError("want a file and a line in each place")
    remedies = [{"text": text} for text in said.get("remedies", ())]
    cost = {"ratio": float(said.get("cost_ratio", 0.0))}
    return {
        **UNSAID,
        "code": said.get("kind", said["title"]),
        **said,
        "where": where,
        "remedies": remedies,
        "cost": cost,
    }


def judged(case: Case, folder: Path) -> Verdict:
    """What the answers in a folder are worth for a case; one that is missing is silence."""
    if case.clean:
        return _judge.judge_clean(case, answer(folder / "clean.json"))
    return _judge.judge(case, answer(folder / "slow.json"), answer(folder / "fixed.json"))


def table(verdicts: Sequence[Verdict]) -> str:
    """Markdown: a row for each case, and the shares of the pairs."""
    lines = [f"| case | {' | '.join(CHECKS)} | wrong | first |", f"|---|{'---|' * len(CHECKS)}---:|---|"]
    for one in verdicts:
        marks = ["-" if one.clean else MARKS[one.checks[check]] for check in CHECKS]
        first = one.titles[0] if one.titles else one.error or "-"
        lines.append(f"| {one.case} | {' | '.join(marks)} | {one.wrong} | {first.replace('|', '/')} |")
    all_of_them = _judge.shares(verdicts)
    pairs = sum(not one.clean for one in verdicts)
    said = ", ".join(f"{check} {all_of_them[check]:.0%}" for check in (*CHECKS, "precision"))
    alarms, clean = sum(one.wrong for one in verdicts if one.clean), len(verdicts) - pairs
    last = f"{pairs} pairs: {said}; {alarms} false alarms on {clean} clean programs"
    return "\n".join([*lines, "", last, ""])


def main() -> int:
    """Judge, print."""
    parser = argparse.ArgumentParser(description="judges a tool's answers about bench/cases")
    parser.add_argument("answers", type=Path, help="a folder with CASE/slow.json, CASE/fixed.json, CASE/clean.json")
    parser.add_argument("--cases", type=Path, default=CASES)
    options = parser.parse_args()
    cases = _judge.load(options.cases)
    if not options.answers.is_dir():
        parser.error(f"no folder {options.answers}: got nothing to judge; its form: bench/ANSWERS.md")
    try:
        verdicts = [judged(case, options.answers / case.name) for case in cases]
    except (ValueError, TypeError) as error:
        parser.error(f"an answer in {options.answers} cannot be read: {error}; its form: bench/ANSWERS.md")
    print(table(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
