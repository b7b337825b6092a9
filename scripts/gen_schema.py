"""Writes ``docs/schemas/report-1.json`` from ``stepscope.model.finding``; ``--check`` only compares.

The docstring below a field becomes the field's description, which msgspec alone does not know.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
from pathlib import Path

import msgspec

from stepscope.model import finding

TARGET = Path(__file__).parent.parent / "docs" / "schemas" / "report-1.json"
ID = "urn:stepscope:schema:report:1"


def field_texts() -> dict[str, dict[str, str]]:
    """Class to field to the docstring that stands below the field."""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(finding)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
                words = ast.literal_eval(text.value)
                texts.setdefault(node.name, {})[field.target.id] = " ".join(str(words).split())
    return texts


def schema() -> dict[str, object]:
    """The JSON schema (2020-12) of a report."""
    (root,), parts = msgspec.json.schema_components([finding.Report], ref_template="#/$defs/{name}")
    for name, fields in field_texts().items():
        for field, text in fields.items():
            parts[name]["properties"][field]["description"] = text
    for part in parts.values():
        part["description"] = " ".join(part["description"].split())
    parts["Report"]["properties"]["schema"] = {"const": finding.SCHEMA}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID, "title": finding.SCHEMA}
    return {**head, **root, "$defs": parts}


def main() -> int:
    """Write or compare; 1 when the file is not fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is not fresh")
    options = parser.parse_args()
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    if options.check:
        fresh = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        sys.stderr.write("" if fresh else f"{TARGET.name} is not fresh: run scripts/gen_schema.py\n")
        return 0 if fresh else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
