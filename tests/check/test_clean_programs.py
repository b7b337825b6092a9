"""Programs with nothing wrong: the checker has nothing to say about them above info."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.check.use_cases.check import Options, check

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "bench" / "cases", ROOT.parent / "shared" / "cases")
PROGRAMS = sorted(path for folder in FOLDERS for path in folder.glob("*/clean.py"))


@pytest.mark.parametrize("version", ["2.15", "2.21"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.parent.name)
def test_silent(program: Path, version: str) -> None:
    """No finding above info, for either version that the programs run on."""
    report = check(Options(paths=(program,), target_version=version)).report
    assert [(f.code, f.where[0].line, f.title) for f in report.findings if f.severity != "info"] == []
    assert report.files == 1
    assert report.diagnostics == ()
