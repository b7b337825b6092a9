"""What the detectors say fits into a terminal: titles of at most 90 characters that say what is slow, and where."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.detectors import fixture

from stepscope.detectors import registry
from stepscope.report.brief import titles

TESTS = Path(__file__).resolve().parents[1]
MODULES = [
    ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
    for path in sorted((TESTS / "detectors").glob("*/test_*.py"))
]


def test_every_detector_is_asked() -> None:
    """No title escapes: the fixtures are those of all detectors."""
    asked = {getattr(importlib.import_module(name), "DETECTOR", None) for name in MODULES}
    assert {one.code for one in registry.ALL} - {one.code for one in asked if one is not None} == set()


@pytest.mark.parametrize("name", MODULES)
def test_titles_are_whole_statements_of_90_characters(name: str) -> None:
    """Every finding of a detector's fixtures has a title that is short, ends no statement in its middle, and names the
    line if one is known.
    """
    module = importlib.import_module(name)
    fixtures: fixture.Fixtures = module.FIXTURES
    builds = [fixtures.firing, fixtures.at, *(edge.at for edge in fixtures.edges.values())]
    for build in builds:
        for found in fixture.look(module.DETECTOR, build())[0]:
            said = titles.title(found)
            assert cell_len(said) <= titles.MOST
            assert titles.CUT not in said
            assert not found.where or titles.at(found.where[0]) in said
