"""Operations on sessions: lists, one session's resources, and what can be downloaded."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from stepscope.launcher import scratch
from stepscope.model.api.op_graph import GraphDetail, GraphHits, OpGraphView
from stepscope.model.api.rest_api import (
    CaptureList,
    Deleted,
    FindingList,
    FlameList,
    Series,
    SessionBrief,
    SessionDetail,
    SessionLabel,
    SessionPage,
    Source,
    Stages,
    Step,
    StepDetails,
    StepPage,
    TaskPage,
)
from stepscope.model.report.op_table import OpTable
from stepscope.server import browse, graph_items, op_graphs, session_deletion
from stepscope.server.session_catalogue import SORTS
from stepscope.sessions import bundle
from stepscope.tables.errors import CaptureError, DamagedError, StepscopeError, TargetError, UsageError
from stepscope.use_cases import flame
from stepscope.web import arrow
from stepscope.web.operation import (
    ARROW,
    JSON,
    LIMIT,
    OFFSET,
    PACK_FROM_BYTES,
    PACK_LEVEL,
    Answer,
    Hub,
    Operation,
    ValidRequest,
    struct,
)
from stepscope.web.parameters import Choice, Number, Text
from stepscope.web.problems import RefusedRequest

if TYPE_CHECKING:
    from stepscope.server.open_sessions import OpenSession
    from stepscope.server.session_catalogue import ListedSession
    from stepscope.web.parameters import Arguments, Parameter

KEY = Text(name="key", about="Key of the session, from the list of sessions.", where="path", pattern="[0-9a-f]{16}")
FORMAT = Choice(name="format", about="JSON, or Arrow's IPC stream.", default="json", words=("json", "arrow"))
REPORTS = {
    "json": JSON,
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "text": "text/plain; charset=utf-8",
}
FLAMES = {
    "html": ("flame.html", REPORTS["html"]),
    "svg": ("flame.svg", "image/svg+xml"),
    "folded": ("flame.folded", REPORTS["text"]),
    "speedscope": ("flame.json", JSON),
    "pprof": ("flame.pb.gz", "application/octet-stream"),
}
EVENT = Text(name="event", about="One of /flames; empty: the first available one.", default="", most=100)
WINDOW = Choice(
    name="window",
    about="Only steady steps, or the whole run; empty: steady steps if there are any.",
    default="",
    words=("", *get_args(flame.Window)),
)
TRACE = Text(name="trace", about="Name of the op trace; empty: that of the report.", default="", most=200)
STEP = Text(name="step", about="Position of the step; empty: the median one.", default="", pattern="[0-9]{0,9}")
ZIP = "application/zip"
PAGE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
)
"""Policy for standalone pages: a separate origin that this server grants nothing, in addition to the policy by hash
that the pages contain."""

Resource = Callable[["OpenSession", "ListedSession", "Arguments"], "Answer | msgspec.Struct"]


def entry_of(hub: Hub, key: str) -> ListedSession:
    """The session with a key.

    Raises:
        Refused: there is no such session.
    """
    entry = hub.catalogue.find(key)
    if entry is None:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, f"no session {key}; expected one of /api/v1/sessions")
    return entry


def _of_session(name: str, served: Resource, *, moving: bool = False) -> Callable[[Hub, ValidRequest], Answer]:
    """Serve a resource of an opened session. It is not computed if the client already has its tag, nor computed again
    for another client.

    ``moving``: it depends on more than the stored session, so its tag is computed from its content.
    """

    def serve(hub: Hub, call: ValidRequest) -> Answer:
        entry = entry_of(hub, call.arguments.text("key"))
        try:
            opened = hub.open_sessions.open(entry)
            asked = repr(sorted(call.arguments.values.items()))
            tag = hashlib.sha256(f"{name} {opened.revision}{asked}".encode()).hexdigest()[:20]
            tag = "" if moving else f'W/"{tag}"'
            if tag:
                call.pass_unless_new(tag)
            with opened.locked():
                if tag in opened.answers:
                    return _encoded(opened, tag, call)
                made = served(opened, entry, call.arguments)
                hub.catalogue.opened(entry, opened.damage)
                if tag and not isinstance(made, Answer):
                    opened.keep(tag, msgspec.json.encode(made))
                    return _encoded(opened, tag, call)
        except StepscopeError as error:
            if isinstance(error, DamagedError):
                hub.catalogue.opened(entry, str(error))
            raise RefusedRequest(status_of(error), str(error)) from error
        if isinstance(made, Answer):
            made.headers.setdefault("ETag", tag)
            return made
        return struct(made, call)

    return serve


def _encoded(opened: OpenSession, tag: str, call: ValidRequest) -> Answer:
    """The answer stored under a tag, compressed once for all clients that accept it."""
    content, headers = opened.answers[tag], {"ETag": tag}
    if call.packs and len(content) >= PACK_FROM_BYTES:
        packed = f"gzip {tag}"
        if packed not in opened.answers:
            opened.keep(packed, gzip.compress(content, PACK_LEVEL))
        content = opened.answers[packed]
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Answer(content=content, headers=headers)


def status_of(error: StepscopeError) -> HTTPStatus:
    """The refusal for an error of a use case."""
    if isinstance(error, UsageError | TargetError):
        return HTTPStatus.NOT_FOUND
    return HTTPStatus.CONFLICT if isinstance(error, CaptureError) else HTTPStatus.UNPROCESSABLE_ENTITY


def _list(hub: Hub, call: ValidRequest) -> Answer:
    arguments = call.arguments
    up = arguments.text("order") == "up"
    found = hub.catalogue.briefs(arguments.text("q"), arguments.text("state"), arguments.text("sort"), up=up)
    offset, limit = arguments.number("offset"), arguments.number("limit")
    page = SessionPage(
        items=browse.page(found, offset, limit),
        total=len(found),
        offset=offset,
        next_offset=browse.next_offset(len(found), offset, limit),
    )
    return struct(page, call)


def _label(hub: Hub, call: ValidRequest) -> Answer:
    entry = entry_of(hub, call.arguments.text("key"))
    brief = hub.catalogue.brief(entry)
    if not isinstance(call.body, SessionLabel):
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "expected the label as a JSON object")
    try:
        hub.catalogue.labels.set(brief.id or brief.key, call.body)
    except StepscopeError as error:
        raise RefusedRequest(HTTPStatus.CONFLICT, str(error)) from error
    return struct(hub.catalogue.brief(entry), call)


def _delete(hub: Hub, call: ValidRequest) -> Answer:
    entry = entry_of(hub, call.arguments.text("key"))
    try:
        session_deletion.delete(entry, hub.catalogue.brief(entry), call.arguments.text("name"))
    except StepscopeError as error:
        raise RefusedRequest(HTTPStatus.CONFLICT, str(error)) from error
    return struct(Deleted(key=entry.key), call)


def _brief(hub: Hub, call: ValidRequest) -> Answer:
    return struct(hub.catalogue.brief(entry_of(hub, call.arguments.text("key"))), call)


def _summary(hub: Hub, call: ValidRequest) -> Answer:
    entry = entry_of(hub, call.arguments.text("key"))
    brief = hub.catalogue.brief(entry)
    return _of_session("summary", lambda opened, _, __: browse.detail(opened, brief), moving=True)(hub, call)


def _steps(opened: OpenSession, _: ListedSession, arguments: Arguments) -> Answer | StepPage:
    page = browse.steps(opened, arguments.number("offset"), arguments.number("limit"))
    return arrow.rows(Step, page.items) if arguments.text("format") == "arrow" else page


def _tasks(opened: OpenSession, _: ListedSession, arguments: Arguments) -> TaskPage:
    return browse.tasks(opened, arguments.number("offset"), arguments.number("limit"))


def _resources(opened: OpenSession, _: ListedSession, arguments: Arguments) -> Answer | Series:
    found = browse.resources(opened)
    return arrow.columns(found.columns) if arguments.text("format") == "arrow" else found


def _ops(opened: OpenSession, _: ListedSession, __: Arguments) -> OpTable:
    found = browse.ops(opened)
    if found is None:
        raise UsageError(op_graphs.no_trace(opened.view))
    return found


def _graph(opened: OpenSession, _: ListedSession, arguments: Arguments) -> OpGraphView:
    return op_graphs.look(opened.view, *_step_of(arguments), arguments.text("open"))


def _graph_op(opened: OpenSession, _: ListedSession, arguments: Arguments) -> GraphDetail:
    return graph_items.detail(opened.view, *_step_of(arguments), arguments.text("which"))


def _graph_hits(opened: OpenSession, _: ListedSession, arguments: Arguments) -> GraphHits:
    return graph_items.find(opened.view, *_step_of(arguments), arguments.text("q"))


def _step_of(arguments: Arguments) -> tuple[str, int | None]:
    """The requested op trace, and step in it."""
    step = arguments.text("step")
    return arguments.text("trace"), int(step) if step else None


def _source(opened: OpenSession, _: ListedSession, arguments: Arguments) -> Source:
    return browse.source(opened, arguments.text("file"), arguments.number("first"), arguments.number("limit"))


def window_of(arguments: Arguments) -> flame.Window | None:
    """The requested part of a session; None: steady steps if there are any."""
    return next((word for word in get_args(flame.Window) if word == arguments.text("window")), None)


def _flame(opened: OpenSession, _: ListedSession, arguments: Arguments) -> Answer:
    name, media = FLAMES[arguments.text("format")]
    made = browse.flame(opened, arguments.text("event"), window_of(arguments))
    return alone(flame.encode(made, Path(name)), media)


def _report(opened: OpenSession, _: ListedSession, arguments: Arguments) -> Answer:
    form = arguments.text("format")
    return alone(browse.report(opened, form), REPORTS[form])


def alone(content: bytes, media: str) -> Answer:
    """Standalone content: a page or picture without this server's origin, or a file."""
    page = media.startswith(("text/html", "image/svg"))
    return Answer(content=content, media=media, headers={"Content-Security-Policy": PAGE_POLICY} if page else {})


