"""Operations on a session's timeline: contents, tiles of marks, one span, search, statistics, evidence."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from stepscope.model.api.timeline import (
    EvidencePlace,
    SeriesRanges,
    SpanDetail,
    SpanHits,
    SpanNames,
    SpanStatistics,
    Timeline,
)
from stepscope.server.timelines import timeline_queries as queries
from stepscope.server.timelines import timeline_series, timeline_tiles
from stepscope.tables.errors import SessionError, UsageError
from stepscope.web.operation import LIMIT, OFFSET, Answer, Hub, Later, Operation, ValidRequest, struct
from stepscope.web.parameters import Number, Text
from stepscope.web.problems import RefusedRequest
from stepscope.web.session_operations import KEY, entry_of

if TYPE_CHECKING:
    import msgspec

    from stepscope.store.span_cache import MappedCache
    from stepscope.web.operation import Lane
    from stepscope.web.parameters import Arguments, Parameter

BINARY = "application/octet-stream"
FOREVER = "private, max-age=31536000, immutable"
MOST_NS = (1 << 53) - 1
"""Largest time that JavaScript numbers represent exactly: 104 days."""
BUILD = Text(name="build", about="The build named by /timeline.", pattern="[0-9a-f]{20}")
FROM = Number(name="from_ns", about="Start of the range.", default=0, most=MOST_NS)
TO = Number(name="to_ns", about="End of the range.", default=MOST_NS, most=MOST_NS)
LANE = Number(name="lane", about="Number of a lane.", most=1_000_000)
LEVEL = Number(name="level", about="A bucket is 2**level nanoseconds.", most=timeline_tiles.MAX_EXPONENT)
TILE = Number(name="tile", about="Number of the tile; each is 1024 buckets long.", most=1 << 43)

Question = Callable[["MappedCache", "Arguments"], "Answer | Later | msgspec.Struct"]


def _timeline(hub: Hub, call: ValidRequest) -> Answer:
    entry = entry_of(hub, call.arguments.text("key"))
    try:
        return struct(hub.timelines.state(entry, float(call.arguments.number("wait_s"))), call)
    except SessionError as error:
        raise RefusedRequest(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


def _of_build(question: Question) -> Callable[[Hub, ValidRequest], Answer | Later]:
    """Serve a query on one build, which never changes."""

    def serve(hub: Hub, call: ValidRequest) -> Answer | Later:
        try:
            reader = hub.timelines.reader(call.arguments.text("key"), call.arguments.text("build"))
            made = question(reader, call.arguments)
        except UsageError as error:
            raise RefusedRequest(HTTPStatus.NOT_FOUND, str(error)) from error
        if isinstance(made, Later):
            return Later(lambda: _kept(made.make()))
        return _kept(made if isinstance(made, Answer) else struct(made, call))

    return serve


def _kept(answer: Answer) -> Answer:
    answer.headers["Cache-Control"] = FOREVER
    return answer


def _tile(reader: MappedCache, arguments: Arguments) -> Answer | Later:
    numbers = (arguments.number(name) for name in ("level", "tile", "group"))
    found = timeline_tiles.find(reader, *numbers)
    if found.rows > timeline_tiles.MOST_AT_ONCE:
        return Later(lambda: _binary(found.encoded()))
    return _binary(found.encoded())


def _binary(content: bytes) -> Answer:
    return Answer(content=content, media=BINARY, headers={"Content-Encoding": "identity"})  # see docs/decisions/0025


def _curves(reader: MappedCache, arguments: Arguments) -> Answer:
    return _binary(timeline_series.curves(reader, arguments.number("level"), arguments.number("tile")))


def _resources(reader: MappedCache, arguments: Arguments) -> SeriesRanges:
    return timeline_series.ranges(reader, arguments.number("from_ns"), arguments.number("to_ns"))


def _span(reader: MappedCache, arguments: Arguments) -> SpanDetail:
    row = arguments.text("row")
    return queries.span(reader, arguments.number("lane"), int(row) if row else None, arguments.number("at_ns"))


def _search(reader: MappedCache, arguments: Arguments) -> SpanHits:
    return queries.search(reader, arguments.text("q"), arguments.number("offset"), arguments.number("limit"))


def _statistics(reader: MappedCache, arguments: Arguments) -> SpanStatistics:
    first, lanes = arguments.number("first_lane"), arguments.number("lanes")
    chosen = range(first, first + lanes) if lanes else range(reader.lanes)
    begin, end = arguments.number("from_ns"), arguments.number("to_ns")
    return queries.statistics(reader, begin, end, chosen, arguments.number("offset"), arguments.number("limit"))


def _names(reader: MappedCache, arguments: Arguments) -> SpanNames:
    return queries.names(reader, arguments.number("offset"), arguments.number("limit"))


def _evidence(reader: MappedCache, arguments: Arguments) -> EvidencePlace:
    return queries.evidence(reader, arguments.text("ref"))


def _ask(
    name: str,
    about: str,
    question: Question,
    answer: type[msgspec.Struct] | None,
    *parameters: Parameter,
    lane: Lane = "light",
) -> Operation:
    return Operation(
        name="getTimeline" + name.capitalize(),
        path="/sessions/{key}/timeline/" + name,
        about=about,
        serve=_of_build(question),
        parameters=(KEY, BUILD, *parameters),
        answer=answer,
        media=("application/json",) if answer is not None else (BINARY,),
        refusals=(404,),
        lane=lane,
    )


TIMELINE = (
    Operation(
        name="getTimeline", path="/sessions/{key}/timeline", serve=_timeline, answer=Timeline, refusals=(404, 422),
        about="Tracks and lanes, or the progress of the build, which the first request starts.",
        parameters=(
            KEY,
            Number(name="wait_s", about="Time to wait for the build to finish.", default=0, most=10),
        ),
    ),
    _ask("tile", "Marks of a group of lanes in one tile, at one level of detail.", _tile, None, LEVEL, TILE,
         Number(name="group", about="Number of the group of lanes_per_tile lanes.", most=100_000), lane="quick"),
    _ask("curves", "Resources of the machine in one tile, at one level of detail.", _curves, None,
         LEVEL, TILE),
    _ask("resources", "Minimum, mean and maximum of resources in a range.", _resources, SeriesRanges, FROM, TO),
    _ask("span", "One span, with its neighbours and links.", _span, SpanDetail, LANE,
         Number(name="at_ns", about="Select the last span that started by this time.", default=0, most=MOST_NS),
         Text(name="row", about="Select by number in the lane, instead of a time.", default="", pattern="[0-9]{0,9}")),
    _ask("search", "Spans whose names contain all words, by time.", _search, SpanHits,
         Text(name="q", about="Words to find."), OFFSET, LIMIT),
    _ask("statistics", "Names by their total time in a range.", _statistics, SpanStatistics, FROM, TO,
         Number(name="first_lane", about="The first lane.", default=0, most=1_000_000),
         Number(name="lanes", about="Number of lanes; 0: all lanes of the session.", default=0, most=1_000_000),
         OFFSET, LIMIT),
    _ask("names", "Names of spans, by the numbers used in tiles.", _names, SpanNames, OFFSET,
         Number(name="limit", about="Maximum number of items.", default=1_000, least=1, most=10_000)),
    _ask("evidence", "Location on the timeline of a reference from a finding's evidence.", _evidence, EvidencePlace,
         Text(name="ref", about="A reference from the evidence, such as name:12, step:3, capture:1, component:call; "
              "or a span of a track: span:TRACK@BEGIN+DURATION.")),
)  # fmt: skip
