"""Operations behind single pages: stacks, code, memory, and the comparison of two sessions."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.model.api.browsing import CodeFileList, Comparison, InputShown, MemoryList, StackTree
from stepscope.server import browse_pages, browse_sections
from stepscope.tables.errors import StepscopeError
from stepscope.use_cases import flame
from stepscope.web.operation import Answer, Hub, Operation, ValidRequest, struct
from stepscope.web.parameters import Choice, Text
from stepscope.web.problems import RefusedRequest
from stepscope.web.session_operations import EVENT, FLAMES, WINDOW, alone, entry_of, resource, status_of, window_of

if TYPE_CHECKING:
    from stepscope.server.open_sessions import OpenSession
    from stepscope.server.session_catalogue import ListedSession
    from stepscope.web.parameters import Arguments

KEY = "[0-9a-f]{16}"
BEFORE = Text(name="before", about="Key of a session.", pattern=KEY)
AFTER = Text(name="after", about="Key of the session to compare with.", pattern=KEY)
DRAWN = ("html", "svg")
BY = Choice(
    name="by",
    about="thread: stacks stand below their threads, and end in [waits] where a thread was on no CPU.",
    default="",
    words=("", "thread"),
)


def _stacks(opened: OpenSession, _: ListedSession, arguments: Arguments) -> StackTree:
    by_thread = arguments.text("by") == "thread"
    return browse_pages.stacks(opened, arguments.text("event"), window_of(arguments), threads=by_thread)


def _both(hub: Hub, call: ValidRequest, kind: str) -> Answer:
    """Answer a query on two sessions, unless the client already has the answer."""
    arguments = call.arguments
    entries = [entry_of(hub, arguments.text(name)) for name in ("before", "after")]
    briefs = hub.catalogue.brief(entries[0]), hub.catalogue.brief(entries[1])
    event = arguments.text("event")
    try:
        before, after = map(hub.open_sessions.open, entries)
        said = msgspec.json.encode([kind, before.revision, after.revision, event, briefs])
        tag = f'W/"{hashlib.sha256(said).hexdigest()[:20]}"'
        call.pass_unless_new(tag)
        with ExitStack() as held:
            for opened in sorted({before, after}, key=lambda o: o.path):
                held.enter_context(opened.locked())
            if kind == "numbers":
                return struct(browse_pages.comparison(before, after, briefs, event), call, tag=tag)
            name, media = FLAMES[kind]
            answer = alone(flame.encode(browse_pages.compared(before, after, event), Path(name)), media)
    except StepscopeError as error:
        raise RefusedRequest(status_of(error), str(error)) from error
    answer.headers["ETag"] = tag
    return answer


PAGES = (
    resource("stacks", "The stacks of one event, as a tree.", _stacks, StackTree, EVENT, WINDOW, BY),
    resource("files", "The user's files, with the cost of their lines and the findings on them.",
             lambda opened, _, __: browse_pages.files(opened), CodeFileList),
    resource("sections", "The report's sections, as blocks that Markdown and the offline page are written from.",
             lambda opened, entry, __: browse_sections.sections(opened, running=entry.job is not None),
             browse_sections.SectionList),
    resource("input", "The input pipeline as it ran, what it could reach, and the findings about it.",
             lambda opened, _, __: browse_pages.input_shown(opened), InputShown),
    resource("memory", "Address spaces of the processes with memory snapshots.",
             lambda opened, _, __: browse_pages.memory(opened), MemoryList),
    Operation(
        name="compare", path="/compare", answer=Comparison, parameters=(BEFORE, AFTER, EVENT), refusals=(404, 409, 422),
        serve=lambda hub, call: _both(hub, call, "numbers"), lane="heavy",
        about="Two sessions, and the differences in their stacks beyond noise.",
    ),
    Operation(
        name="compareFlame", path="/compare/flame", refusals=(404, 409, 422), lane="heavy",
        parameters=(BEFORE, AFTER, EVENT, Choice(name="format", about="Output format.", default="html", words=DRAWN)),
        serve=lambda hub, call: _both(hub, call, call.arguments.text("format")),
        media=tuple(FLAMES[name][1] for name in DRAWN),
        about="The stacks of one event of two sessions on one tree, coloured by differences beyond noise.",
    ),
)  # fmt: skip
