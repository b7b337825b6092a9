"""Which version a project is checked for, from the files that say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.check.source.pins import of_specifier, project_target
from stepscope.check.source.versions import parse


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("requirements.txt", "numpy\ntensorflow==2.4.1\n", (2, 4)),
        ("requirements.txt", "tensorflow-gpu>=1.12,<2.0  # old\n", (1, 12)),
        ("requirements.txt", "tensorflow-datasets==4.9\ntensorflow_hub==0.1\n", None),
        ("requirements.txt", "tensorflow\n", None),
        ("requirements.txt", "tensorflow[and-cuda]~=2.15.0\n", (2, 15)),
        ("requirements-dev.txt", "tensorflow-cpu == 2.8\n", (2, 8)),
        ("setup.py", "setup(install_requires=['numpy', 'tensorflow>=2.3'])", (2, 3)),
        ("setup.cfg", "install_requires =\n    tensorflow<2.11\n", (2, 10)),
        ("pyproject.toml", '[project]\ndependencies = ["tensorflow ~= 2.13"]\n', (2, 13)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "^2.9"\n', (2, 9)),
        ("environment.yml", "dependencies:\n  - python=3.7\n  - tensorflow=1.15\n", (1, 15)),
        ("environment.yml", "dependencies:\n  - pip:\n    - tensorflow==2.6.0\n", (2, 6)),
        ("Pipfile", '[packages]\ntensorflow = "==2.5.0"\n', (2, 5)),
        ("poetry.lock", '[[package]]\nname = "tensorflow"\nversion = "2.14.1"\n', (2, 14)),
        ("uv.lock", '[[package]]\nname = "keras"\nversion = "3.1"\n', None),
        ("poetry.lock", "[[package", None),
    ],
)
def test_files(tmp_path: Path, name: str, text: str, expected: tuple[int, int] | None) -> None:
    """Each kind of file; other packages whose names begin alike are not taken for it."""
    (tmp_path / name).write_text(text)
    found = project_target(tmp_path)
    assert (found.tensorflow if found else None) == expected


def test_locks_go_before_ranges(tmp_path: Path) -> None:
    """What is locked says more than what is allowed."""
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["tensorflow>=2.8"]\n')
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "tensorflow"\nversion = "2.17.0"\n')
    found = project_target(tmp_path)
    assert found is not None
    assert (found.tensorflow, found.keras, found.source) == ((2, 17), 3, "uv.lock")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("==2.4.*", (2, 4)), ("<2", (1, 15)), ("<=2.3", (2, 3)), ("!=2.5", None), (">1.4,!=1.5", (1, 4)), ("", None)],
)
def test_specifiers(spec: str, expected: tuple[int, int] | None) -> None:
    """Lower ends go before upper ones."""
    assert of_specifier(spec) == expected


@pytest.mark.parametrize(("pin", "oldest"), [("==2.9.1", True), (">=2.8,<3", True), ("<2.12", False)])
def test_pins_that_rule_out_older_versions(tmp_path: Path, pin: str, oldest: bool) -> None:
    """An exact pin and a lower bound do; an upper bound alone does not."""
    (tmp_path / "requirements.txt").write_text(f"tensorflow{pin}\n")
    found = project_target(tmp_path)
    assert found is not None
    assert found.oldest is oldest


def test_parse() -> None:
    """Major and minor, whatever follows."""
    assert parse("2.16.0rc1") == (2, 16)
    assert parse("v3") == (3, 0)
    assert parse("latest") is None
