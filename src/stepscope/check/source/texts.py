"""Facts that texts reveal without parsing: what a file calls and imports, and which files concern a framework.

A rule can only concern a file that names a framework, or one connected by imports with such a file: TensorFlow objects
reach no other files. Words are taken from the text alone, including comments and strings; a few too many do no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct

_CALLED = re.compile(r"\(\s*(\w+)")
"""Pattern of a called name in reversed text, so that no word without a bracket is tried."""
_CLASS = re.compile(r"class\s+(\w+)\s*\(([^()]*)\)\s*:")
_IMPORT = re.compile(r"import(?<!\wimport)\s+(\([^)]{0,20000}\)|(?:[^\n\\]|\\\r?\n)*)")
"""Pattern of an import. Like ``_CLASS`` it begins with plain letters, which are found many times faster than the start
of a word or line."""
_FROM = re.compile(r"\bfrom\s+([.\w]+)\s+\Z")
_LONGEST = 250
"""Maximum number of letters between ``from`` and ``import``, or before ``class``."""
_WORD = re.compile(r"\w+")
NAMED = ("tensorflow", "keras", "numpy", "transformers")
"""Prefixes of the names that rules want. Rules about processes also require one of these."""
_METHODS = ("numpy",)
"""Those that are methods, too: every framework has ``.numpy()``."""


class Facts(Struct, frozen=True):
    """Facts about one text."""

    called: frozenset[str] = frozenset()
    """Words before an opening bracket, and those of classes' bases."""
    imported: frozenset[str] = frozenset()
    """Words of its imports; the dots of relative ones are kept: ``..``."""
    framework: bool = False
    """Flag: the text names a framework."""
    classes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Classes, each with the words of its bases."""
    size: int = 0
    """Bytes of code."""


def facts(data: bytes) -> Facts:
    """The facts about a file's code (``source.code``)."""
    text = data.decode("utf-8", "ignore")
    called = {word[::-1] for word in _CALLED.findall(text[::-1])}
    classes = tuple((name, tuple(_WORD.findall(bases))) for name, bases in _classes(text))
    called.update(*(bases for _, bases in classes))
    imported: set[str] = set()
    for found in _IMPORT.finditer(text):
        before, names = text[max(0, found.start() - _LONGEST) : found.start()], found[1]
        source = _FROM.search(before)
        module = source[1] if source else ""
        dots = len(module) - len(module.lstrip("."))
        imported.update(_WORD.findall(module), _WORD.findall(names), ["." * dots] if dots else ())
    named = any(_names(text, name) for name in NAMED)
    return Facts(frozenset(called), frozenset(imported), named, classes, len(data))


def _names(text: str, package: str) -> bool:
    if package not in _METHODS or package not in text:
        return package in text
    return re.search(rf"(?<!\.){package}", text) is not None


def _classes(text: str) -> Iterator[tuple[str, str]]:
    """Names of classes that begin a line, with the text in their brackets."""
    for found in _CLASS.finditer(text):
        before = text[max(0, found.start() - _LONGEST) : found.start()]
        if not before[before.rfind("\n") + 1 :].strip(" \t"):
            yield found[1], found[2]


def concerned(known: Mapping[str, Facts]) -> frozenset[str]:
    """The files that imports connect, in either direction, with one that names a framework.

    Args:
        known: all files of a project.
    """
    by_word: dict[str, list[str]] = {}
    own = {path: own_word(path) for path in known}
    for path, word in own.items():
        by_word.setdefault(word, []).append(path)
    links: dict[str, list[str]] = {path: [] for path in known}
    for path, told in known.items():
        for word in _imported(path, told.imported):
            for other in by_word.get(word, ()):
                links[path].append(other)
                links[other].append(path)
    todo = [path for path, told in known.items() if told.framework]
    found = set(todo)
    while todo:
        for other in links[todo.pop()]:
            if other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)


def own_word(path: str) -> str:
    """The word by which imports name a file."""
    pure = PurePosixPath(path)
    return pure.parent.name if pure.stem == "__init__" else pure.stem


def _imported(path: str, words: frozenset[str]) -> set[str]:
    """The words of imports, with the folders that relative ones start from."""
    parents = PurePosixPath(path).parents
    found = set()
    for word in words:
        if word.startswith("."):
            found.add(parents[min(len(word), len(parents)) - 1].name)
        else:
            found.add(word)
    return found
