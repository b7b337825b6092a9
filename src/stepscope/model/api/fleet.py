"""Answers about a fleet: public API, schema ``stepscope.fleet/1`` (additions only).

``docs/schemas/fleet-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from stepscope.tables.structs import Struct

SCHEMA = "stepscope.fleet/1"

GroupBy = Literal["line", "finding", "user", "team", "project", "model", "host", "version"]
ChangesBy = Literal["function", "line", "op", "finding", "job", "host"]
"""host: not over time, but each host against all others."""
ChangeOf = Literal["step", "cpu", "function", "line", "op", "finding"]
"""step: wall time of a step; cpu: CPU time of a step, of the whole job; the others: what is followed in it."""
ChangeKind = Literal["rose", "fell", "moved", "went-away"]
"""moved: what one place cost less another cost more at the same time, with the sum unchanged. went-away: as before."""
HostResource = Literal["cpu", "wait", ""]
"""What makes a step longer: cpu: more CPU time; wait: for a CPU, input or a network; "": not known."""
Measure = Literal["wall", "cpu", "threads", "ops", "saved"]
"""Time that is compared: wall time; CPU time; of sampled threads; of ops; wall time that a remedy would save."""
SortBy = Literal["wall", "cpu", "device", "money", "thread"]


class PartsRead(Struct, frozen=True, kw_only=True):
    """What an answer rests on."""

    sessions: int
    """Sessions whose part was read, before filters."""
    others: int = 0
    """Further parts of the same sessions, which were not read."""
    newer: int = 0
    """Parts of a later version of the format, of which the columns known here were read."""
    damaged: tuple[str, ...] = ()
    """Names of parts that are not what was sent, and are left out."""


class FleetJob(Struct, frozen=True, kw_only=True):
    """A session. Hours are of its whole run."""

    session: str
    started: str
    """Day (UTC), YYYY-MM-DD."""
    user: str
    team: str
    project: str
    program: str
    model: str
    host: str
    device: str
    commit: str
    end: str
    """As ``session.end`` of the report."""
    restarts: str
    """Session that it is the next attempt of; "" if none is known."""
    exit_code: int | None
    steps: int | None
    step_ns: int | None
    samples_per_s: float | None
    overhead_ratio: float | None
    """Cost of measuring, as a share of the step."""
    wall_hours: float
    cpu_hours: float | None
    device_hours: float
    """Wall time times GPUs: how long they were held."""
    lost_hours: float
    """Wall time that the findings' remedies would save together, each counted on top of those before it."""
    money: float | None = None


class FleetCost(Struct, frozen=True, kw_only=True):
    """What a line, a finding or a group of jobs costs over all of them."""

    name: str
    """The finding's code, the group, or the package; "" for a line."""
    words: str = ""
    """The finding's name, or the package's version."""
    project: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    jobs: int
    """Number of sessions that have it."""
    users: int | None = None
    failed: int | None = None
    """Number of sessions that did not end with code 0."""
    wall_hours: float
    wall_low: float | None = None
    """Wall time if every cost were at the lower end of its interval."""
    wall_high: float | None = None
    thread_hours: float | None = None
    """Time of all threads at the line, with that of the functions that it calls."""
    self_hours: float | None = None
    """Time of all threads at the line itself."""
    cpu_hours: float | None = None
    device_hours: float
    lost_hours: float | None = None
    """As of ``FleetJob``."""
    money: float | None = None


class FleetChange(Struct, frozen=True, kw_only=True):
    """A change of what something costs a step, beyond chance. Of a job without steps a run counts as one."""

    kind: ChangeKind
    of: ChangeOf
    project: str
    program: str
    model: str = ""
    device: str = ""
    name: str = ""
    """The finding's code, or the op's type."""
    words: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    measure: Measure
    started_unix_s: int
    """When the first session after the change began."""
    day: str
    session: str
    """That session."""
    commit_before: str = ""
    commit_after: str = ""
    other_hosts: bool = False
    """Flag: most sessions after it ran on hosts that none before it had."""
    sessions_before: int
    sessions_after: int
    before_ns: float
    """Mean a step before."""
    after_ns: float
    ratio: float | None
    """``after_ns / before_ns``; null: nothing before."""
    low: float | None
    """Lower end of its 99 % interval."""
    high: float | None
    before_ratio: float | None = None
    """Share of the job's time of this measure; null: of the job itself."""
    after_ratio: float | None = None
    hours: float
    """What it cost more in the sessions after it; below 0: less."""
    chance: float
    """At most the probability that sessions without a change show one as clear as this."""
    smallest_ratio: float | None
    """The change, as a share of the mean, that would have been seen here in nine of ten cases."""
    ended_unix_s: int | None = None
    """went-away: when the first session began that cost as much as before."""
    to: str = ""
    """moved: the place that costs it now."""
    also: tuple[str, ...] = ()
    """Further places that changed by as much at the same time: callers, as a rule."""


