"""The registry of detectors is complete, and every detector explains itself."""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import stepscope

DETECTORS = Path(stepscope.__file__).parent / "detectors"
DOCS = Path(__file__).resolve().parents[2] / "docs"
HEADINGS = ("What it detects", "Why it matters", "Evidence", "Known limits", "Remedy", "References")
FAMILIES = (
    "INP",
    "HST",
    "GRF",
    "KRN",
    "LAY",
    "MEM",
    "COM",
    "DST",
    "CFG",
    "TRD",
    "INI",
    "HNG",
    "NET",
    "DSK",
    "UTL",
    "GPU",
    "GEN",
    "EXP",
)
CODE = re.compile(rf"(?:{'|'.join(FAMILIES)})\d{{3}}")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")

NOT_KNOWN = [
    "DST001 cause",
    "DST002 cause",
    "DST011 cause",
    "EXP002 cause",
    "EXP002 introduced_stage",
    "GPU001 cause",
    "GPU002 cause",
    "HNG001 cause",
    "UTL001 introduced_stage",
]
"""These see that time is lost, and cannot know this part of why."""

registry = importlib.import_module("stepscope.detectors.registry")


def _files() -> list[str]:
    """Modules of the package that define a detector."""
    defines = re.compile(r"^DETECTOR\b", re.MULTILINE)
    return sorted(path.stem for path in DETECTORS.rglob("*.py") if defines.search(path.read_text()))


def test_every_file_is_registered() -> None:
    """A detector that has a file is listed in ``registry.ALL`` or ``registry.GENERAL``, once, sorted by code."""
    modules = [detector.detect.__module__.rpartition(".")[2] for detector in registry.EVERY]
    assert sorted(modules) == _files()
    for listed in (registry.ALL, registry.GENERAL):
        codes = [detector.code for detector in listed]
        assert codes == sorted(set(codes))
    assert {detector.code[:3] for detector in registry.GENERAL} == {"GEN"}


def test_a_detector_lives_in_the_file_of_its_name() -> None:
    """Who reads a finding's name finds its code; detectors stand in folders, none at the top."""
    found = [detector.detect.__module__.split(".")[-3::2] for detector in registry.EVERY]
    assert found == [["detectors", detector.name.replace("-", "_")] for detector in registry.EVERY]


@pytest.mark.parametrize("detector", registry.EVERY, ids=lambda detector: detector.code)
def test_a_detector_is_documented(detector: Any) -> None:
    """A detector's module has every heading, in order, each with prose, and its page is in docs/detectors.md."""
    doc = inspect.getdoc(importlib.import_module(detector.detect.__module__)) or ""
    sections = re.findall(r"^## (.+)\n+((?:(?!## ).+\n?|\n)*)", doc, re.MULTILINE)
    assert tuple(title for title, _ in sections) == HEADINGS
    assert all(body.strip() for _, body in sections)
    page = (DOCS / "detectors.md").read_text()
    assert f"## {detector.code} {detector.name}\n" in page


@pytest.mark.parametrize("detector", registry.EVERY, ids=lambda detector: detector.code)
def test_a_detector_is_named_by_the_bad_pattern(detector: Any) -> None:
    """Codes are of a known family; names are lower-case words with hyphens, readable after "allow"."""
    assert CODE.fullmatch(detector.code)
    assert NAME.fullmatch(detector.name)


MAKERS = frozenset({"Seen", "loss.seen"})
"""What makes a finding: the general detectors share a function (``general_loss.Loss.seen``)."""


def test_a_detector_says_the_classification_of_its_findings() -> None:
    """Cause and stage of introduction stand in its ``Detector``, or in each finding: never in neither."""
    silent = []
    for detector in registry.EVERY:
        tree = ast.parse(inspect.getsource(sys.modules[detector.detect.__module__]))
        seen = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS]
        assert seen, detector.code
        for part in ("cause", "introduced_stage"):
            own = getattr(detector, part) != "unknown"
            silent += [
                f"{detector.code} {part}" for call in seen if not own and part not in {kw.arg for kw in call.keywords}
            ]
    assert sorted(silent) == NOT_KNOWN
