"""Any tool's answers about the slow programs can be judged, without stepscope."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Judge = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
CASE = """\
cause = "x"
introduced_stage = "x"
exposed_stage = "x"
pipeline_stage = "x"
expect_keywords = ["generator"]
wrong_answers = ["retrac"]
where = [{ file = "slow.py", line = 35, end_line = 37 }]
measured = { ratio = 5.0, runs = 1 }
finding = true
"""
RIGHT = {
    "kind": "input",
    "title": "the generator makes one row at a time",
    "where": [{"file": "slow.py", "line": 34}],
    "cost_ratio": 0.75,
}
WRONG = {"title": "retracing of the generator's function"}


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Judges answers about one pair and a clean program, in a Python that cannot import stepscope."""
    for name, text in (("pair", CASE), ("quiet", "finding = false\n")):
        (tmp_path / "cases" / name).mkdir(parents=True)
        (tmp_path / "cases" / name / "case.toml").write_text(text)

    def judged(**answers: object) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "answers"
        for name, said in answers.items():
            path = folder / ("quiet" if name == "clean" else "pair") / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(said))
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-S", str(ROOT / "bench/judge_answers.py"), str(folder)]
        return subprocess.run(
            [*command, "--cases", str(tmp_path / "cases")], check=False, capture_output=True, text=True, timeout=60
        )

    return judged


@pytest.mark.parametrize(
    ("slow", "fixed", "row"),
    [
        ([RIGHT], [], "| pair | yes | yes | yes | yes | yes | 0 |"),
        ([WRONG, RIGHT], [], "| pair | no | yes | yes | yes | yes | 1 |"),
        ([RIGHT], [RIGHT], "| pair | yes | yes | yes | yes | no | 1 |"),
        ([{**RIGHT, "where": [{"file": "slow.py", "line": 3}]}], [], "| pair | yes | yes | no | yes | yes | 0 |"),
        ([{**RIGHT, "cost_ratio": 0.3}], [], "| pair | yes | yes | yes | no | yes | 0 |"),
        ([], [], "| pair | no | no | no | no | no | 0 |"),
    ],
)
def test_answers_are_judged(judge: Judge, slow: list[object], fixed: list[object], row: str) -> None:
    """By what is true of the case: cause, lines, cost, and whether the fixed program is left alone."""
    done = judge(slow={"findings": slow}, fixed={"findings": fixed}, clean={"findings": [WRONG]})
    assert done.returncode == 0, done.stderr
    assert row in done.stdout
    assert "| quiet | - | - | - | - | - | 1 |" in done.stdout
    assert "1 false alarms on 1 clean programs" in done.stdout


@pytest.mark.parametrize("bad", [[], {"findings": [{}]}, {"findings": [{"title": "x", "where": [{"file": "a"}]}]}])
def test_another_form_is_one_clear_line(judge: Judge, bad: object) -> None:
    """What is wrong, and where the form is described."""
    done = judge(slow=bad)
    assert done.returncode == 2
    assert "bench/ANSWERS.md" in done.stderr.splitlines()[-1]
    assert "want" in done.stderr.splitlines()[-1]


def test_what_is_missing_is_silence(judge: Judge) -> None:
    """A tool that did not answer said nothing."""
    done = judge()
    assert "| pair | no | no | no | no | no | 0 | slow: not answered; fixed: not answered |" in done.stdout
