"""What a client is told before it asks, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import msgspec
import pytest

from stepscope.mcp import fitting, refusals, tools

MOST_TOKENS = 1_500
CHARACTERS_A_TOKEN = 4
"""What English and JSON take in the tokenizers of today, rounded down."""


def test_descriptions_are_short() -> None:
    """Names, descriptions and schemas of all tools, and the instructions, as a client puts them before its model."""
    told = [{"name": tool.name, "description": tool.about, "inputSchema": tool.schema} for tool in tools.TOOLS]
    text = json.dumps(told) + tools.INSTRUCTIONS
    assert len(text) / CHARACTERS_A_TOKEN <= MOST_TOKENS


@pytest.mark.parametrize("tool", tools.TOOLS, ids=lambda tool: tool.name)
def test_a_schema_says_what_is_taken(tool: tools.ToolText) -> None:
    """Every argument is in the schema and the other way round, and what one refuses the other refuses."""
    assert {*tool.properties, "max_bytes"} == {field.name for field in msgspec.structs.fields(tool.arguments)}
    jsonschema.Draft202012Validator.check_schema(tool.schema)
    for wrong in ({"unknown": 1}, {"max_bytes": 1}, {"max_bytes": "x"}):
        with pytest.raises(msgspec.ValidationError):
            tools.parse(tool.name, wrong)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, tool.schema)


def test_an_unknown_tool_is_refused_without_its_name() -> None:
    """What a client says is not repeated as ours."""
    with pytest.raises(refusals.RefusedError) as refused:
        tools.parse("rm -rf", {})
    assert json.loads(refusals.said(refused.value)) == {"error": refusals.NO_TOOL}


def test_answers_that_do_not_fit_are_cut_by_items() -> None:
    """Texts become shorter first; then items are left out and counted."""

    def build(room: int) -> tuple[fitting.Record, fitting.Lists]:
        return {"head": 1}, {"rows": ["x" * room for _ in range(40)], "more": ["y" * room]}

    for most in (500, 2_000, 20_000):
        answer = fitting.fit(build, most)
        assert len(answer) <= most
        said = msgspec.json.decode(answer)
        assert len(said["rows"]) + said.get("more_rows", 0) == 40
        assert len(said.get("more", [])) + said.get("more_more", 0) == 1


def test_without_the_sdk_one_line_says_what_to_install() -> None:
    """And the exit code is that of what cannot be done; the core needs no SDK."""
    code = "import sys; sys.modules['mcp'] = None; sys.argv = ['stepscope', 'mcp']; "
    done = subprocess.run(
        [sys.executable, "-c", code + "from stepscope.cli.main import main; main()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert done.stderr.endswith(" is not installed; run: pip install mcp\n")
    assert len(done.stderr.splitlines()) == 1
