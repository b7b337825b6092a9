"""`stepscope mcp`: the four tools on standard input and output, by the official SDK."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from stepscope._version import __version__
from stepscope.mcp import refusals, tools
from stepscope.tables.errors import StepscopeError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from stepscope.mcp.handles import Handles


class Tools:
    """The four tools for one client."""

    def __init__(self, *, allow_run: bool) -> None:
        """``allow_run``: whether commands may be run."""
        self._allow_run = allow_run
        self._handles: Handles | None = None
        self._requests: dict[anyio.CancelScope, anyio.Event] = {}
        """Those that are being answered, and what tells that one no longer is."""

    async def call(self, name: str, arguments: object, context: ServerRequestContext[dict[str, object]]) -> bytes:
        """The answer to a request.

        Raises:
            StepscopeError: it cannot be answered, or would run a command that may not be run.
            msgspec.ValidationError: the arguments are not as the schema says.
        """
        asked = tools.parse(name, arguments)
        if isinstance(asked, tools.Diagnose | tools.Prove) and asked.command and not self._allow_run:
            raise refusals.RefusedError(refusals.NOT_ALLOWED)
        with anyio.CancelScope() as scope:
            self._requests[scope] = anyio.Event()
            try:
                return await self._answer(asked, context)
            finally:
                self._requests.pop(scope).set()
        raise refusals.RefusedError(refusals.ENDED)

    async def end(self) -> None:
        """End all that runs for a request."""
        requests = dict(self._requests)
        for scope in requests:
            scope.cancel()
        with anyio.CancelScope(shield=True):
            for ended in requests.values():
                await ended.wait()
        if self._handles is not None:
            self._handles.close()

    async def _answer(self, asked: tools.Asked, context: ServerRequestContext[dict[str, object]]) -> bytes:
        from stepscope.mcp import answers, trials

        if self._handles is None:
            from stepscope.mcp.handles import Handles

            self._handles = Handles()
        in_thread = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)
        if isinstance(asked, tools.Check):
            return await in_thread(answers.check, asked)
        if isinstance(asked, tools.Look):
            return await in_thread(answers.look, self._handles, asked)
        if isinstance(asked, tools.Diagnose):
            if asked.command:
                return await trials.diagnose(self._handles, asked, context.session.report_progress)
            return await in_thread(answers.diagnose, self._handles, asked)
        if asked.command:
            return await trials.prove(asked, context.session.report_progress)
        return await in_thread(answers.compare, self._handles, asked)


def serve(*, allow_run: bool) -> None:
    """Serve one client until it closes standard input, or a signal comes."""
    anyio.run(_serve, Tools(allow_run=allow_run))


async def _serve(served: Tools) -> None:
    async def listed(
        context: ServerRequestContext[dict[str, object]], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[_tool(one) for one in tools.TOOLS])

    async def called(
        context: ServerRequestContext[dict[str, object]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            return _result(await served.call(params.name, params.arguments, context))
        except (StepscopeError, msgspec.ValidationError) as error:
            return _result(refusals.said(error), is_error=True)

    server = Server(
        "stepscope",
        version=__version__,
        instructions=tools.INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        group.start_soon(_until_signal, served)
        try:
            await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            await served.end()
            group.cancel_scope.cancel()


async def _until_signal(served: Tools) -> None:
    """End by a signal at once: the thread that waits for the client's next line cannot be woken."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            await served.end()
            os._exit(128 + number)


def _tool(tool: tools.ToolText) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=not tool.writes, destructive_hint=tool.writes, open_world_hint=False)
    return types.Tool(name=tool.name, description=tool.about, input_schema=tool.schema, annotations=hints)


def _result(answer: bytes, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=answer.decode())], is_error=is_error)
