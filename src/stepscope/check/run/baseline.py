"""A baseline: known findings that are not reported again, identified by their content rather than by line."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from stepscope.tables.errors import CheckError
from stepscope.tables.findings import Finding

SCHEMA = "stepscope.baseline/1"


def key(finding: Finding) -> str:
    """The parts of a finding that do not change when lines move: code, file, function and message."""
    place = finding.where[0]
    text = f"{finding.code}\n{place.file}\n{place.function}\n{finding.title}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(path: Path, findings: Iterable[Finding]) -> int:
    """Write a baseline of findings and return their number.

    Raises:
        CheckError: the file cannot be written.
    """
    every = sorted(findings, key=lambda f: (f.where[0].file, f.code, f.where[0].line))
    rows = [{"key": key(f), "code": f.code, "file": f.where[0].file, "message": f.title} for f in every]
    try:
        path.write_text(json.dumps({"schema": SCHEMA, "known": rows}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise CheckError(f"the baseline {path} cannot be written: {error.strerror}") from error
    return len(rows)


def read(path: Path, files: Collection[str], codes: Collection[str]) -> Counter[str]:
    """Number of known findings for each key, of these files and rules, and of files that are gone.

    Raises:
        CheckError: the file is missing or not a baseline.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["schema"] != SCHEMA:
            raise CheckError(f"the baseline {path} has schema {data['schema']!r}; expected {SCHEMA!r}")
        rows = [row for row in data["known"] if row["file"] in files or not Path(row["file"]).exists()]
        return Counter(str(row["key"]) for row in rows if row["code"] in codes)
    except OSError as error:
        raise CheckError(f"the baseline {path} cannot be read: {error.strerror}; make one: --write-baseline") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CheckError(f"{path} is not a baseline: {error!r}") from error


def new(findings: Iterable[Finding], known: Counter[str]) -> tuple[tuple[Finding, ...], int, int]:
    """The findings that are not known, the number of known ones, and of known ones that are no longer found."""
    left = known.copy()
    fresh = []
    hidden = 0
    for finding in findings:
        if left[key(finding)] > 0:
            left[key(finding)] -= 1
            hidden += 1
        else:
            fresh.append(finding)
    return tuple(fresh), hidden, left.total()
