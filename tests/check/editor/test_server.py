"""The language server, spoken to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from tests.check.fixing.programs import CALL, PIPELINE

from stepscope.check.fixing.edits import Edit, ParserLines, apply
from stepscope.model.session.session import Manifest

TIMEOUT_S = 60


class Editor:
    """A client with one document, and what the server told it."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.logged: asyncio.Queue[str] = asyncio.Queue()
        self.version = 1

    def open(self, text: str) -> None:
        """Show the document."""
        item = lsp.TextDocumentItem(uri=self.uri, language_id="python", version=self.version, text=text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))

    def change(self, text: str) -> None:
        """Type."""
        self.version += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(uri=self.uri, version=self.version),
                content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """The next diagnostics, which must be those of the newest text."""
        told = await asyncio.wait_for(self.told.get(), TIMEOUT_S)
        assert told.uri == self.uri
        assert told.version in (None, self.version)
        return list(told.diagnostics)

    async def actions(self, line: int, only: list[lsp.CodeActionKind | str] | None = None) -> list[lsp.CodeAction]:
        """What can be done on a line, from 0."""
        found = await asyncio.wait_for(
            self.client.text_document_code_action_async(
                lsp.CodeActionParams(
                    text_document=lsp.TextDocumentIdentifier(uri=self.uri),
                    range=lsp.Range(start=lsp.Position(line, 0), end=lsp.Position(line, 0)),
                    context=lsp.CodeActionContext(diagnostics=[], only=only),
                )
            ),
            TIMEOUT_S,
        )
        return [action for action in found or [] if isinstance(action, lsp.CodeAction)]

    def done(self, text: str, action: lsp.CodeAction) -> str:
        """The text after an action, edited as an editor does it: places in UTF-16."""
        assert action.edit is not None
        assert action.edit.changes is not None
        edits = [
            Edit(at(text, e.range.start), at(text, e.range.end), e.new_text) for e in action.edit.changes[self.uri]
        ]
        return apply(text, edits)


def at(text: str, position: lsp.Position) -> int:
    """The offset of a place that counts in UTF-16."""
    begin = ParserLines(text).offset(position.line + 1, 1)
    line = text[begin : ParserLines(text).after(begin)]
    return begin + len(line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le"))


@asynccontextmanager
async def editor(path: Path, text: str, uri: str) -> AsyncIterator[Editor]:
    """An editor with a server of its own that shows a text, ended in order."""
    client = LanguageClient("test", "1")
    one = Editor(client, uri)

    stop: Callable[[], Awaitable[None]] = client.stop

    def told(params: lsp.PublishDiagnosticsParams) -> None:
        one.told.put_nowait(params)

    def logged(params: lsp.LogMessageParams) -> None:
        one.logged.put_nowait(params.message)

    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(told)
    client.feature(lsp.WINDOW_LOG_MESSAGE)(logged)
    await client.start_io(sys.executable, "-m", "stepscope", "lsp", cwd=path.parent)
    try:
        root = path.parent.as_uri()
        await asyncio.wait_for(
            client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=root)),
            TIMEOUT_S,
        )
        client.initialized(lsp.InitializedParams())
        one.open(text)
        yield one
    finally:
        await asyncio.wait_for(client.shutdown_async(None), TIMEOUT_S)
        client.exit(None)
        await asyncio.wait_for(stop(), TIMEOUT_S)