def _pack(opened: OpenSession, entry: ListedSession, _: Arguments) -> Answer:
    name = browse.file_name(opened)
    if opened.path.is_file():
        return _download(opened.path, name, delete=False)
    if entry.job is not None or opened.manifest.state == "running":
        raise CaptureError("the session is still being written; it can be packed after its job has ended")
    folder = Path(tempfile.mkdtemp(prefix=scratch.prefix("pack")))
    target, _size = bundle.pack(opened.path, folder / "session.zip")
    return _download(target, f"{name}.zip", delete=True)


def _download(path: Path, name: str, *, delete: bool) -> Answer:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Answer(media=ZIP, headers=headers, file=path, delete=delete)


def resource(
    name: str,
    about: str,
    served: Resource,
    answer: type[msgspec.Struct] | None,
    *parameters: Parameter,
    media: tuple[str, ...] = (JSON,),
    moving: bool = False,
) -> Operation:
    """An operation that answers with a part of one session."""
    return Operation(
        name="get" + name.capitalize(),
        path="/sessions/{key}/" + name,
        about=about,
        serve=_of_session(name, served, moving=moving),
        parameters=(KEY, *parameters),
        answer=answer,
        media=media,
        refusals=(404, 409, 422),
        lane="heavy",
    )


SESSIONS = (
    Operation(
        name="listSessions", path="/sessions", serve=_list, answer=SessionPage,
        about="Sessions, newest first: those in the folders, and those of running jobs.",
        parameters=(
            Text(name="q", about="Words to find in name, command, framework, state or top finding.", default=""),
            Choice(name="state", about="Only those in this state.", default="",
                   words=("", "running", "finished", "recovered", "unfinished", "damaged")),
            Choice(name="sort", about="What they are sorted by; sessions without a value come last.", default="started",
                   words=tuple(SORTS)),
            Choice(name="order", about="down: the largest first.", default="down", words=("down", "up")),
            OFFSET, LIMIT,
        ),
    ),
    Operation(
        name="labelSession", path="/sessions/{key}/label", method="POST", serve=_label, body=SessionLabel,
        answer=SessionBrief, parameters=(KEY,), refusals=(404, 409, 413, 415),
        about="Keep a name, tags and a note of the session, in the folder of who runs the server.",
    ),
    Operation(
        name="deleteSession", path="/sessions/{key}", method="DELETE", serve=_delete, answer=Deleted,
        parameters=(KEY, Text(name="name", about="Name of the session, to confirm it.", most=1_000)),
        refusals=(404, 409),
        about="Delete the session for ever. Not while its job runs, and not those of other users.",
    ),
    Operation(
        name="getSession", path="/sessions/{key}", serve=_brief, answer=SessionBrief, parameters=(KEY,),
        about="One session, as in the list.", refusals=(404,),
    ),
    Operation(
        name="getSummary", path="/sessions/{key}/summary", serve=_summary, answer=SessionDetail, parameters=(KEY,),
        about="Throughput, step times, anatomy, profiling overhead, and what was checked.", refusals=(404, 422),
        lane="heavy",
    ),
    resource("findings", "Findings, the most expensive first, with their evidence.",
         lambda opened, _, __: browse.findings(opened), FindingList),
    resource("tasks", "Repeated work of the job, by total time.", _tasks, TaskPage, OFFSET, LIMIT),
    resource("steps", "Steps by time.", _steps, StepPage, OFFSET, LIMIT, FORMAT, media=(JSON, ARROW)),
    resource("step", "Why was this step slow? A step, or the slowest ones, compared with the median step.",
         lambda opened, _, arguments: browse.step(opened, arguments.text("which")), StepDetails,
         Text(name="which", about="Number of the step from 0, slowest, or slowest:COUNT.", default="slowest", most=32)),
    resource("stages", "The eight pipeline stages, and the split of the mean step.",
         lambda opened, _, __: browse.stages(opened), Stages),
    resource("resources", "CPU, memory, disks, network and GPUs on one time axis.", _resources, Series, FORMAT,
         media=(JSON, ARROW)),
    resource("series", "Every series of the report's charts.", lambda opened, _, __: browse.series(opened), Series),
    resource("ops", "Op time by layer and line, by op, by type.", _ops, OpTable),
    resource("graph", "The ops of a traced step as a graph, with its critical path.", _graph, OpGraphView, TRACE, STEP,
         Text(name="open", about="Groups to open, with commas between; empty: the usual ones; all.", default="",
              most=20_000)),
    resource("graphitem", "An op or a group of the graph, with what it takes and gives.", _graph_op, GraphDetail,
         TRACE, STEP, Text(name="which", about="Its name there, or the name and type of an op.", most=2_000)),
    resource("graphsearch", "Ops and groups of the graph whose names contain all words.", _graph_hits, GraphHits,
         TRACE, STEP, Text(name="q", about="Words to find.")),
    resource("captures", "Stored captures, and those requested from its job.",
         lambda opened, entry, _: browse.captures(opened, entry), CaptureList, moving=True),
    resource("flames", "Events whose stacks were sampled.", lambda opened, _, __: browse.flames(opened), FlameList),
    resource("flame", "The stacks of one event as a page, a picture, or a file for other tools.", _flame, None,
         EVENT, WINDOW, Choice(name="format", about="Output format.", default="html", words=tuple(FLAMES)),
         media=tuple(dict.fromkeys(media for _, media in FLAMES.values()))),
    resource("source", "Lines of the stored copy of one of the user's files.", _source, Source,
         Text(name="file", about="Name of the file, as in the places of findings.", most=1_000),
         Number(name="first", about="First line.", default=1, least=1, most=10_000_000), LIMIT),
    resource("report", "The report.", _report, None,
         Choice(name="format", about="JSON, one offline page, Markdown or text.", default="json", words=tuple(REPORTS)),
         media=tuple(REPORTS.values())),
    resource("pack", "The session as one file, which `stepscope view` opens elsewhere.", _pack, None, media=(ZIP,)),
)  # fmt: skip
