"""A file as libcst sees it, with nodes found by the spans that rules report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from stepscope.check.fixing.edits import CannotFixError, Edit, ParserLines, replacement
from stepscope.check.hits import Span

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_Node = TypeVar("_Node", bound=cst.CSTNode)


class Tree:
    """A parsed text.

    Args:
        text: the file's text, with its original line endings.

    Raises:
        CannotFixError: libcst does not parse it, or does not reproduce it exactly.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = ParserLines(text)
        try:
            self.module = cst.parse_module(text)
        except (cst.ParserSyntaxError, RecursionError, UnicodeError) as error:
            raise CannotFixError(f"libcst cannot parse the file ({type(error).__name__})") from error
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self._ranges: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        if self.module.code != text:
            raise CannotFixError("libcst does not reproduce this file")
        self._at: dict[tuple[int, int], list[cst.CSTNode]] = {}
        self._statements: dict[int, Statement] = {}
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._index(self.module)

    def _index(self, root: cst.CSTNode) -> None:
        todo = [root]
        while todo:
            node = todo.pop()
            if node in self._ranges:
                start, end = self.range(node)
                if isinstance(node, Statement):
                    self._statements.setdefault(start, node)
                elif isinstance(node, cst.BaseExpression):
                    self._at.setdefault((start, end), []).append(node)
                    if node.lpar:
                        self._at.setdefault(self.whole(node), []).append(node)
            for child in reversed(node.children):
                self._parents[child] = node
                todo.append(child)

    # ---- places ----------------------------------------------------------------------------------------------------

    def range(self, node: cst.CSTNode) -> tuple[int, int]:
        """The range of a node in the text, without parentheses around it."""
        found = self._ranges[node]
        return (
            self.lines.offset(found.start.line, found.start.column + 1),
            self.lines.offset(found.end.line, found.end.column + 1),
        )

    def whole(self, node: cst.BaseExpression) -> tuple[int, int]:
        """The range of an expression, including parentheses around it."""
        if not node.lpar:
            return self.range(node)
        return self.range(node.lpar[0])[0], self.range(node.rpar[-1])[1]

    def source(self, node: cst.BaseExpression) -> str:
        """The text of an expression, including parentheses around it."""
        start, end = self.whole(node)
        return self.text[start:end]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The parent of a node."""
        return self._parents.get(node)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The ancestors of a node, innermost first."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    # ---- nodes by span ---------------------------------------------------------------------------------------------

    def expression(self, span: Span, kind: type[_Node]) -> _Node:
        """The expression of a span.

        Raises:
            CannotFixError: there is none of that kind.
        """
        for node in self._at.get(self._offsets(span), ()):
            if isinstance(node, kind):
                return node
        raise CannotFixError(f"no {kind.__name__} is at line {span.line}, column {span.column}")

    def any_expression(self, span: Span) -> cst.BaseExpression:
        """The expression of a span, of any kind.

        Raises:
            CannotFixError: there is none.
        """
        for node in self._at.get(self._offsets(span), ()):
            if isinstance(node, cst.BaseExpression):
                return node
        raise CannotFixError(f"no expression is at line {span.line}, column {span.column}")

    def statement(self, span: Span) -> Statement:
        """The statement of a span, alone on its lines.

        Raises:
            CannotFixError: none begins there, or it shares its line with others.
        """
        start = self._offsets(span)[0]
        found = self._statements.get(start)
        if found is None or (isinstance(found, cst.SimpleStatementLine) and len(found.body) != 1):
            raise CannotFixError(f"no separate statement is at line {span.line}")
        return found

    def statement_of(self, node: cst.CSTNode) -> Statement:
        """The innermost statement around a node.

        Raises:
            CannotFixError: it shares its line with the statement around it, as in ``if x: y()``.
        """
        for above in (node, *self.around(node)):
            if isinstance(above, cst.SimpleStatementSuite):
                break
            if isinstance(above, Statement):
                return above
        raise CannotFixError("its statement is not on a separate line")

    def _offsets(self, span: Span) -> tuple[int, int]:
        return self.lines.offset(span.line, span.column), self.lines.offset(span.end_line, span.end_column)

    # ---- edits -----------------------------------------------------------------------------------------------------

    def rewrite(self, start: int, end: int, new: str) -> tuple[Edit, ...]:
        """The smallest edits that turn a range into ``new``."""
        return replacement(self.text, start, end, new)

    def indentation(self, statement: Statement) -> str:
        """The blanks before a statement."""
        start = self.range(statement)[0]
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.decorators:
            start = self.range(statement.decorators[0])[0]
        return self.text[self.lines.begin(start) : start]

    def comment_at(self, offset: int) -> int:
        """The end of a comment that follows on the same line after blanks only; otherwise the offset."""
        line_end = self.line_end(offset)
        return line_end if self.text[offset:line_end].lstrip(" \t").startswith("#") else offset

    def line_end(self, offset: int) -> int:
        """The end of the line that contains an offset, before its line ending."""
        after = self.lines.after(offset)
        while after > offset and self.text[after - 1] in "\r\n":
            after -= 1
        return after
