"""Whether the job died for lack of memory, of which limit, and who held the memory at the end.

Three ways: the kernel killed it for lack of memory, or may have; an exception that says so ended it; or it aborted near
its limit of address space (``std::bad_alloc``). The owner is the one that explains most of what was not there when the
process was first looked at; if none explains a third of it, the line that ran is all that is known.

Serves MEM001, MEM004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.causes.system import device_memory, memory_kill, memory_owners, step_need
from stepscope.derive.machine import memory_use
from stepscope.derive.python import variable_lines
from stepscope.model.log.memory import MemoryLacked

if TYPE_CHECKING:
    from stepscope.causes.system.device_memory import DeviceMemory
    from stepscope.causes.system.memory_kill import MemoryKill
    from stepscope.causes.system.memory_owners import MemoryOwner
    from stepscope.causes.system.step_need import StepNeed
    from stepscope.derive.machine.memory_use import Limit, MemoryUse
    from stepscope.derive.view import SessionView
    from stepscope.model.event import Frame
    from stepscope.model.session.session import Worker
    from stepscope.tables.place import Place

ABORTED = frozenset({-6, 134})
NEAR = 0.7
"""Share of the address space's limit at which an abort is one for lack of memory."""
MIN_SHARE = 0.33
"""Of the memory that came after the first look, or was asked for: what an owner must explain."""
COPY = (0.5, 2.2)
"""Of what a variable holds: so much asked for at once is another copy of it, or one of a wider type."""

Way = Literal["killed", "exception", "abort"]


class OutOfMemory(Struct, frozen=True, kw_only=True):
    """A death for lack of memory. Bytes."""

    way: Way
    error: str
    """Class of the exception."""
    worker: Worker
    use: MemoryUse
    limit: Limit | None
    own: float
    """Own memory of the process at the end."""
    asked: float
    """What was asked for at once at the end; 0: not known."""
    asked_shape: str
    where: tuple[Place, ...]
    """The line that ran at the end, after the one while which more memory came."""
    line_bytes: float
    """Own memory that looks saw coming while the first of these lines ran; 0: not known."""
    owner: MemoryOwner | None
    """Who held the memory; None: not seen."""
    others: tuple[MemoryOwner, ...]
    """Other owners, the largest first."""
    fits: int
    """Size of the owner that would have fitted, in its unit; 0: not known."""
    base: float
    """Own memory that is not the owner's."""
    copies: tuple[str, ...] = ()
    """What else has the data of the owner, in words: "tf.Variable(x) at line 39"."""
    again: float = 0.0
    """Bytes that came while the last line copied the owner."""
    on: DeviceMemory | None = None
    """The GPU whose memory was lacking. No owner is named then: what Python holds is known of the host alone."""
    kill: MemoryKill | None = None
    """What the kernel did; None: it did not kill the process."""

    @property
    def sure(self) -> bool:
        """Whether memory ended it, and nothing else can have."""
        return self.kill is None or self.kill.sure


def build(view: SessionView) -> OutOfMemory | None:
    """The death of the job's largest process for lack of memory; None if it did not die so."""
    code, kill = view.session.manifest.exit_code, view.get(memory_kill.build)
    lacked = {w.info.key: w.all(MemoryLacked)[-1] for w in view.workers if w.all(MemoryLacked)}
    uses = {w.info.key: memory_use.build(view.session, w) for w in view.workers}
    dying = [w for w in view.workers if not w.info.clean_exit or w.info.key in lacked]
    if code == 0 or not dying:
        return None
    worker = max(dying, key=lambda w: (w.info.key in lacked, uses[w.info.key].peak()))
    use, error = uses[worker.info.key], lacked.get(worker.info.key)
    if error is not None:
        way: Way = "exception"
    elif kill is not None:
        way = "killed"
    elif code in ABORTED and any(n.kind == "address space" and n.peak >= NEAR * n.bytes for n in use.limits):
        way = "abort"
    else:
        return None
    return _explained(view, worker, use, way, error, kill if way == "killed" else None)


