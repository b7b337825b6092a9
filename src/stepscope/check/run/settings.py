"""Settings of the checker: the table ``[tool.stepscope.check]`` of a project's pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import msgspec

from stepscope.tables.errors import CheckError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Settings of a project; names as in the file, with underscores."""

    select: tuple[str, ...] = ()
    """Prefixes of codes; empty: all rules."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Patterns of paths below the checked folder, or of names."""
    target_version: str = ""
    show_info: bool = False
    fail_on: Literal["error", "warning", "info", "never", ""] = ""
    baseline: str = ""
    """Path of the baseline file, relative to the folder of pyproject.toml."""
    per_file_ignores: dict[str, tuple[str, ...]] = {}


def find(path: Path) -> Path | None:
    """The nearest pyproject.toml at or above a path."""
    start = path.resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
    return None


def load(path: Path) -> tuple[Settings, Path | None]:
    """The settings that apply to a path, and the folder of the file they come from.

    Raises:
        CheckError: the file is not TOML, or the table contains an unknown setting.
    """
    file = find(path)
    if file is None:
        return Settings(), None
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        table = data.get("tool", {}).get("stepscope", {}).get("check", {})
        return msgspec.convert(table, Settings), file.parent
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError) as error:
        raise CheckError(f"{file} cannot be read: {error}") from error
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Settings))
        raise CheckError(f"{file}: [tool.stepscope.check]: {error}; settings are {known}") from error
