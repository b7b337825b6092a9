"""Sample reports by name, and golden files that ``pytest tests/report --update-goldens`` writes anew."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from stepscope.model.report.report import Report

HERE = Path(__file__).parent
NAMES = ("input-bound", "clean", "no-steps", "hostile", "eight", "long-paths", "no-series", "from-source")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write golden files anew")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stepscope_report_samples", HERE / "samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The module that builds sample reports."""
    return _load()


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of each sample in turn."""
    return str(request.param)


@pytest.fixture
def report(samples: ModuleType, name: str) -> Report:
    """Each sample report in turn."""
    built: Report = samples.SAMPLES[name]()
    return built


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with a golden file, or write it under ``--update-goldens``."""

    def check(file: str, text: str) -> None:
        path = HERE / "golden" / file
        if request.config.getoption("--update-goldens", default=False):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {file}: pytest tests/report --update-goldens"
        assert text == path.read_text(encoding="utf-8")

    return check