def talk(path: Path, text: str, what: Callable[[Editor], Awaitable[None]], uri: str = "") -> None:
    """Have a conversation with a server, about a file by its own URI or another spelling."""

    async def conversation() -> None:
        async with editor(path, text, uri or path.as_uri()) as one:
            await what(one)

    asyncio.run(conversation())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in a project that pins its TensorFlow, in a folder whose name URIs cannot hold as it is."""
    folder = tmp_path / "mein projekt é#1"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.stepscope.check]\ntarget-version = "2.21"\n')
    path = folder / "train.py"
    path.write_text("pass\n")
    return path


WIDE = PIPELINE.replace("ds = ", "ds, 𝕫 = None, '𝕫'; ds = ")
"""Letters that take two units of UTF-16 before what is found."""


def test_round_trip(path: Path) -> None:
    """Diagnostics on opening, quick fixes whose edits make the text that --fix makes, none left after them."""

    async def what(one: Editor) -> None:
        found = await one.diagnostics()
        assert [(d.code, d.source, d.severity) for d in found] == [("TFD001", "stepscope", 2)] * 2
        line = WIDE.splitlines()[5]
        start = found[0].range.start
        assert line.encode("utf-16-le")[2 * start.character :].decode("utf-16-le").startswith("map(augment)")
        assert "map runs augment" in found[0].message
        offered = await one.actions(5)
        assert [(a.is_preferred, a.title.startswith("stepscope: Add num_parallel_calls")) for a in offered] == [
            (None, True), (True, True), (None, False), (None, False)
        ]  # fmt: skip
        assert "review: Elements keep their order" in offered[0].title
        assert (offered[1].diagnostics or [])[0].range == found[1].range
        text = one.done(WIDE, offered[1])
        assert text == WIDE.replace("from_tensors)", f"from_tensors, {CALL})")
        one.change(text)
        (left,) = await one.diagnostics()
        assert "map runs augment" in left.message
        assert await one.actions(0) == []

    talk(path, WIDE, what)


def test_silence(path: Path) -> None:
    """A line can be silenced, by a comment that the checker takes and adds to."""

    async def what(one: Editor) -> None:
        await one.diagnostics()
        ignore = [a for a in await one.actions(5) if "ignore" in a.title]
        text = one.done(PIPELINE, ignore[0])
        assert text.splitlines()[5].endswith("  # stepscope: ignore[TFD001]")
        one.change(text)
        assert await one.diagnostics() == []

    talk(path, PIPELINE, what)


def test_fix_all(path: Path) -> None:
    """The action for all safe fixes comes when it is asked for, and does not do unsafe ones."""

    async def what(one: Editor) -> None:
        await one.diagnostics()
        assert not [a for a in await one.actions(5) if "all safe" in a.title]
        (every,) = await one.actions(0, only=["source.fixAll"])
        assert every.kind == "source.fixAll.stepscope"
        assert one.done(PIPELINE, every) == PIPELINE.replace("from_tensors)", f"from_tensors, {CALL})")

    talk(path, PIPELINE, what)


def test_other_open_files(path: Path) -> None:
    """What another open file holds counts, saved or not; what is on disk does not."""
    path.with_name("helper.py").write_text("import numpy as tf\n")
    text = "from helper import tf\nds = tf.data.Dataset.list_files('*').interleave(tf.data.Dataset.range)\n"

    async def what(one: Editor) -> None:
        assert await one.diagnostics() == []
        other = path.with_name("helper.py").as_uri()
        item = lsp.TextDocumentItem(uri=other, language_id="python", version=1, text="import tensorflow as tf\n")
        one.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
        while (await asyncio.wait_for(one.told.get(), TIMEOUT_S)).uri != other:
            pass
        one.client.text_document_did_save(
            lsp.DidSaveTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=other))
        )
        while True:
            told = await asyncio.wait_for(one.told.get(), TIMEOUT_S)
            if told.uri == one.uri:
                assert [d.code for d in told.diagnostics] == ["TFD001"]
                return

    talk(path, text, what)


@pytest.mark.parametrize(
    "uri",
    [
        "{folder}/train.py",
        "{folder}/c%3Ax/new%20one.py",
        "{raw}/train.py",
        "file:///c%3A/Users/a%20b/train.py",
        "file:///c:/Users/a%20b/train.py",
        "file://server/share/a%20b.py",
        "untitled:Untitled-1",
        "untitled:/nowhere/a%20b.py",
    ],
)
def test_documents_are_known_by_the_uri_that_the_editor_spells(path: Path, uri: str) -> None:
    """Encoded letters, drives, other machines, buffers never saved: diagnostics, actions, changes, saving, closing."""
    raw = f"file://{path.parent.as_posix()}".replace("#", "%23")
    uri = uri.format(folder=path.parent.as_uri(), raw=raw)

    async def what(one: Editor) -> None:
        assert [d.code for d in await one.diagnostics()] == ["TFD001", "TFD001"]
        safe = [a for a in await one.actions(5) if a.is_preferred]
        text = one.done(PIPELINE, safe[0])
        one.change(text)
        assert [d.code for d in await one.diagnostics()] == ["TFD001"]
        where = lsp.TextDocumentIdentifier(uri=one.uri)
        one.client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=where))
        assert [d.code for d in await one.diagnostics()] == ["TFD001"]
        one.client.text_document_did_close(lsp.DidCloseTextDocumentParams(text_document=where))
        assert await one.diagnostics() == []

    talk(path, PIPELINE, what, uri)


def test_sources_in_a_session_are_left_alone(path: Path) -> None:
    """Why nothing is said of them is logged, once; other documents are checked as ever."""
    kept = path.parent / "run" / "captures" / "train.py"
    kept.parent.mkdir(parents=True)
    (path.parent / "run" / "manifest.json").write_bytes(msgspec.json.encode(Manifest(stepscope_version="1")))
    kept.write_text(PIPELINE)

    async def what(one: Editor) -> None:
        assert "run, which is a session" in await asyncio.wait_for(one.logged.get(), TIMEOUT_S)
        one.uri = path.as_uri()
        one.open(PIPELINE)
        assert len(await one.diagnostics()) == len(("interleave", "map"))
        assert one.logged.empty()

    talk(path, PIPELINE, what, kept.as_uri())


def test_broken_and_closed(path: Path) -> None:
    """Text that does not parse has no diagnostics and no actions; closing takes what was told back."""

    async def what(one: Editor) -> None:
        assert len(await one.diagnostics()) == 2
        one.change("def f(:\n")
        assert await one.diagnostics() == []
        assert await one.actions(0) == []
        one.change(PIPELINE)
        assert len(await one.diagnostics()) == 2
        closed = lsp.DidCloseTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=one.uri))
        one.client.text_document_did_close(closed)
        assert await one.diagnostics() == []

    talk(path, PIPELINE, what)


def test_hover(path: Path) -> None:
    """On what is found the rule's page is shown, elsewhere nothing."""

    async def what(one: Editor) -> None:
        found = await one.diagnostics()
        where = lsp.TextDocumentIdentifier(uri=one.uri)
        there = lsp.HoverParams(text_document=where, position=found[0].range.start)
        shown = await asyncio.wait_for(one.client.text_document_hover_async(there), TIMEOUT_S)
        assert shown is not None
        assert isinstance(shown.contents, lsp.MarkupContent)
        assert "## Why it is slow" in shown.contents.value
        away = lsp.HoverParams(text_document=where, position=lsp.Position(0, 0))
        assert await asyncio.wait_for(one.client.text_document_hover_async(away), TIMEOUT_S) is None

    talk(path, PIPELINE, what)


def test_without_the_extra(tmp_path: Path) -> None:
    """Without pygls the command says what to install."""
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('no pygls', name='pygls')\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", "lsp"],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 64
    assert "pip install pygls" in done.stderr
