"""A folder is a concept: small enough to be read as a table of contents."""

from __future__ import annotations

from pathlib import Path

import stepscope

SRC = Path(stepscope.__file__).parent
MOST_MODULES = 25


def test_folders_hold_few_modules() -> None:
    """At most 25 modules each, ``__init__`` not counted."""
    counts = {
        str(folder.relative_to(SRC)): sum(path.stem != "__init__" for path in folder.glob("*.py"))
        for folder in SRC.rglob("*")
        if folder.is_dir()
    }
    assert {name: count for name, count in counts.items() if count > MOST_MODULES} == {}