def _explained(
    view: SessionView,
    worker: Worker,
    use: MemoryUse,
    way: Way,
    error: MemoryLacked | None,
    kill: MemoryKill | None,
) -> OutOfMemory:
    if (on := device_memory.build(view, error)) is not None:
        return _of_device(view, worker, use, error, on)
    limit = _limit(use, way)
    own = float(use.own[-1]) if len(use.own) else 0.0
    asked, shape = _asked(use, error, view.session.manifest.ended_ns or worker.info.ended_ns)
    if kill is not None and kill.sure and limit is not None and limit.kind == "control group":
        own = max(own, limit.bytes - limit.others)  # the last sample was some time before
    need = step_need.step(view, worker, step_need.running(worker))
    model = memory_owners.model_variables(view, worker)
    owners = [*memory_owners.variables(view, use), *memory_owners.inputs(view, worker)]
    owners += [one for one in (need.owner if need is not None else None, model) if one is not None]
    owners.sort(key=lambda one: -one.bytes)
    first = float(use.looks[0].own_bytes) if use.looks else 0.0
    came = max(own - first, 0.0) + (asked if way != "killed" else 0.0)
    owner = next((one for one in owners if one.bytes >= MIN_SHARE * came), None)
    owner = _of_message(error, asked, shape, owner)
    copies, again = _same(view, use, owner, owners, own)
    base = own if owner is not None and owner.kind == "asked" else max(0.0, _base(use, own, owner, need) - again)
    wanted = max(_copies(owner, asked), again) if owner is not None else 0.0
    lines = _lines(use, own)
    return OutOfMemory(
        way=way,
        error=error.error if error is not None else "",
        worker=worker,
        use=use,
        limit=limit,
        own=own,
        asked=asked,
        asked_shape=shape,
        where=_where(view, error, lines),
        line_bytes=lines[0][1] if lines else 0.0,
        owner=owner,
        others=tuple(one for one in owners if one is not owner),
        fits=fitting(owner, limit, base, wanted) if owner is not None and limit is not None else 0,
        base=base,
        copies=copies,
        again=again,
        kill=kill,
    )


def _of_device(
    view: SessionView, worker: Worker, use: MemoryUse, error: MemoryLacked | None, on: DeviceMemory
) -> OutOfMemory:
    """A death for lack of a GPU's memory."""
    return OutOfMemory(
        way="exception",
        error=error.error if error is not None else "",
        worker=worker,
        use=use,
        limit=None,
        own=float(max(0, on.held)),
        asked=float(error.asked_bytes) if error is not None else 0.0,
        asked_shape="",
        where=_where(view, error, []),
        line_bytes=0.0,
        owner=None,
        others=(),
        fits=0,
        base=0.0,
        on=on,
    )


def _of_message(error: MemoryLacked | None, asked: float, shape: str, owner: MemoryOwner | None) -> MemoryOwner | None:
    """The array that did not fit, if it is larger than what anybody holds; else the owner."""
    if error is None or not error.shape or asked <= (owner.bytes if owner is not None else 0.0):
        return owner
    count = max(1, error.shape[0])
    return memory_owners.MemoryOwner(
        kind="asked", name=shape, bytes=asked, count=count, unit="rows", per_unit=asked / count, where=()
    )


def _lines(use: MemoryUse, own: float) -> list[tuple[Frame, float]]:
    """(line, own memory that came while it ran) of the line that ran last, and before it one during which more came."""
    looks = [look for look in use.looks if look.stack]
    if not looks:
        return []
    came: dict[Frame, float] = {}
    for before, look in zip([None, *looks], looks, strict=False):
        line = look.stack[-1]
        if before is not None and before.stack[-1] == line:
            start = before.own_bytes
        else:
            start = look.before_bytes or look.own_bytes
        came[line] = came.get(line, 0.0) + look.own_bytes - start
    last = looks[-1].stack[-1]
    came[last] += own - looks[-1].own_bytes
    most = max(came, key=lambda line: came[line])
    return [(line, max(0.0, came[line])) for line in dict.fromkeys((most, last))]


