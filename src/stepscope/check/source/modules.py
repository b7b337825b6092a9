"""The files of a project as modules that import each other.

A file is read and analysed on request. Every lookup from one module in another goes through here and is recorded, even
if it finds nothing, so that the dependencies of a file's findings are known afterwards.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from stepscope.check.source import texts
from stepscope.check.source.bindings import FUNCTIONS, Flow, Scope
from stepscope.check.source.flow import analyse
from stepscope.check.source.source import SkippedError, Source, code, read
from stepscope.check.source.syntax import walk

FRAMEWORKS = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "torch", "jax", "sklearn"})
"""Names never looked up in a project, because project folders may have the same name."""


class Module(Struct, eq=False):
    """A parsed file."""

    path: str
    """Path as given, with slashes."""
    name: str
    package: str
    """Package that its relative imports start from."""
    source: Source
    flow: Flow
    _calls: dict[ast.AST, tuple[ast.Call, ...]] = field(default_factory=dict)
    _mentioned: dict[str, bool] = field(default_factory=dict)

    @property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return self.source.tree

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The parent of a node."""
        return self.flow.parents.get(node)

    def mentions(self, text: str) -> bool:
        """Whether the text contains a string."""
        known = self._mentioned.get(text)
        if known is None:
            known = self._mentioned[text] = text in self.source.text
        return known

    def calls_in(self, node: ast.AST) -> tuple[ast.Call, ...]:
        """The calls in a statement or expression, in source order, without functions defined there."""
        known = self._calls.get(node)
        if known is None:
            known = self._calls[node] = tuple(part for part in walk([node]) if isinstance(part, ast.Call))
        return known

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope in which a node's names are looked up; for a function's own node, the scope around it."""
        child, parent = node, self.flow.parents.get(node)
        while parent is not None:
            scope = self.flow.scopes.get(parent)
            if scope is not None and _inside(child, parent):
                return scope
            child, parent = parent, self.flow.parents.get(parent)
        return self.flow.module


def _inside(child: ast.AST, parent: ast.AST) -> bool:
    """Whether a child is a statement of the body, not a decorator, default or base."""
    if isinstance(parent, FUNCTIONS):
        return child is parent.body if isinstance(parent, ast.Lambda) else isinstance(child, ast.stmt)
    return isinstance(child, ast.stmt) or isinstance(parent, ast.Module)


class ModuleDependencies(Struct):
    """The dependencies of a module's results other than its own text."""

    modules: set[str] = field(default_factory=set)
    """Paths of files that were consulted."""
    missing: set[str] = field(default_factory=set)
    """Paths that were looked for and are not files of the project."""
    words: set[str] = field(default_factory=set)
    """Names whose calls, or imports, were looked for in all files."""

    def add(self, other: ModuleDependencies) -> None:
        """Add the dependencies of another module."""
        self.modules |= other.modules
        self.missing |= other.missing
        self.words |= other.words


TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittest", "unittests"})
TEST_HELPERS = frozenset({"conftest", "test_utils", "testing_utils"})
_TESTS = re.compile(r"^\s*(?:async )?def test|^assert\b", re.MULTILINE)
_FRAMEWORKS_OF_TESTS = re.compile(r"\b(?:unittest|pytest|absltest|nose|TestCase)\b")
"""Pattern that a test file must contain: a file merely named ``test_images.py``, or one with a main program, may be
code whose users wait for it."""


