"""Check the text in an editor, in the context of its project."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from stepscope.check.hits import Hit
from stepscope.check.registry import ALL
from stepscope.check.source import discover
from stepscope.check.source.versions import parse
from stepscope.check.use_cases import check as use_case
from stepscope.tables.evidence import leads_in, session_around
from stepscope.tables.findings import Diagnostic, Finding

MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What a project's folder holds."""
MAX_FILES = 400
"""Projects with more files: only the file's own folder is read, so that the editor does not wait."""


class Document(Struct, frozen=True, kw_only=True):
    """A checked text."""

    path: str
    text: str
    version: int | None
    hits: tuple[Hit, ...]
    findings: tuple[Finding, ...]
    """One for each hit, in the same order."""
    notes: tuple[Diagnostic, ...]
    tensorflow: tuple[int, int]
    """The version that was checked for."""


def check(path: str, text: str, version: int | None = None, open_texts: Mapping[str, str] | None = None) -> Document:
    """Check the content of one file in an editor.

    Args:
        path: its location.
        text: its content.
        version: the editor's number of that content.
        open_texts: other files that the editor holds, by path.

    Raises:
        CheckError: the project's settings are invalid.
        UsageError: the file is part of a session.
    """
    others = {other: content for other, content in (open_texts or {}).items() if session_around(Path(other)) is None}
    overlay = {other: encoded(content) for other, content in others.items()}
    overlay[path] = encoded(text)
    options = use_case.Options(paths=(_project(Path(path)),), only=(path,), overlay=overlay, cache=False)
    done = use_case.check(options)
    shown = {id(f): f for f in done.report.findings}
    by_place = {_key(f): f for f in shown.values()}
    rules = {rule.code: rule for rule in ALL}
    pairs = []
    for result in done.results:
        for hit in result.hits:
            found = by_place.get((hit.code, hit.span.line, hit.span.column, hit.message))
            if found is not None and hit.code in rules:
                pairs.append((hit, found))
    return Document(
        path=path,
        text=text,
        version=version,
        hits=tuple(hit for hit, _ in pairs),
        findings=tuple(found for _, found in pairs),
        notes=tuple(note for note in done.report.diagnostics if note.text.startswith(path)),
        tensorflow=parse(done.report.target.tensorflow) or (0, 0),
    )


def encoded(text: str) -> bytes:
    """A text as file content, in the encoding that it declares."""
    plain = text.encode("utf-8", "replace")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(plain).readline)
        return text.encode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return plain


def _key(finding: Finding) -> tuple[str, int, int | None, str]:
    place = finding.where[0]
    return finding.code, place.line, place.column, finding.title


def _project(path: Path) -> Path:
    """The folder whose files are read: the project's, or the file's own if the project is too large.

    The file itself if its folder does not exist: a buffer never saved, or a file of another machine.
    """
    if not path.parent.is_dir():
        return path
    for folder in path.parents:
        if any((folder / mark).exists() for mark in MARKS):
            return folder if len(discover.discover((folder,), leave_out=leads_in)) <= MAX_FILES else path.parent
    return path.parent
