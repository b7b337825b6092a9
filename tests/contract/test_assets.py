"""The built page that travels with the package is the one that its sources make."""

import subprocess
import sys
from pathlib import Path

from stepscope.web import pages

ROOT = Path(__file__).resolve().parents[2]


def test_the_built_page_is_fresh() -> None:
    """By hash; where Node and the packages are, by building it again."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "assets.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_loads_only_what_travels_with_it() -> None:
    """Every address in the document is a file that the server has; none is elsewhere."""
    document = pages.files()["index.html"].decode()
    named = [part.split('"')[0] for part in document.split('="/assets/')[1:]]
    assert len(named) == 3
    assert set(named) <= pages.files().keys()
    assert "://" not in document