def _same(
    view: SessionView, use: MemoryUse, owner: MemoryOwner | None, owners: list[MemoryOwner], own: float
) -> tuple[tuple[str, ...], float]:
    """(what else has the data of a variable, bytes that came while the last line copied it).

    Another variable has them if it has the same type and shape and its line makes a tensor or an array of the first;
    the last line, if it does so and at least half as much memory came while it ran.
    """
    source = view.source_of(owner.file) if owner is not None and owner.kind == "variable" else None
    if owner is None or source is None:
        return (), 0.0
    names, said = {owner.name.rpartition(".")[2]}, []
    for one in owners:
        place = next(iter(one.where), None)
        if one.kind != "variable" or one.what != owner.what or one.file != owner.file or one is owner or place is None:
            continue
        if (made := variable_lines.copy_at(source, place.line, names)) and one.name not in names:
            names.add(one.name)
            said.append(f"{one.name} = {made} at line {place.line}")
    lines = _lines(use, own)
    file, _, line = lines[-1][0] if lines else ("", "", 0)
    came = lines[-1][1] if lines else 0.0
    made = variable_lines.copy_at(source, line, names) if file == owner.file else ""
    if not made or came < COPY[0] * owner.bytes:
        return tuple(said), 0.0
    return (*said, f"{made} at line {line}"), came


def _copies(owner: MemoryOwner, asked: float) -> float:
    """Bytes of further copies of a variable's value that the program makes."""
    if owner.kind not in ("variable", "container"):
        return 0.0
    low, high = COPY
    again = asked if low * owner.bytes <= asked <= high * owner.bytes else 0.0
    return max(again, owner.bytes if owner.copied else 0.0)


def _limit(use: MemoryUse, way: Way) -> Limit | None:
    """The limit that it died of: one of the address space does not kill, one of resident memory does not raise."""
    if way != "killed":
        spaces = [n for n in use.limits if n.kind == "address space"]
        return next(iter([*spaces, *use.limits]), None)
    return memory_kill.limit_of(use)


def _asked(use: MemoryUse, error: MemoryLacked | None, ended_ns: int) -> tuple[float, str]:
    """(bytes asked for at once at the end, their type and shape)."""
    if error is not None and (error.asked_bytes or error.shape):
        shape = f"{error.dtype}[{','.join(map(str, error.shape))}]" if error.shape else ""
        bytes_ = float(error.asked_bytes)
        if not bytes_:
            bytes_ = 4.0
            for size in error.shape:
                bytes_ *= size
        return bytes_, shape
    return memory_kill.asked_at_once(use, ended_ns), ""


def _base(use: MemoryUse, own: float, owner: MemoryOwner | None, need: StepNeed | None) -> float:
    """Own memory that the owner does not explain."""
    if owner is None:
        return own
    if owner.kind == "step" and need is not None:
        before = use.before(need.traced_ns)
        return before if before is not None else float(use.own[0]) if len(use.own) else 0.0
    return max(0.0, own - owner.bytes)


def fitting(owner: MemoryOwner, limit: Limit, base: float, copies: float = 0.0) -> int:
    """Largest number of the owner's units within a limit, all other memory staying as it is; 0: none, or not known.

    ``copies``: bytes of further copies of the owner that the program made at its end.
    """
    each = owner.per_unit * (1.0 + copies / owner.bytes if owner.bytes else 1.0)
    if each <= 0:
        return 0
    room = memory_owners.USABLE[limit.kind] * limit.bytes - limit.others - base - owner.fixed
    return max(0, int(room / each))


def _where(view: SessionView, error: MemoryLacked | None, lines: list[tuple[Frame, float]]) -> tuple[Place, ...]:
    if error is not None and error.file:
        return (view.place(error.file, error.line, function=error.function),)
    return tuple(view.place(file, line, function=function) for (file, function, line), _ in lines)
