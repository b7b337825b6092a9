"""Writes ``docs/schemas/*.json`` from the structs of ``stepscope.model``; ``--check`` only compares.

The docstring below a field becomes the field's description, which msgspec alone does not know.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType

import msgspec

from stepscope.model.api import fleet
from stepscope.model.report import (
    brief,
    compare,
    doctor,
    fix,
    ledger,
    process_roles,
    report,
    slow_steps,
    step_detail,
    step_summary,
    whatif,
)
from stepscope.model.report.components import COMPONENTS
from stepscope.model.report.machine import clocks, links, memory_map
from stepscope.tables import check_report, findings, place

REPORT = (clocks, findings, ledger, links, memory_map, place, process_roles, report, slow_steps, step_summary)
"""Modules whose fields' docstrings describe report.json."""
FOLDER = Path(__file__).parent.parent / "docs" / "schemas"


def field_texts(*modules: ModuleType) -> dict[str, dict[str, str]]:
    """Docstring below each field, by class and field."""
    texts: dict[str, dict[str, str]] = {}
    for node in [n for module in modules for n in ast.parse(inspect.getsource(module)).body]:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
                words = ast.literal_eval(text.value)
                texts.setdefault(node.name, {})[field.target.id] = " ".join(str(words).split())
    return texts


def schema(struct: type[msgspec.Struct], name: str, *modules: ModuleType) -> dict[str, object]:
    """The JSON schema (2020-12) of a report."""
    (root,), parts = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    for part, fields in field_texts(*modules).items():
        for field, text in fields.items():
            if part in parts:
                parts[part]["properties"][field]["description"] = text
    if "Component" in parts:
        parts["Component"]["properties"]["component"]["description"] = f"One of {', '.join(COMPONENTS)}."
    for described in parts.values():
        described["description"] = " ".join(described["description"].split())
    parts[struct.__name__]["properties"]["schema"] = {"const": name}
    identity = f"urn:stepscope:schema:{name.removeprefix('stepscope.').replace('/', ':')}"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, "title": name}
    return {**head, **root, "$defs": parts}


def schemas() -> dict[str, dict[str, object]]:
    """The published schemas by file name."""
    return {
        "report-1.json": schema(report.Report, report.SCHEMA, *REPORT),
        "brief-1.json": schema(brief.Brief, brief.SCHEMA, brief, place),
        "check-1.json": schema(check_report.CheckReport, check_report.SCHEMA, check_report, findings, place),
        "memory-1.json": schema(memory_map.MemoryMap, memory_map.SCHEMA, memory_map),
        "compare-1.json": schema(compare.CompareReport, compare.SCHEMA, compare, place),
        "doctor-1.json": schema(doctor.DoctorReport, doctor.SCHEMA, doctor),
        "fix-1.json": schema(fix.FixReport, fix.SCHEMA, fix),
        "fleet-1.json": schema(fleet.FleetAnswer, fleet.SCHEMA, fleet),
        "step-1.json": schema(step_detail.StepDetail, step_detail.SCHEMA, step_detail, slow_steps, findings, place),
        "whatif-1.json": schema(whatif.WhatIfReport, whatif.SCHEMA, whatif),
    }


def main() -> int:
    """Write or compare; 1 when a file is not fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not fresh")
    options = parser.parse_args()
    stale = []
    for name, content in schemas().items():
        target = FOLDER / name
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not options.check:
                FOLDER.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
    if options.check and stale:
        sys.stderr.write(f"{', '.join(stale)}: not fresh; run scripts/gen_schema.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
