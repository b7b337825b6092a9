"""``make coverage`` counts lines by package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "covered.py"


def test_lines_are_counted_by_package() -> None:
    """Files of one package are added up, modules outside of packages stand as a dot, and nothing is divided by zero."""
    spec = importlib.util.spec_from_file_location("covered", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = {
        name: {"summary": {"covered_lines": ran, "num_statements": lines}}
        for name, ran, lines in (
            ("src/stepscope/wire/ring.py", 3, 4),
            ("src/stepscope/wire/deep/kinds.py", 1, 4),
            ("src/stepscope/_version.py", 0, 0),
        )
    }
    counts = module.by_package(files)
    assert counts == {".": (0, 0), "wire": (4, 8)}
    assert module.table(counts).splitlines()[1:] == [
        ".                   0      0   0.0 %",
        "wire                8      4  50.0 %",
        "all                 8      4  50.0 %",
    ]
