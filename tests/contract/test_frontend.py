"""The page's sources: no module imports another in a circle, and what Python says is generated."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "frontend" / "src"
IMPORT = re.compile(r"""^\s*(?:import|export)\s(?:[^;"']*?\sfrom\s+)?["'](\.[^"']+)["']""", re.MULTILINE)
ENDINGS = (".ts", ".tsx", ".d.ts")


def test_no_import_circle() -> None:
    """Imports of types alone are counted, too: who reads one module of a circle has to read all of them."""
    left = {path: _imported(path) for path in SOURCES.rglob("*.ts*")}
    assert sum(map(len, left.values())) > len(left)
    while free := [path for path, imported in left.items() if not imported & left.keys()]:
        for path in free:
            del left[path]
    assert sorted(path.relative_to(SOURCES).as_posix() for path in left) == []


def test_generated_sources_are_fresh() -> None:
    """Types are those of the OpenAPI document, words and colours those of the table of components."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_frontend.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_texts_of_sessions_stay_texts() -> None:
    """No source of the page, nor the script of flame graphs, makes markup or code of a string; Preact makes text."""
    makes = re.compile(
        r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|"
        r"DOMParser|srcdoc|\beval\(|new Function"
    )
    flame = ROOT / "src" / "stepscope" / "report" / "flame" / "flame.js"
    scripts = [*SOURCES.rglob("*.ts*"), flame]
    assert [path.name for path in scripts if makes.search(path.read_text(encoding="utf-8"))] == []


def _imported(path: Path) -> set[Path]:
    """Modules of the page that a module imports."""
    places = [(path.parent / place).resolve() for place in IMPORT.findall(path.read_text())]
    files = [[Path(f"{place}{ending}") for ending in ENDINGS] for place in places if place.suffix != ".css"]
    found = [next((file for file in tried if file.exists()), None) for tried in files]
    assert None not in found
    return {file for file in found if file is not None}
