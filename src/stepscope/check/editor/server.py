"""The language server: diagnostics while typing, quick fixes, rule explanations on hover. Speaks LSP over stdio.

Every change is checked after a short delay, in a thread, using the editor's unsaved text; only the newest text of a
document is reported. A document is identified by the exact URI that the editor uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from stepscope._version import __version__
from stepscope.check.editor import actions
from stepscope.check.editor.check import Document, check
from stepscope.check.editor.positions import Positions
from stepscope.check.fixing.edits import Edit
from stepscope.check.hits import Span
from stepscope.check.registry import ALL
from stepscope.tables.errors import CheckError, UsageError

REST_S = 0.25
"""Delay after a change, so that checks do not run while typing."""
FIX_ALL = "source.fixAll.stepscope"
SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}


class CheckServer(LanguageServer):
    """The server and its checked documents."""

    def __init__(self) -> None:
        super().__init__("stepscope", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.shown: dict[str, None] = {}
        """URIs of the open documents, as the editor spells them; the workspace normalises the spelling."""
        self.checked: dict[str, Document] = {}
        """By URI."""
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.said: set[str] = set()
        """Errors already reported."""

    # ---- checking ----------------------------------------------------------------------------------------------

    def soon(self, uri: str, rest_s: float = 0.0) -> None:
        """Check a document after a delay; a pending check is cancelled."""
        self.forget(uri)
        self.waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri, rest_s))

    def forget(self, uri: str) -> None:
        """Cancel a pending check."""
        task = self.waiting.pop(uri, None)
        if task is not None:
            task.cancel()

    async def _check(self, uri: str, rest_s: float) -> None:
        await asyncio.sleep(rest_s)
        document = self.held(uri)
        path = self.path(document) if document is not None else None
        if document is None or path is None:
            return
        text, version = document.source, document.version
        others = {p: t for p, t in self.open_texts().items() if p != path}
        try:
            done = await asyncio.to_thread(check, path, text, version, others)
        except (CheckError, UsageError) as error:
            self._say(str(error))
            return
        now = self.held(uri)
        if now is None or now.version != version:
            return
        self.checked[uri] = done
        for note in done.notes:
            self._say(f"{note.code} {note.text}")
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=self.diagnostics(uri, done))
        )

    def held(self, uri: str) -> TextDocument | None:
        """The editor's text of a document; None if it is not open."""
        return self.workspace.get_text_document(uri) if uri in self.shown else None

    def path(self, document: TextDocument) -> str | None:
        """The path of a document, saved or not; None if it is not a Python file."""
        return path_of(document.uri, document.language_id or "", Path(self.workspace.root_path or "untitled:"))

    def open_texts(self) -> dict[str, str]:
        """Open texts by path."""
        held = [document for uri in self.shown if (document := self.held(uri)) is not None]
        return {path: document.source for document in held if (path := self.path(document)) is not None}

    def _say(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Warning, message=text))

    # ---- answers -----------------------------------------------------------------------------------------------

    def positions(self, text: str) -> Positions:
        """Positions in a text, in the negotiated units."""
        return Positions(text, str(getattr(self.workspace.position_encoding, "value", "utf-16")))

    def diagnostics(self, uri: str, document: Document) -> list[lsp.Diagnostic]:
        """The findings of a document."""
        places = self.positions(document.text)
        found = []
        for hit, finding in zip(document.hits, document.findings, strict=True):
            remedy = finding.remedies[0].text if finding.remedies else ""
            others = [span for span in hit.also if span.path == document.path]
            found.append(
                lsp.Diagnostic(
                    range=_span(places, hit.span),
                    message=f"{finding.title}\n{remedy}" if remedy else finding.title,
                    severity=SEVERITIES.get(hit.reported_severity, lsp.DiagnosticSeverity.Warning),
                    code=hit.code,
                    source="stepscope",
                    related_information=[
                        lsp.DiagnosticRelatedInformation(
                            location=lsp.Location(uri=uri, range=_span(places, span)),
                            message="the enclosing loop or function",
                        )
                        for span in others
                    ],
                )
            )
        return found

    def current(self, uri: str) -> Document | None:
        """Publish the findings of a document, if its text has not changed."""
        document, now = self.checked.get(uri), self.held(uri)
        return document if document is not None and now is not None and now.source == document.text else None

    def action(self, uri: str, document: Document, offer: actions.Offer, kind: str) -> lsp.CodeAction:
        """An offer as an LSP code action with its edits."""
        places = self.positions(document.text)
        same = (
            []
            if offer.hit is None
            else [d for d in self.diagnostics(uri, document) if d.range == _span(places, offer.hit.span)]
        )
        return lsp.CodeAction(
            title=offer.title,
            kind=kind,
            diagnostics=same or None,
            is_preferred=offer.preferred or None,
            edit=lsp.WorkspaceEdit(changes={uri: _edits(places, offer.edits)}),
        )


