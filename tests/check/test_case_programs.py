"""Slow programs whose source gives them away: the rule that says so does, at the culprit's lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepscope.check.use_cases.check import Options, check

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SLACK = 3
"""Lines, as the judge of diagnoses has it."""
CAUGHT = {
    "bench/cases/02-numpy-function-map": "TFD001",
    "bench/cases/08-fit-slow-map": "TFD001",
    "bench/cases/14-eager-loop": "TFF005",
    "bench/cases/15-predict-per-row": "KER001",
    "bench/cases/16-checkpoint-every-few-batches": "KER008",
    "bench/cases/20-run-eagerly-left-on": "TFF006",
    "bench/cases/21-saved-model-per-file": "KER003",
    "bench/cases/40-gan-run-eagerly": "TFF006",
    "bench/cases/41-model-loaded-per-request": "KER003",
    "bench/cases/43-assign-op-per-step": "OPS001",
    "../shared/cases/05-py-function-tokenise": "TFD007",
    "../shared/cases/06-lr-schedule-float": "TFF001",
    "../shared/cases/09-rl-predict-per-step": "KER001",
    "../shared/cases/12-validate-every-few-batches": "KER008",
}
"""``make bench-static-cases`` says which others there are."""


def reported(program: Path) -> set[tuple[str, int, int]]:
    """(code, first line, last line) of what is above info."""
    report = check(Options(paths=(program,), target_version="2.21")).report
    places = [(f.code, f.where[0]) for f in report.findings if f.severity != "info"]
    return {(code, place.line, place.end_line or place.line) for code, place in places}


@pytest.mark.parametrize("name", CAUGHT)
def test_caught(name: str) -> None:
    """The rule points at the culprit in the slow program, and has nothing to say about the fixed one."""
    folder = ROOT / name
    if not folder.is_dir():
        pytest.skip(f"no {name} beside this checkout")
    culprits = tomllib.loads((folder / "case.toml").read_text())["where"]
    lines = [
        (first, last)
        for code, first, last in reported(folder / "slow.py")
        for want in culprits
        if code == CAUGHT[name] and first <= want["end_line"] + SLACK and last >= want["line"] - SLACK
    ]
    assert lines != []
    assert CAUGHT[name] not in {code for code, _, _ in reported(folder / "fixed.py")}
