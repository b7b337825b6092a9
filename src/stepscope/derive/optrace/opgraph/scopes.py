"""In which groups the ops of a graph lie: layers, functions, loops and name scopes, and their gradients.

A group comes from the path in an op's name, which is how calls of layers and functions nest; what is known of layers
and called graphs gives it a better name. A group of one is none. A group of very many is divided in the order in which
its ops begin, so that opening one always shows something that can be looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.derive.graph.index import CALLING, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.opgraph.op_graph import OpGraph

MOST = 60
"""Members of a group from which it is divided."""
LOOSE = 6
"""Loose ops of a group with groups up to which each stands for itself."""
ROOT = 0
GRADIENT = "gradient"
_TURN = re.compile(r"_\d+")
_NUMBER = re.compile(r"_\d+$")
_PARTS = re.compile(r"body|cond|then|else|branch\d+")
_TAPES = frozenset({"gradient_tape", "gradients"})
_INNER = re.compile(r"^__(?:inference|forward|backward)_(?P<name>.+?)_\d+$")
_ADDED = "AddN"


class Group(Struct):
    """Ops that belong together. Groups are numbered from the outermost, which holds all."""

    title: str
    kind: str
    """Kind: layer | function | loop | gradient | scope | part: some of a group of very many, in the order of time |
    begin, end: loose ops to which no group leads, and which lead to none"""
    about: str = ""
    """Class of a layer."""
    outer: int = -1
    groups: list[int] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    """Nodes that lie directly in it."""


class Scopes(Struct, frozen=True, kw_only=True):
    """The groups of a graph."""

    groups: tuple[Group, ...]
    of_op: tuple[int, ...]
    """Group in which each node directly lies."""
    titles: tuple[str, ...]
    """What is left of the name of each node within its group."""

    def around(self, group: int) -> Iterator[int]:
        """A group and the groups around it, without the outermost."""
        while group > ROOT:
            yield group
            group = self.groups[group].outer


class _Tree(Struct):
    """A folder of names, before groups of one are dissolved."""

    name: str = ""
    path: str = ""
    inner: dict[str, _Tree] = field(default_factory=dict)
    ops: list[int] = field(default_factory=list)
    around: tuple[tuple[str, str, str], ...] = ()
    """Titles, kinds and classes of dissolved folders around it that are more than name scopes."""


def build(graph: OpGraph, index: GraphIndex) -> Scopes:
    """The groups of a graph's ops."""
    paths = _paths(graph)
    root = _Tree()
    for at, path in enumerate(paths):
        tree = root
        for part in path[:-1]:
            whole = f"{tree.path}/{part}" if tree.path else part
            tree = tree.inner.setdefault(part, _Tree(part, whole))
        tree.ops.append(at)
    return _Maker(graph, index).made(root, [path[-1] for path in paths])


def _paths(graph: OpGraph) -> list[list[str]]:
    """The parts of each op's name; a sum of gradients, which has no scope, lies where its summands do."""
    paths = [list(_merged(node.name.split("/"))) for node in graph.nodes]
    makers: dict[int, list[int]] = defaultdict(list)
    for tensor in graph.tensors:
        for taker in tensor.takers:
            if graph.nodes[taker].type == _ADDED:
                makers[taker].append(tensor.source)
    for at, sources in sorted(makers.items(), key=lambda one: graph.nodes[one[0]].order):
        if not _TAPES.isdisjoint(paths[at]):
            continue
        shared = _shared([paths[source][:-1] for source in sources])
        if not _TAPES.isdisjoint(shared):
            paths[at] = [*shared, paths[at][-1]]
    return paths


def _merged(parts: Sequence[str]) -> Iterable[str]:
    """Without the number that a lowered loop or branch has after its kind."""
    for before, part in zip(["", *parts], parts, strict=False):
        if not (_TURN.fullmatch(part) and _PARTS.fullmatch(before)):
            yield part


def _shared(paths: list[list[str]]) -> list[str]:
    first, *others = paths
    length = min(map(len, paths))
    same = next((i for i in range(length) if any(other[i] != first[i] for other in others)), length)
    return first[:same]


def _order(graph: OpGraph) -> list[float]:
    """Position of each op: by its first begin, but what takes nothing stands before the first that takes from it."""
    found = [float(node.order) for node in graph.nodes]
    taking = {taker for tensor in graph.tensors for taker in tensor.takers}
    for tensor in graph.tensors:
        if tensor.source not in taking:
            found[tensor.source] = min(graph.nodes[taker].order for taker in tensor.takers) - 0.5
    return found


def _all(tree: _Tree) -> Iterator[int]:
    yield from tree.ops
    for inner in tree.inner.values():
        yield from _all(inner)


def _reached(begin: Iterable[int], ways: Mapping[int, Sequence[int]]) -> set[int]:
    found, waiting = set[int](), list(begin)
    while waiting:
        new = [at for at in ways.get(waiting.pop(), ()) if at not in found]
        found.update(new)
        waiting += new
    return found


