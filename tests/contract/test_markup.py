"""Markup is made in one way, which escapes what is put into it; the linter's S704 refuses ``Html(anything else)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "stepscope"
MADE_IN = ("report/marked.py",)
"""Where texts become markup: it escapes them."""
MAKERS = {"Html", "Md"}
OTHER_MEANS = re.compile(
    r"^\s*(import html\b|from html import|from xml\.sax|import xml\.sax|from markupsafe|import markupsafe)",
    re.MULTILINE,
)
ELEMENT = re.compile(
    r"</?(a|article|b|body|br|button|canvas|circle|code|dd|div|dl|dt|figure|figcaption|g|h[1-6]|head|header|html|i|img|"
    r"input|label|li|line|link|main|meta|nav|noscript|option|output|p|path|pre|rect|script|section|select|small|span|"
    r"style|summary|svg|table|tbody|td|text|th|thead|title|tr|ul)(\s[a-z][a-z-]*=|/?>)|<!doctype|<!--"
)
LAYERS = (
    "cli",
    "web",
    "server",
    "use_cases",
    "sidecar",
    "sessions",
    "diagnosis",
    "experiments",
    "report",
    "check/cli",
    "check/editor",
    "check/reports",
    "check/use_cases",
)
"""What may make pages."""


def files() -> Iterator[tuple[str, str, ast.Module]]:
    """(name, text, tree) of the sources, without those that make texts markup."""
    for layer in LAYERS:
        for path in sorted((SOURCE / layer).rglob("*.py")):
            name = str(path.relative_to(SOURCE))
            text = path.read_text(encoding="utf-8")
            if name not in MADE_IN:
                yield name, text, ast.parse(text)


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Strings that are neither docstrings nor arguments of what makes markup."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node
        yield from texts(node)


def test_no_element_stands_in_a_plain_string() -> None:
    """Markup that is put together from plain strings would hold whatever a session says."""
    wrong = [
        f"{name}:{node.lineno}" for name, _, tree in files() for node in texts(tree) if ELEMENT.search(str(node.value))
    ]
    assert wrong == []


def test_nobody_escapes_by_hand() -> None:
    """There is one way to escape, and nobody but it may call a text markup."""
    assert [name for name, text, _ in files() if OTHER_MEANS.search(text) or re.search(r"S704|\.trusted\(", text)] == []


def test_markup_is_joined_by_markup() -> None:
    """``", ".join(...)`` of markup is a plain string, which is escaped where it is put into markup."""
    markup = MAKERS | {"code", "el"}
    wrong = [
        f"{name}:{node.lineno}"
        for name, _, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and isinstance(node.func.value, ast.Constant)
        and any(isinstance(one, ast.Name) and one.id in markup for one in ast.walk(node.args[0]))
    ]
    assert wrong == []
