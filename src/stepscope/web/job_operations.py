"""Operations on running jobs, from the same source as ``stepscope ps``, ``top`` and ``trace``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stepscope._version import __version__
from stepscope.launcher import jobs
from stepscope.model.api.capture_ask import DEFAULT_WAIT_S, MAX_STEPS, CaptureAsk
from stepscope.model.api.rest_api import Asked, CaptureList, Health, Job, JobPage
from stepscope.server import browse
from stepscope.server.session_catalogue import job_of
from stepscope.tables.errors import CaptureError, UsageError
from stepscope.use_cases import trace
from stepscope.web import metrics
from stepscope.web.operation import LIMIT, OFFSET, PREFIX, Answer, Hub, Operation, ValidRequest, struct
from stepscope.web.parameters import Number
from stepscope.web.problems import RefusedRequest
from stepscope.wire import commands

MAX_PID = 1 << 22
"""Source: proc(5), /proc/sys/kernel/pid_max."""
PID = Number(name="pid", about="Process ID of the job.", where="path", least=1, most=MAX_PID)


class CaptureWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `stepscope trace`."""

    kind: Literal["ops", "native", "memory", "python", "syscalls"] = "ops"
    steps: Annotated[int, Meta(ge=0, le=MAX_STEPS)] = 0
    """Number of steps; 0: ten, or one run of a session."""
    task: Annotated[str, Meta(max_length=1_000)] = ""
    """Task whose calls are the steps; "": the job's own steps."""
    every_s: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    """Interval between captures; 0: only one."""
    count: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Maximum number of captures; 0: one, or unlimited if ``every_s`` is set."""
    seconds: Annotated[float, Meta(ge=0, le=60)] = 0.0
    """Duration of a window; 0: five seconds, for memory ten."""
    ops: bool = True
    """With native stacks: also take an op trace of the same time, which shows the ops that generated code runs for."""
    keep_raw: bool = False
    wait_s: Annotated[float, Meta(ge=0, le=3_600)] = DEFAULT_WAIT_S
    """Time to wait for the steps, or the task, of a starting job."""
    when: Annotated[str, Meta(max_length=20)] = ""
    """Condition that must hold in the capture: saving, epoch-end, retrace, slow-step, or the code of a detector; "":
    none. Captures are repeated until it does, for ``wait_s`` seconds at most."""
    force: bool = False
    """Do not wait for the budget."""
    alone: bool = False
    """Of this task only, where the job has several tasks on this host."""


def job_by(pid: int) -> jobs.RunningJob:
    """The running job of a process.

    Raises:
        Refused: there is none.
    """
    found = next((job for job in jobs.running() if job.status.pid == pid), None)
    if found is None:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, f"no running job has pid {pid}; expected one of {PREFIX}/jobs")
    return found


def _health(hub: Hub, call: ValidRequest) -> Answer:
    del hub
    return struct(Health(status="ok", version=__version__, api=1), call)


def _list(hub: Hub, call: ValidRequest) -> Answer:
    found = hub.catalogue.running()
    offset, limit = call.arguments.number("offset"), call.arguments.number("limit")
    page = JobPage(
        items=browse.page(found, offset, limit),
        total=len(found),
        offset=offset,
        next_offset=browse.next_offset(len(found), offset, limit),
    )
    return struct(page, call)


def _one(hub: Hub, call: ValidRequest) -> Answer:
    del hub
    return struct(job_of(job_by(call.arguments.number("pid"))), call)


def _captures(hub: Hub, call: ValidRequest) -> Answer:
    del hub
    return struct(CaptureList(stored=(), live=job_by(call.arguments.number("pid")).status.captures), call)


def _ask(hub: Hub, call: ValidRequest) -> Answer:
    del hub
    job = job_by(call.arguments.number("pid"))
    wanted = call.body
    if not isinstance(wanted, CaptureWanted):
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "expected the options as a JSON object; {} is enough")
    try:
        trace.check_when(
            {
                "kind": wanted.kind,
                "task": wanted.task,
                "every": wanted.every_s,
                "count": wanted.count,
                "when": wanted.when,
            }
        )
    except UsageError as error:
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, str(error)) from error
    ask = CaptureAsk(id=commands.new_id(), **msgspec.structs.asdict(wanted))
    try:
        request = trace.send(job, ask)
    except CaptureError as error:
        raise RefusedRequest(HTTPStatus.CONFLICT, str(error)) from error
    return struct(Asked(request=request, pid=job.status.pid), call, status=HTTPStatus.ACCEPTED)


def _metrics(hub: Hub, call: ValidRequest) -> Answer:
    del call
    return Answer(content=metrics.exposition(hub.catalogue.running()), media=metrics.MEDIA)


JOBS = (
    Operation(
        name="health", path="/health", about="Whether the server responds, and its version.", serve=_health,
        tag="server", answer=Health,
    ),
    Operation(
        name="listJobs", path="/jobs", about="Running jobs that are being measured, oldest first.", serve=_list,
        tag="jobs", parameters=(OFFSET, LIMIT), answer=JobPage,
    ),
    Operation(
        name="getJob", path="/jobs/{pid}", about="One running job with its newest status.", serve=_one, tag="jobs",
        parameters=(PID,), answer=Job, refusals=(404,),
    ),
    Operation(
        name="listCaptures", path="/jobs/{pid}/captures", about="State of the captures requested from it.",
        serve=_captures, tag="jobs", parameters=(PID,), answer=CaptureList, refusals=(404,),
    ),
    Operation(
        name="askForCapture", path="/jobs/{pid}/captures", method="POST", serve=_ask, tag="jobs", parameters=(PID,),
        about="Request a capture of some steps, like `stepscope trace`; the job's status shows its progress.",
        body=CaptureWanted, answer=Asked, status=202, refusals=(404, 409, 413, 415),
    ),
)  # fmt: skip
METRICS = Operation(
    name="metrics", path="/metrics", about="Step rate, anatomy and captures of the running jobs, for Prometheus.",
    serve=_metrics, tag="server", media=(metrics.MEDIA,), prefix="",
)  # fmt: skip