class Project:
    """All files that may import each other.

    Args:
        files: path (with slashes) to a function that reads it.
        roots: folders given to check; imports are looked for from a file's own folder up to them.
    """

    def __init__(self, files: Mapping[str, Callable[[], bytes]], roots: Iterable[str] = ()) -> None:
        self.files = files
        self.roots = tuple(PurePosixPath(root) for root in roots)
        self.skipped: dict[str, str] = {}
        self.loaded_bytes = 0
        self.looks: dict[str, ModuleDependencies] = {}
        self._sources: dict[str, Source | None] = {}
        self._modules: dict[str, Module | None] = {}
        self._folders: dict[str, tuple[str, ...]] = {}
        self._found: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
        self._given: dict[tuple[str, str], Module | None] = {}
        self._calling: dict[str, list[str]] | None = None
        self._importing: dict[str, list[str]] | None = None
        self._subclasses: dict[str, set[str]] | None = None
        self._tests: dict[str, bool] = {}
        self.facts: dict[str, texts.Facts] = {}
        self._concerned: frozenset[str] | None = None

    def is_test(self, path: str) -> bool:
        """Whether a file holds tests, which no user waits for: by a folder below a given path, or by its name if it
        contains any.
        """
        known = self._tests.get(path)
        if known is None:
            known = self._tests[path] = self._looks_like_test(path)
        return known

    def inside(self, path: str) -> PurePosixPath:
        """A path below the folder that was given to check: what lies above it says nothing about the project."""
        whole = PurePosixPath(path)
        roots = [root for root in self.roots if whole.is_relative_to(root)]
        return whole.relative_to(max(roots, key=lambda root: len(root.parts))) if roots else whole

    def _looks_like_test(self, path: str) -> bool:
        inside = self.inside(path)
        if inside.stem in TEST_HELPERS or TEST_FOLDERS & {part.lower() for part in inside.parts[:-1]}:
            return True
        named = inside.stem.startswith("test_") or inside.stem.endswith(("_test", "_tests"))
        source = self.source(path) if named else None
        if source is None or not named:
            return named
        framework = _FRAMEWORKS_OF_TESTS.search(source.text) is not None
        return framework or (_TESTS.search(source.text) is not None and "__main__" not in source.text)

    def source(self, path: str) -> Source | None:
        """A file, parsed; None if it had to be skipped, see ``skipped``."""
        if path not in self._sources:
            self._sources[path] = None
            try:
                found = self._sources[path] = read(path, self.files[path]())
                self.loaded_bytes += len(found.text)
            except SkippedError as error:
                self.skipped[path] = str(error)
            except OSError as error:
                self.skipped[path] = f"cannot be read: {error.strerror or error}"
        return self._sources[path]

    def load(self, path: str) -> Module | None:
        """The module of a file; None if it had to be skipped, see ``skipped``."""
        if path not in self._modules:
            self._modules[path] = None
            source = self.source(path)
            if source is not None:
                name, package = self.name(path)
                try:
                    self._modules[path] = Module(path, name, package, source, analyse(source.tree, package=package))
                except RecursionError:
                    self.skipped[path] = "nested too deeply"
        return self._modules[path]

    def concerned(self, path: str) -> bool:
        """Whether a file, or one connected with it by imports, names a framework; otherwise it has no findings."""
        if self._concerned is None:
            self._concerned = texts.concerned({every: self.told(every) for every in self.files})
        return path in self._concerned

    def name(self, path: str) -> tuple[str, str]:
        """A file's dotted name and its package: up to the last folder with an ``__init__.py``, else up to the root."""
        pure = PurePosixPath(path)
        folder = pure.parent
        parts: list[str] = []
        regular = str(folder / "__init__.py") in self.files
        while folder.name and (str(folder / "__init__.py") in self.files or (not regular and folder not in self.roots)):
            if not folder.name.isidentifier():
                break
            parts.insert(0, folder.name)
            folder = folder.parent
        package = ".".join(parts)
        if pure.stem == "__init__":
            return package or pure.parent.name, package
        return ".".join([*parts, pure.stem]), package

    def find(self, importer: Module, dotted: str) -> Module | None:
        """The project module that ``import dotted`` gives in a file, if any."""
        question = importer.path, dotted
        if question not in self._given:
            self._given[question] = self._find(importer, dotted)
        return self._given[question]

    def _find(self, importer: Module, dotted: str) -> Module | None:
        first = dotted.partition(".")[0]
        if not dotted or (first in FRAMEWORKS and importer.name.partition(".")[0] != first):
            return None
        folder = posixpath.dirname(importer.path)
        key = folder, dotted
        if key not in self._found:
            self._found[key] = self._look(folder, dotted.replace(".", "/"))
        path, missing = self._found[key]
        looks = self.looks.setdefault(importer.path, ModuleDependencies())
        looks.missing.update(missing)
        if not path:
            return None
        looks.modules.add(path)
        return self.load(path)

    def _look(self, folder: str, inner: str) -> tuple[str, tuple[str, ...]]:
        """The file of a module, looked for from a folder upwards, and the paths where it was not found."""
        missing: list[str] = []
        for place in self._search(folder):
            start = f"{place}/{inner}" if place else inner
            for path in (f"{start}.py", f"{start}/__init__.py"):
                if path in self.files:
                    return path, tuple(missing)
                missing.append(path)
        return "", tuple(missing)

    def calls(self, asker: Module, word: str) -> list[tuple[Module, ast.Call]]:
        """All calls in the project whose called name ends in ``word``."""
        looks = self.looks.setdefault(asker.path, ModuleDependencies())
        looks.words.add(word)
        if self._calling is None:
            self._calling = {}
            for path in self.files:
                for called in self.told(path).called:
                    self._calling.setdefault(called, []).append(path)
        modules = [module for path in self._calling.get(word, ()) if (module := self.load(path)) is not None]
        looks.modules.update(module.path for module in modules if module is not asker)
        return [(module, call) for module in modules for call in module.flow.calls.get(word, ())]

    def importers(self, asker: str, word: str) -> tuple[str, ...]:
        """Paths of other files whose imports name a word: a module, or something in it."""
        self.looks.setdefault(asker, ModuleDependencies()).words.add(word)
        if self._importing is None:
            self._importing = {}
            for path in self.files:
                for imported in self.told(path).imported:
                    self._importing.setdefault(imported, []).append(path)
        return tuple(path for path in self._importing.get(word, ()) if path != asker)

    def subclasses(self, asker: Module, word: str) -> tuple[str, ...]:
        """Names of classes in the project with a base called ``word``, and of their subclasses."""
        if self._subclasses is None:
            self._subclasses = {}
            for path in self.files:
                for name, bases in self.told(path).classes:
                    for base in bases:
                        self._subclasses.setdefault(base, set()).add(name)
        found: dict[str, None] = {}
        todo = [word]
        while todo:
            base = todo.pop()
            self.looks.setdefault(asker.path, ModuleDependencies()).words.add(base)
            fresh = [name for name in sorted(self._subclasses.get(base, ())) if name not in found and name != word]
            found.update(dict.fromkeys(fresh))
            todo += fresh
        return tuple(found)

    def told(self, path: str) -> texts.Facts:
        """The facts about a file's text, without parsing it."""
        if path not in self.facts:
            try:
                self.facts[path] = texts.facts(code(path, self.files[path]()))
            except OSError:
                self.facts[path] = texts.Facts()
        return self.facts[path]

    def _search(self, folder: str) -> tuple[str, ...]:
        """A file's own folder, those above it up to the root, and the root's ``src``; "" is the current one."""
        if folder not in self._folders:
            pure = PurePosixPath(folder)
            stop = next((root for root in self.roots if pure.is_relative_to(root)), pure)
            found = [pure]
            while found[-1] != stop:
                found.append(found[-1].parent)
            places = [*found, stop / "src"] if stop.name != "src" else found
            self._folders[folder] = tuple("" if str(place) == "." else str(place) for place in places)
        return self._folders[folder]
