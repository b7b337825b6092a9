"""The TensorFlow version that a project requires: its requirements, lock files and set-up files, read without executing
them.

A range counts by its lower bound if it has one (`>=2.10` promises to work with 2.10), otherwise by its upper bound.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.check.source.versions import Target, parse, target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PACKAGES = r"tensorflow(?:[-_](?:cpu|gpu|macos|intel|rocm|aarch64))?"
_PIN = re.compile(
    rf"^[\s\-\"']*{_PACKAGES}(?:\[[\w,\s-]*\])?\s*[\"']?\s*(?P<spec>(?:[=<>~!^]=?=?|=|:)\s*[\"']?[\d.=<>~!^,\s*\"]+)",
    re.MULTILINE | re.IGNORECASE,
)
_QUOTED = re.compile(rf"[\"']{_PACKAGES}(?:\[[\w,\s-]*\])?\s*(?P<spec>[=<>~!]=?=?\s*[\d.=<>~!,\s*]+)", re.IGNORECASE)
_KERAS = re.compile(r"^[\s\-\"']*keras\s*[\"']?\s*(?P<spec>(?:[=<>~^]=?=?|=)\s*[\"']?[\d.=<>~^,\s*\"]+)", re.MULTILINE)
_LOCKED = ("poetry.lock", "uv.lock")
_PLAIN = ("Pipfile", "environment.yml", "environment.yaml", "conda.yml", "conda.yaml", "pyproject.toml")
_QUOTING = ("setup.py", "setup.cfg", "pyproject.toml")
MAX_BYTES = 8 << 20
LAST = {1: (1, 15)}
"""Last minor version of a major version."""


def project_target(folder: Path) -> Target | None:
    """The version that a folder's own files require; None if they do not say."""
    for path, text in _files(folder):
        spec = _locked(text) if path.name in _LOCKED else _asked(path, text)
        version = of_specifier(spec)
        if version is not None:
            keras = _KERAS.search(text)
            major = parse(keras["spec"]) if keras else None
            return target(version, path.name, major[0] if major else None, oldest=no_older(spec))
    return None


def installed_target() -> Target | None:
    """The version installed in stepscope's environment; None if there is none. Nothing is imported."""
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-macos", "tensorflow-intel"):
        try:
            version = parse(importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            continue
        if version is not None:
            return target(version, "installed")
    return None


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files to read: locks first, because they are exact; then requirements, then package metadata."""
    requirements = sorted([*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt")])
    names: Iterable[Path] = (folder / n for n in (*_LOCKED, "", *_PLAIN, *_QUOTING) if n)
    ordered = [*(folder / n for n in _LOCKED), *requirements, *names]
    for path in dict.fromkeys(ordered):
        try:
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                yield path, path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue


def _asked(path: Path, text: str) -> str:
    """The first specifier of TensorFlow in a file that states a version; "" if there is none."""
    specs = [m["spec"] for m in _PIN.finditer(text)]
    if path.name in _QUOTING:
        specs += [m["spec"] for m in _QUOTED.finditer(text)]
    return next((spec for spec in specs if of_specifier(spec) is not None), "")


def no_older(spec: str) -> bool:
    """Whether a specifier rules out versions older than the one that it stands for: it is no mere upper bound.

    >>> no_older("==2.9.1"), no_older(">=2.8,<3"), no_older("<2.12")
    (True, True, False)
    """
    return any("<" not in part and "!=" not in part and parse(part) is not None for part in spec.split(","))


def of_specifier(spec: str) -> tuple[int, int] | None:
    """The version that a specifier stands for.

    >>> of_specifier(">=2.10,<2.16")
    (2, 10)
    >>> of_specifier("<2.0")
    (1, 15)
    """
    exact, low, high = None, None, None
    for part in spec.replace('"', "").replace("'", "").split(","):
        version = parse(part)
        if version is None or "!=" in part:
            continue
        if ">" in part:
            low = low or version
        elif "<" in part:
            high = version if "<=" in part else _before(version)
        else:
            exact = exact or version
    return exact or low or high


def _before(version: tuple[int, int]) -> tuple[int, int]:
    major, minor = version
    if minor > 0:
        return major, minor - 1
    return LAST.get(major - 1, (major - 1, 0))


def _locked(text: str) -> str:
    """The specifier of the TensorFlow that a lock file states; "" if there is none."""
    try:
        packages = tomllib.loads(text).get("package", [])
    except tomllib.TOMLDecodeError:
        return ""
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict) and re.fullmatch(_PACKAGES, str(package.get("name", ""))):
            return f"=={package.get('version', '')}"
    return ""
