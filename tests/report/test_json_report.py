"""The report as JSON, and its published schema."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import numpy as np
import pytest

from stepscope.model.report.report import SCHEMA, Report
from stepscope.report import json_report
from stepscope.tables.errors import IncompatibleSessionError, SessionError

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schema() -> Any:
    """The published schema."""
    return json.loads((ROOT / "docs/schemas/report-1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that writes the schema."""
    spec = importlib.util.spec_from_file_location("gen_schema", ROOT / "scripts/gen_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_valid(report: Report, schema: Any) -> None:
    """Every sample validates against the published schema."""
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json_report.encode(report)), schema)


def test_round_trip(report: Report) -> None:
    """What is read is what was written, and written again it is the same bytes."""
    data = json_report.encode(report)
    assert json_report.decode(data) == report
    assert json_report.encode(json_report.decode(data)) == data


def test_a_number_of_numpys_is_written(report: Report) -> None:
    """What a detector forgot to make a float of is a number all the same."""
    findings = tuple(
        msgspec.structs.replace(
            f, evidence=tuple(msgspec.structs.replace(e, value=np.float64(e.value)) for e in f.evidence)
        )
        for f in report.findings
    )
    strange = msgspec.structs.replace(report, findings=findings)
    assert json_report.encode(strange) == json_report.encode(report)


def test_fresh(generator: ModuleType, schema: Any) -> None:
    """The published schema is what the generator makes of the model."""
    assert json.loads(json.dumps(generator.schemas()["report-1.json"])) == schema


def test_schema_says_what_fields_mean(generator: ModuleType) -> None:
    """The docstring of a field is its description."""
    fields = generator.field_texts(generator.step_summary)
    assert fields["StepTimes"]["source"].startswith("Source of the steps")
    assert "description" in generator.schemas()["report-1.json"]["$defs"]["StepTimes"]["properties"]["source"]


def test_schema_refuses_unknown_words(samples: ModuleType, schema: Any) -> None:
    """A cause that is not in the codebook does not validate."""
    data = json.loads(json_report.encode(samples.input_bound()))
    data["findings"][0]["cause"] = "bad luck"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_additions_are_read(samples: ModuleType) -> None:
    """Fields that a later version adds are ignored, and fields with a default may be absent."""
    data = json.loads(json_report.encode(samples.input_bound()))
    data["new"] = data["session"]["new"] = {"a": 1}
    del data["stages"]
    assert json_report.decode(json.dumps(data).encode()).stages == ()


def test_key_order_is_stable(samples: ModuleType) -> None:
    """Keys stand in the order of the model, series sorted."""
    data = json.loads(json_report.encode(samples.input_bound()))
    assert list(data) == list(Report.__struct_fields__)
    assert list(data["series"]) == sorted(data["series"])


def test_infinite_numbers_become_a_diagnostic(samples: ModuleType) -> None:
    """Numbers that JSON cannot hold are left out, and the report says so."""
    report = samples.input_bound()
    evidence = msgspec.structs.replace(report.findings[0].evidence[0], value=math.nan)
    bad = msgspec.structs.replace(report.findings[0], evidence=(evidence, *report.findings[0].evidence[1:]))
    report = msgspec.structs.replace(report, findings=(bad,), series={"step_t": (0.0, math.inf)})
    read = json_report.decode(json_report.encode(report))
    assert read.series == {}
    assert len(read.findings[0].evidence) == len(bad.evidence) - 1
    assert read.diagnostics[-1].code == json_report.NOT_FINITE
    assert "INP003 input_wait_ratio, step_t" in read.diagnostics[-1].text


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", f'{{"schema": "{SCHEMA}"}}'.encode(), b"\xff"])
def test_no_report(data: bytes) -> None:
    """What is no report is refused with one line."""
    with pytest.raises(SessionError, match="this is no report of stepscope"):
        json_report.decode(data)


def test_newer_version() -> None:
    """A report of another major version says which one it is."""
    with pytest.raises(IncompatibleSessionError, match=r"stepscope\.report/2"):
        json_report.decode(b'{"schema": "stepscope.report/2", "findings": 7}')