def serve() -> None:
    """Serve one editor over standard input and output, until it disconnects."""
    make().start_io()


async def _opened(ls: CheckServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """Handle an opened document."""
    ls.shown[params.text_document.uri] = None
    ls.soon(params.text_document.uri)


async def _changed(ls: CheckServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """Handle a changed document."""
    ls.soon(params.text_document.uri, REST_S)


async def _saved(ls: CheckServer, params: lsp.DidSaveTextDocumentParams) -> None:
    """Handle a saved document: check all open documents again, because they may depend on it."""
    del params
    for uri in ls.shown:
        ls.soon(uri)


async def _closed(ls: CheckServer, params: lsp.DidCloseTextDocumentParams) -> None:
    """Handle a closed document: clear its diagnostics."""
    uri = params.text_document.uri
    ls.forget(uri)
    ls.shown.pop(uri, None)
    ls.checked.pop(uri, None)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


async def _actions(ls: CheckServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """Code actions for some lines."""
    uri = params.text_document.uri
    document = ls.current(uri)
    if document is None:
        return []
    found = []
    if _wants(params.context.only, lsp.CodeActionKind.QuickFix.value):
        first, last = params.range.start.line + 1, params.range.end.line + 1
        offered = await asyncio.to_thread(actions.offers, document, first, last)
        found += [ls.action(uri, document, offer, lsp.CodeActionKind.QuickFix.value) for offer in offered]
    if params.context.only and _wants(params.context.only, FIX_ALL):
        others = {p: t for p, t in ls.open_texts().items() if p != document.path}
        every = await asyncio.to_thread(actions.fix_all, document, others)
        found += [ls.action(uri, document, every, FIX_ALL)] if every is not None else []
    return found


async def _hover(ls: CheckServer, params: lsp.HoverParams) -> lsp.Hover | None:
    """Hover text: the page of the rule at this position."""
    document = ls.current(params.text_document.uri)
    if document is None:
        return None
    places = ls.positions(document.text)
    at = (params.position.line, params.position.character)
    for hit in document.hits:
        place = _span(places, hit.span)
        if (place.start.line, place.start.character) <= at < (place.end.line, place.end.character):
            doc = next(rule.doc for rule in ALL if rule.code == hit.code)
            text = lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=f"**{hit.code}** {doc}")
            return lsp.Hover(contents=text, range=place)
    return None


def make() -> CheckServer:
    """The server with its handlers."""
    server = CheckServer()
    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, FIX_ALL])
    server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(_opened)
    server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(_saved)
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)(_actions)
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(_hover)
    return server


def path_of(uri: str, language: str, folder: Path) -> str | None:
    """The path of a Python file's URI, also of a buffer that was never saved; None for anything else.

    Args:
        uri: as the editor spells it: a space may stand there as ``%20`` or as it is, a drive as ``c:`` or ``c%3A``.
        language: the editor's name of the document's language.
        folder: where a buffer without a path would be saved; one that is not there for a buffer in no project.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file":
        host = parts.netloc if parts.netloc != "localhost" else ""
        path = Path(url2pathname(f"//{host}{parts.path}" if host else parts.path))
        return path.as_posix() if path.suffix == ".py" or (language == "python" and path.suffix != ".ipynb") else None
    if parts.scheme == "untitled" and language == "python":
        path = folder / unquote(parts.path)
        return (path if path.suffix == ".py" else path.with_name(f"{path.name}.py")).as_posix()
    return None


def _wants(only: Iterable[str] | None, kind: str) -> bool:
    """Whether an editor asks for a kind of action: ``source`` means ``source.fixAll.stepscope`` too."""
    asked = [str(getattr(k, "value", k)) for k in only or ()]
    return not asked or any(kind == k or kind.startswith(f"{k}.") for k in asked)


def _span(places: Positions, span: Span) -> lsp.Range:
    start, end = places.of_column(span.line, span.column), places.of_column(span.end_line, span.end_column)
    return lsp.Range(start=lsp.Position(*start), end=lsp.Position(*end))


def _edits(places: Positions, edits: Iterable[Edit]) -> list[lsp.TextEdit]:
    return [
        lsp.TextEdit(
            range=lsp.Range(start=lsp.Position(*places.of(e.start)), end=lsp.Position(*places.of(e.end))),
            new_text=e.text,
        )
        for e in edits
    ]