class _Maker:
    """Makes groups out of folders."""

    def __init__(self, graph: OpGraph, index: GraphIndex) -> None:
        self._graph = graph
        self._index = index
        self._layers = {layer.name: layer.cls for layer in index.layers.values()}
        self._order = _order(graph)
        self._groups: list[Group] = []
        self._of_op = [ROOT] * len(graph.nodes)

    def made(self, root: _Tree, titles: list[str]) -> Scopes:
        self._groups.append(Group("the step", "scope"))
        self._titles = titles
        self._fill(ROOT, root)
        return Scopes(groups=tuple(self._groups), of_op=tuple(self._of_op), titles=tuple(self._titles))

    def _fill(self, number: int, tree: _Tree) -> None:
        """Put what a folder holds into a group."""
        members: list[tuple[float, _Tree | int]] = [(self._order[at], at) for at in tree.ops]
        members += [member for inner in tree.inner.values() for member in self._dissolved(inner)]
        members.sort(key=lambda member: member[0])
        apart = self._set_apart(number, [member for _, member in members])
        self._divide(number, [member for _, member in members if member not in apart], 0, len(members) - len(apart))

    def _set_apart(self, number: int, members: list[_Tree | int]) -> list[_Tree | int]:
        """Put many loose ops into a group before the other groups and one behind them; no circle comes of that."""
        loose = [member for member in members if isinstance(member, int)]
        if len(loose) <= LOOSE or len(loose) == len(members):
            return []
        grouped = [at for member in members if isinstance(member, _Tree) for at in _all(member)]
        inside = {*loose, *grouped}
        down: dict[int, list[int]] = defaultdict(list)
        up: dict[int, list[int]] = defaultdict(list)
        for tensor in self._graph.tensors:
            for taker in tensor.takers if tensor.source in inside else ():
                if taker in inside:
                    down[tensor.source].append(taker)
                    up[taker].append(tensor.source)
        led, leading = _reached(grouped, down), _reached(grouped, up)
        apart: list[_Tree | int] = []
        ends = {
            "begin": [at for at in loose if at not in led and at in leading],
            "end": [at for at in loose if at not in leading],
        }
        for kind, ops in ends.items():
            if len(ops) > 1:
                group = self._new(number, Group(f"{len(ops)} ops at the {kind}", kind))
                self._divide(group, list(ops), 0, len(ops))
                apart += ops
        return apart

    def _divide(self, number: int, members: list[_Tree | int], begin: int, whole: int) -> None:
        """Put some of a folder's members into a group, from the one at ``begin`` of the ``whole`` on."""
        if len(members) <= MOST:
            for member in members:
                self._put(number, member)
            return
        size = -(-len(members) // min(MOST, -(-len(members) // MOST)))
        for at in range(0, len(members), size):
            some = members[at : at + size]
            title = f"{begin + at + 1} to {begin + at + len(some)} of {whole}"
            self._divide(self._new(number, Group(title, "part")), some, begin + at, whole)

    def _dissolved(self, tree: _Tree) -> list[tuple[float, _Tree | int]]:
        """A folder as one member, or what it holds if that is one op or one folder."""
        if len(tree.inner) + len(tree.ops) == 1:
            if tree.ops:
                at = tree.ops[0]
                self._titles[at] = f"{tree.name}/{self._titles[at]}" if tree.name != self._titles[at] else tree.name
                return [(self._order[at], at)]
            (inner,) = tree.inner.values()
            inner.around = (*tree.around, *self._told(tree))
            return self._dissolved(inner)
        return [(self._first(tree), tree)]

    def _first(self, tree: _Tree) -> float:
        own = [self._order[at] for at in tree.ops]
        return min([*own, *(self._first(inner) for inner in tree.inner.values())])

    def _put(self, number: int, member: _Tree | int) -> None:
        if isinstance(member, int):
            self._groups[number].ops.append(member)
            self._of_op[member] = number
            return
        own = self._about(member)
        known = [*member.around, own] if own[1] != "scope" or not member.around else [*member.around]
        title, (_, kind, about) = " \u203a ".join(dict.fromkeys(title for title, _, _ in known)), known[-1]
        if kind == "layer" and self._in_gradient(number):
            title = f"gradient of {title}"
        self._fill(self._new(number, Group(title, kind, about)), member)

    def _in_gradient(self, number: int) -> bool:
        while number > ROOT and self._groups[number].kind != "gradient":
            number = self._groups[number].outer
        return number > ROOT

    def _told(self, tree: _Tree) -> list[tuple[str, str, str]]:
        """What a dissolved folder is, if it is more than a name scope."""
        about = self._about(tree)
        return [about] if about[1] != "scope" else []

    def _new(self, outer: int, group: Group) -> int:
        number = len(self._groups)
        group.outer = outer
        self._groups.append(group)
        self._groups[outer].groups.append(number)
        return number

    def _about(self, tree: _Tree) -> tuple[str, str, str]:
        """Title, kind and class of a folder."""
        if tree.name in _TAPES:
            return GRADIENT, "gradient", ""
        if _PARTS.fullmatch(tree.name):
            return f"{_NUMBER.sub('', tree.path.split('/')[-2:][0])} {tree.name}", "loop", ""
        plain = _NUMBER.sub("", tree.name)
        for name in (tree.name, plain):
            if name in self._layers:
                return name, "layer", self._layers[name]
        row = self._index.node_of(tree.path)
        table = self._index.table
        here = row != NOT_FOUND and table.name_of(row).rpartition("/")[2] == tree.name  # else that of a name around it
        if here and table.type_of(row) in CALLING:
            return self._called(row, tree.name)
        return tree.name, "scope", ""

    def _called(self, row: int, name: str) -> tuple[str, str, str]:
        inner = [(attribute, self._index.graphs[graph].name) for attribute, graph in self._index.called_by(row)]
        if any(attribute == "body" for attribute, _ in inner):
            return name, "loop", ""
        function = inner[0][1] if inner else name
        match = _INNER.match(function)
        if not match:
            return function, "function", ""
        return (f"gradient of {match['name']}" if "backward" in function else match["name"]), "function", ""