class FleetFollowed(Struct, frozen=True, kw_only=True):
    """A job that was followed, and what would have been seen in it."""

    project: str
    program: str
    model: str = ""
    device: str = ""
    sessions: int
    """Sessions in the order of time."""
    new: int
    """Those of the asked days; all if no day was asked."""
    tests: int
    """What was compared: places, and the job itself. 0: too few sessions, or nothing is known of them."""
    measure: Measure | None = None
    step_smallest: float | None = None
    """Change of a step's wall time that would have been seen in nine of ten cases, as a share of it."""
    cpu_smallest: float | None = None
    """The same of the CPU time of a step."""
    large_smallest: float | None = None
    """The median over places with 10 % of the job's time or more."""
    middle_smallest: float | None = None
    """Over places with 1 to 10 %."""
    small_smallest: float | None = None
    """Over places with less."""
    of_runs: int = 0
    """Changes a step that are not claimed: sessions had another number of steps, and cost a run as much as before."""


class FleetSlowHost(Struct, frozen=True, kw_only=True):
    """A host on which a step of a job takes longer than on all other hosts, beyond chance."""

    host: str
    project: str
    program: str
    model: str = ""
    device: str = ""
    sessions: int
    other_sessions: int
    step_ns: float
    """Mean step there."""
    other_step_ns: float
    ratio: float
    low: float
    """Lower end of its 99 % interval."""
    high: float
    cpu_ratio: float | None
    """CPU time of a step there, over that elsewhere."""
    resource: HostResource
    chance: float
    """The probability that equal hosts differ by as much."""


class FleetGoodput(Struct, frozen=True, kw_only=True):
    """What the time went into that a job held devices, over all its attempts. Hours are of devices; of hosts where none
    were held. All but ``held_hours`` add up to it.
    """

    session: str = ""
    """The first attempt; "": all jobs together."""
    user: str = ""
    project: str = ""
    program: str = ""
    host: str = ""
    started: str = ""
    """Day (UTC) of the first attempt."""
    devices: int = 0
    attempts: int
    failed: int
    """Attempts that failed."""
    loss_unknown: int
    """Those of them whose saves are not known: what they lost counts as steps."""
    held_hours: float
    steps_hours: float
    """Goodput: steps that were not lost, without their input wait."""
    start_hours: float
    """Until the steps of the first attempt: imports, building, tracing, the first steps."""
    restarts_hours: float
    """The same of later attempts."""
    input_hours: float
    """Steps waited for input."""
    saving_hours: float
    evaluation_hours: float
    lost_hours: float
    """Done by attempts that failed, since their last save."""
    other_hours: float
    """Between and after the steps, and what no record covers."""


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """The answer to ``fleet jobs``, ``fleet top``, ``fleet changes`` or ``fleet goodput``."""

    schema: str = SCHEMA
    question: Literal["jobs", "top", "changes", "goodput"]
    by: GroupBy | ChangesBy | None = None
    sort: SortBy
    filters: dict[str, str] = field(default_factory=dict)
    parts: PartsRead
    currency: str = ""
    """Currency of ``money``; "": no prices were given."""
    jobs: tuple[FleetJob, ...] = ()
    costs: tuple[FleetCost, ...] = ()
    since: str = ""
    """changes: the day from which on changes are looked for; "": all."""
    level: float | None = None
    """changes: the share of wrong claims among all, on average at most."""
    changes: tuple[FleetChange, ...] = ()
    followed: tuple[FleetFollowed, ...] = ()
    slow_hosts: tuple[FleetSlowHost, ...] = ()
    """changes by host: the slowest first."""
    compared_hosts: int = 0
    """changes by host: pairs of a job and a host that were compared."""
    goodput: tuple[FleetGoodput, ...] = ()
    """goodput: all jobs together, then each."""
