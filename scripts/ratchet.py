"""Counts what may only become fewer, and holds the counts against ``ratchet.toml``.

Per tree: ``Any`` in annotations and code (the alias ``Foreign = Any`` is none, nor is what uses it), ``type: ignore``,
``noqa``, broad excepts that swallow (none that end in a bare ``raise``), asserts (in src), unfinished marks; per
module: its length, soft cap 400 lines, hard cap 500. A module over the soft cap stands in the file by name with its
length, which may only fall. In src also words that plain English does without (``WORDS``).

Usage: ratchet.py            fails when a count rose
       ratchet.py --update   lowers the numbers of the file to what is counted, never raises one
       ratchet.py --raise    writes what is counted; the commit message says why
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path(__file__).with_name("ratchet.toml")
TREES = ("src", "tests", "bench", "scripts")
PAGE, PAGE_MODULES = "frontend/src", frozenset({".ts", ".tsx"})
"""Sources of the page, of which only the length is counted, generated ones too."""
PROGRAMS = ("bench/cases/", "bench/rand/", "bench/rules/", "/programs/", "tests/data/")
"""Paths of programs as users write them, and of data, which are not counted."""
SOFT_LINES = 400
HARD_LINES = 500
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
IGNORE = re.compile(r"#\s*type:\s*ignore")
NOQA = re.compile(r"#\s*noqa", re.IGNORECASE)
FOREIGN = "Foreign = Any"
BROAD = frozenset({"Exception", "BaseException"})
WORDS = ("told", "beside", "anew", "whoever", "nobody", "of its own", "goes on", "as far as")


def modules(tree: str) -> list[Path]:
    """Python files of one tree, without the programs."""
    found = sorted((ROOT / tree).rglob("*.py"))
    return [path for path in found if not any(part in path.relative_to(ROOT).as_posix() for part in PROGRAMS)]


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything and does not raise it again at its end."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in kinds)
    last = handler.body[-1]
    return broad and not (isinstance(last, ast.Raise) and last.exc is None)


def is_alias(node: ast.AST) -> bool:
    """Whether it declares the alias for other people's objects: ``Foreign = Any``."""
    return isinstance(node, ast.Assign) and ast.unparse(node) == FOREIGN


def count(path: Path, tree: str) -> Counter[str]:
    """The counts of one module."""
    text = path.read_text()
    counts: Counter[str] = Counter()
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.Name) and node.id == "Any":
            counts["any"] += 1
        elif is_alias(node):
            counts["any"] -= 1
        elif isinstance(node, ast.ExceptHandler) and swallows(node):
            counts["broad_except"] += 1
        elif isinstance(node, ast.Assert) and tree == "src":
            counts["assert"] += 1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            counts["type_ignore"] += bool(IGNORE.search(token.string))
            counts["noqa"] += bool(NOQA.search(token.string))
            counts["unfinished"] += bool(UNFINISHED.search(token.string))
    return counts


def words(paths: list[Path]) -> Counter[str]:
    """Count of each of ``WORDS`` in docstrings, comments and other strings."""
    counts: Counter[str] = Counter()
    for path in paths:
        text = path.read_text()
        said = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        said += [t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
        for line in (" ".join(part.lower().split()) for part in said if isinstance(part, str)):
            counts.update({word: len(re.findall(rf"\b{word}\b", line)) for word in WORDS if word in line})
    return counts


def long_modules() -> dict[str, int]:
    """Modules over the soft cap, those of the page too, with their lengths."""
    paths = [path for tree in TREES for path in modules(tree)]
    paths += [path for path in sorted((ROOT / PAGE).rglob("*")) if path.suffix in PAGE_MODULES]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in paths}
    return {name: lines for name, lines in lengths.items() if lines > SOFT_LINES}


def measure() -> dict[str, dict[str, int]]:
    """Every table of ``ratchet.toml`` as it is now."""
    tables: dict[str, dict[str, int]] = {}
    for tree in TREES:
        total: Counter[str] = Counter()
        for path in modules(tree):
            total += count(path, tree)
        tables[tree] = dict(sorted(total.items()))
    return {**tables, "words": dict(words(modules("src"))), "lines": long_modules()}


def write(tables: dict[str, dict[str, int]]) -> None:
    """Write ``ratchet.toml``."""
    parts = ["# What may only become fewer. Lowered by `python scripts/ratchet.py --update`.\n"]
    for name, table in tables.items():
        parts.append(f"\n[{name}]\n" + "".join(f'"{key}" = {value}\n' for key, value in sorted(table.items())))
    LIMITS.write_text("".join(parts))


def main() -> int:
    """Compare, report, perhaps update."""
    parser = argparse.ArgumentParser(description="counts what may only become fewer")
    parser.add_argument("--update", action="store_true", help="lower the numbers to what is counted")
    parser.add_argument("--raise", dest="up", action="store_true", help="write what is counted, higher or lower")
    options = parser.parse_args()
    now = measure()
    allowed: dict[str, dict[str, int]] = tomllib.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    if options.up:
        write(now)
        return 0
    worse = []
    better = False
    for table, counts in now.items():
        limits = allowed.get(table, {})
        default = SOFT_LINES if table == "lines" else 0
        for key in sorted({*counts, *limits}):
            have, limit = counts.get(key, 0), limits.get(key, default)
            better |= have < limit and key in limits
            if table == "lines" and have > HARD_LINES:
                worse.append(f"{key}: {have} lines; no module may have more than {HARD_LINES}")
            elif have > limit:
                worse.append(f"{table}: {key} is {have}, was {limit}")
    for line in worse:
        print(line, file=sys.stderr)
    if worse:
        print("ratchet: these may only fall (scripts/ratchet.toml)", file=sys.stderr)
    elif better and options.update:
        write(now)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
