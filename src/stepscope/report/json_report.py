"""The report as JSON: schema ``stepscope.report/1``, published in ``docs/schemas/report-1.json``.

Fields stand in the order of ``model.report.report``, series sorted by key, one series a line: two reports can be
compared with ``diff``. Numbers that are not finite have no place in JSON; what holds one is left out, and a
diagnostic says so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.model.report.report import SCHEMA, Report
from stepscope.tables.errors import IncompatibleSessionError, SessionError
from stepscope.tables.findings import Diagnostic

if TYPE_CHECKING:
    from stepscope.tables.findings import Finding

NOT_FINITE = "DX090"
"""A number that is not finite was omitted from the report."""


def encode(report: Report) -> bytes:
    """The report as UTF-8 JSON, ending in a newline. Cost: O(size)."""
    report = finite(report)
    bare = msgspec.structs.replace(report, series={})
    body = msgspec.json.format(msgspec.json.encode(bare, enc_hook=_number), indent=1)
    empty = b'"series": {}\n}'
    if not body.endswith(empty):
        raise SessionError("a report whose last field is not its series cannot be written")
    rows = [
        b"  " + msgspec.json.encode(k) + b": " + msgspec.json.encode(v, enc_hook=_number)
        for k, v in sorted(report.series.items())
    ]
    if not rows:
        return body + b"\n"
    return body[: -len(empty)] + b'"series": {\n' + b",\n".join(rows) + b"\n }\n}\n"


def _number(value: object) -> object:
    """A number of NumPy's as Python's own: a detector that leaves one in a finding must not cost the report."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a report cannot hold a {type(value).__name__}")


def decode(data: bytes) -> Report:
    """Read what :func:`encode` wrote; fields that this version does not know are ignored.

    Raises:
        IncompatibleSessionError: the report has another major version.
        SessionError: the data is no report.
    """
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema == SCHEMA:
            return msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SessionError(f"this is no report of stepscope: {error}") from error
    raise IncompatibleSessionError(f"the report has schema {schema!r}; this stepscope reads {SCHEMA!r}")


class _Head(msgspec.Struct):
    """What tells the version of a report."""

    schema: str


def finite(report: Report) -> Report:
    """The report without evidence and series that hold a number that is not finite."""
    lost: list[str] = []
    findings = tuple(_finite_finding(f, lost) for f in report.findings)
    series = {k: v for k, v in report.series.items() if all(map(math.isfinite, v))}
    lost += [k for k in report.series if k not in series]
    if not lost:
        return report
    text = f"omitted values that are not finite numbers: {', '.join(sorted(lost))}"
    diagnostics = (*report.diagnostics, Diagnostic(code=NOT_FINITE, text=text))
    return msgspec.structs.replace(report, findings=findings, series=series, diagnostics=diagnostics)


def _finite_finding(finding: Finding, lost: list[str]) -> Finding:
    kept = tuple(e for e in finding.evidence if math.isfinite(e.value) and math.isfinite(e.threshold or 0.0))
    if len(kept) == len(finding.evidence):
        return finding
    lost += [f"{finding.code} {e.metric}" for e in finding.evidence if e not in kept]
    return msgspec.structs.replace(finding, evidence=kept)
