"""A session of sampled stacks alone is no job that was too short to measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.report import html, markdown, text
from stepscope.report.brief import text as brief
from stepscope.sessions.analysis import analyze
from stepscope.use_cases.importing import import_files

FOLDED = "main;load 300\nmain;step 700\n"
PERF = "python  7  1.000000:  1000 cpu-clock:u: \n\t    55 step+0x1 (/a.out)\n\t    44 main+0x1 (/a.out)\n\n" * 3
SPEEDSCOPE = json.dumps(
    {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "load"}]},
        "profiles": [
            {
                "type": "sampled",
                "name": "wall",
                "unit": "seconds",
                "startValue": 0,
                "endValue": 3,
                "samples": [[0], [0, 1]],
                "weights": [1, 2],
            }
        ],
    }
)
OF_JOBS = (
    "before its first step",
    "too short",
    "no framework",
    "end not recorded",
    "profiling overhead",
    "stepscope.step()",
    "step markers",
)


@pytest.mark.parametrize(
    ("content", "said"),
    [(FOLDED, "2 rows, 1,000 in all"), (PERF, "cpu-clock · 3 rows, 3 us in all"), (SPEEDSCOPE, "2 rows, 3 s in all")],
    ids=["folded", "perf", "speedscope"],
)
def test_nothing_is_said_of_a_job(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text(content)
    report = analyze(import_files([path], tmp_path / "s.stepscope").session)
    shown = [text.render(report, verbose=True), text.render(report), brief.render(report)]
    for each in shown:
        assert said in each
        assert "stepscope flame draws them" in each
    whole = "\n".join([*shown, markdown.render(report), html.render(report).partition("<main")[2]]).lower()
    assert [words for words in OF_JOBS if words in whole] == []
