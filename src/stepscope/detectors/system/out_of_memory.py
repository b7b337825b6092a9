"""The job died for lack of memory.

## What it detects
The kernel killed the job for lack of memory, an exception for lack of memory that was not caught ended it, or it
aborted near its limit of address space. Who held the memory is concluded from what was recorded until then: the
variables of its Python, the buffers of its input, the tensors of its step by the shapes of its graph, and the variables
of its model.

## Why it matters
The work since the last checkpoint is lost, and the message, if there is one, names what was asked for last, not what
filled the memory.

## Evidence
`limit_bytes`, `own_bytes` of the process at the end, `owner_bytes`; `asked_bytes`: what was asked for at once at the
end; `size` of the owner (a batch, the entries of a list, the elements of a buffer) and `size_that_fits`: the size that
would have stayed within 97 % of the limit (90 % of one of address space), if all other memory stays as it was. For a
step it is modelled from shapes. Of a GPU (PyTorch): `limit_bytes` is the device's memory, `own_bytes` what NVML saw
the job hold at most, and `bytes_per_step` by how much that grew with each step.

## Known limits
Variables are seen that the user's running functions, their modules and objects of the user's classes lead to; of long
lists 64 entries stand for all. Memory that a library holds by itself belongs to no variable. A step's need is a model:
tensors by shape, in the order in which the graph was made, and a quarter for the work space of kernels. The last look
may have been taken some tenths of a second before the end. Which tensors hold a GPU's memory is not known.
Whom the kernel killed is in its log, which not everybody may read. Without it, a kill that the job's control group
counted just before the end was the job's if no other process there can have held more; otherwise the finding is a
question: it says "perhaps", what that rests on, and which command decides it.

## Remedy
The one for the owner: a smaller batch, narrower layers where a batch of 16 is too large already, a bound for what is
kept, each model only once, a smaller buffer, a cache before the data is made larger. Where no owner of the memory was
seen, what the source check or another finding says of the line.

## References
FSE'22 study, symptom "out of memory"; Linux: Documentation/admin-guide/cgroup-v2.rst; getrlimit(2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import out_of_memory
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.device_memory import DeviceMemory
    from stepscope.causes.system.memory_kill import MemoryKill
    from stepscope.causes.system.memory_owners import MemoryOwner
    from stepscope.causes.system.out_of_memory import OutOfMemory
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Cause, Stage


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_fixed_ratio: float = 0.5
    """Share of a step's memory that does not grow with the batch, from which the model is too large, not the batch."""
    small_batch: int = 16
    """Samples up to which a batch is small: the layers are too wide for it before it is too large."""
    perhaps: float = 0.3
    """Confidence where somebody else may have killed it."""


HOLDERS = 0.1
"""Share of the limit from which another holder is named."""
_HELD = frozenset({"variable", "container", "variables"})
"""Kinds of other holders whose lines are among the places."""
UNNAMED_BYTES = 32 << 20
"""The same where no limit is known."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    death = view.get(out_of_memory.build)
    if death is None:
        return
    owner = death.owner
    wide = owner is not None and _is_wide(owner, params)
    mine = owner.where[:: -1 if wide and owner.fixed < owner.bytes / 2 else 1] if owner is not None else ()
    further = [place for one in _holders(death) if one.kind in _HELD for place in one.where[:1]]
    where = tuple(dict.fromkeys([*mine, *death.where, *further]))
    named = 0.85 if owner is not None or death.on is not None else 0.5
    yield Seen(
        title=f"{'out of memory' if death.sure else 'killed, perhaps for lack of memory'}: {_title(death)}",
        severity="high" if death.sure else "ask",
        confidence=named if death.sure else params.perhaps,
        cause=_cause(death, params),
        introduced_stage=_stage(view, owner),
        exposed_stage="training" if view.steps is not None else "initialization",
        where=where,
        evidence=tuple(_evidence(death)),
        cost=cost_of(view, 1.0, basis="measured") if death.sure else cost_of(view, 0.0, high=1.0, basis="unknown"),
        remedies=(*(() if death.sure else (_whose(death.worker.info.pid),)), *_remedies(death, params)),
        explanation=_explanation(death),
    )


def _title(death: OutOfMemory) -> str:
    """``list history in train holds 1.5 GiB of 2.0 GiB (control group): 1,204 entries of float32[48,64,64,8]``."""
    if death.on is not None:
        return _title_of_device(death, death.on)
    return _title_of_host(death)


def _title_of_device(death: OutOfMemory, on: DeviceMemory) -> str:
    """``the job held 78.9 GiB of the 79.6 GiB of GPU:0; 512 MiB more were asked for``."""
    grew = f"; it grew by {format_bytes(on.per_step)} with each step" if on.per_step else ""
    asked = f"; {format_bytes(death.asked)} more were asked for" if death.asked else ""
    return f"the job held {format_bytes(on.held)} of the {format_bytes(on.total)} of {on.device}{asked}{grew}"


def _title_of_host(death: OutOfMemory) -> str:
    owner, limit = death.owner, death.limit
    bound = f"{format_bytes(limit.bytes)} ({limit.kind})" if limit is not None else "the memory there is"
    asked = f"{format_bytes(death.asked)} more were asked for" if death.asked else ""
    if owner is None:
        error = f" by {death.error}" if death.error else ""
        line = f"line {death.where[0].line}" if death.where else "one line"
        took = f"; {format_bytes(death.line_bytes)} of it came while {line} ran" if death.line_bytes else ""
        return f"ended{error} at {bound} with {format_bytes(death.own)} held{took}{f'; {asked}' if asked else ''}"
    holds, fits = format_bytes(owner.bytes), ""
    if death.fits and owner.count and death.fits < owner.count:
        fits = f"; {death.fits:,} would have fitted"
    of = f" of {owner.what}" if owner.what else ""
    if owner.kind == "step":
        said = f"a step with {owner.count:,} samples needs"
        if owner.whole:
            said = f"{owner.role} works on all {owner.count:,} samples in one batch, which needs"
        before = f"about {holds} beyond the {format_bytes(death.base)} held before it"
        most = f", {owner.largest}" if owner.largest else ""
        fits = fits.replace("would", "samples would") if fits else ""
        return f"{said} {before}{most}; the limit is {bound}{fits}"
    if owner.kind == "asked":
        fits = fits.replace("would", "rows would")
        own = format_bytes(death.own)
        return f"an array of {owner.name} needs {holds} beyond the {own} held; the limit is {bound}{fits}"
    if owner.kind == "variables":
        return f"the variables of the model and its optimizer take {holds} of {bound}, those of {owner.name} the most"
    if owner.kind in ("cache", "shuffle", "buffer"):
        word = {"cache": "the cache of the input", "shuffle": "the shuffle buffer"}.get(owner.kind, owner.name)
        return f"{word} holds {holds} of {bound}: {owner.count:,} elements{fits}"
    word = f"{owner.name} in {owner.function}" if owner.function not in ("", "<module>") else owner.name
    more = f"; {asked}" if asked and death.way != "killed" else ""
    more = more or ("; one array is made of them, which takes as much again" if owner.copied else "")
    if death.copies:
        again = f", {format_bytes(death.again)} more" if death.again else ""
        times = len(death.copies) + 1
        word, more = f"the same data {times} times: {word}", f", and copies: {'; '.join(death.copies)}{again}"
    return f"{word} holds {holds} of {bound}: {owner.count:,} {owner.unit}{of}{more}{fits}"


def _whose(pid: int) -> Remedy:
    text = f"ask the kernel's log whom it killed then: {pid} here, in a container another number on the host"
    return Remedy(id="ask-the-kernel", text=text, what_if="sudo dmesg -T | grep 'Killed process'")


def _killed(kill: MemoryKill | None) -> str:
    """What it rests on that the kernel killed it."""
    if kill is None or kill.by == "log":
        return "The kernel's log names the process as killed for lack of memory."
    held = f"it held {format_bytes(kill.own)}, all others at most {format_bytes(kill.others)}"
    if kill.sure:
        return (
            f"The kernel killed for lack of memory in the job's control group, and takes the largest process: {held}."
        )
    where = "in the job's control group" if kill.by == "group" else "on this host, which had hardly any left"
    also = f": {held}" if kill.own or kill.others else ""
    return (
        f"The job was killed within seconds of a kill for lack of memory {where}. "
        f"What can be read here does not say whose process that was{also}."
    )


def _explanation(death: OutOfMemory) -> str:
    said = {
        "killed": _killed(death.kill),
        "exception": f"{death.error} ended the process: an allocation did not fit.",
        "abort": "The process aborted near its limit of address space, as it does when an allocation in C++ fails.",
    }[death.way]
    if death.asked_shape:
        said += f" It asked for {death.asked_shape}."
    if death.owner is not None and death.owner.tensors:
        said += f" The largest: {'; '.join(death.owner.tensors)}."
    rest = [f"{_CALLED.get(one.kind, one.name)} {format_bytes(one.bytes)}{_at(one)}" for one in _holders(death)]
    return said + (f" Besides: {', '.join(rest)}." if rest else "")


_CALLED = {"step": "a step", "variables": "the variables of the model and its optimizer"}


def _holders(death: OutOfMemory) -> list[MemoryOwner]:
    """Other owners of a part that counts."""
    least = HOLDERS * death.limit.bytes if death.limit is not None else UNNAMED_BYTES
    return [one for one in death.others if one.bytes >= least]


def _at(owner: MemoryOwner) -> str:
    return f" ({owner.where[0].file}:{owner.where[0].line})" if owner.where else ""


def _evidence(death: OutOfMemory) -> Iterator[Evidence]:
    limit = death.on.total if death.on is not None else death.limit.bytes if death.limit is not None else 0
    if limit:
        yield Evidence(metric="limit_bytes", value=limit, unit="bytes")
    if death.on is not None:
        yield Evidence(metric="bytes_per_step", value=death.on.per_step, unit="bytes")
    yield Evidence(metric="own_bytes", value=death.own, unit="bytes")
    if death.asked:
        yield Evidence(metric="asked_bytes", value=death.asked, unit="bytes")
    if death.owner is not None:
        yield Evidence(metric="owner_bytes", value=death.owner.bytes, unit="bytes")
        if death.owner.count:
            yield Evidence(metric="size", value=death.owner.count, unit=death.owner.unit)
        if death.fits:
            yield Evidence(metric="size_that_fits", value=death.fits, unit=death.owner.unit)


def _is_wide(owner: MemoryOwner, params: Params) -> bool:
    """Whether the model of a step is too large, not its batch: for a few samples too."""
    if owner.kind != "step":
        return False
    return owner.fixed >= params.min_fixed_ratio * owner.bytes or owner.count <= params.small_batch


def _cause(death: OutOfMemory, params: Params) -> Cause:
    owner = death.owner
    if owner is None:
        on_device: Cause = "API: inefficient API usage" if grows(death) else "Model: improper hyper parameter"
        return on_device if death.on is not None else "unknown"
    if owner.kind == "step":
        if owner.whole:
            return "API: not using batch API"
        return "Model: improper model parameter" if _is_wide(owner, params) else "Model: improper hyper parameter"
    if owner.kind == "variables":
        return "Model: improper model parameter"
    if (owner.kind == "container" and not owner.copied) or death.copies:
        return "API: inefficient API usage"
    return "Data: inefficient data preprocessing" if owner.kind in ("cache", "shuffle") else "Data: improper data input"


def grows(death: OutOfMemory) -> bool:
    """Whether a GPU's memory grew with each step."""
    return death.on is not None and death.on.per_step > 0


def _stage(view: SessionView, owner: MemoryOwner | None) -> Stage:
    if owner is None:
        return "unknown"
    if owner.kind == "step":
        return "hyper parameter tuning"
    if owner.kind == "variables":
        return "model building"
    kept = owner.kind == "container" and not owner.copied and view.steps is not None
    return "training" if kept else "data preparation"


def _remedies(death: OutOfMemory, params: Params) -> tuple[Remedy, ...]:
    owner = death.owner
    if death.on is not None:
        return _KEPT if grows(death) else _TOO_LARGE
    if owner is None:
        text = "look at what the line allocates, and give it less at once"
        return (Remedy(id="look-at-line", text=text),)
    if owner.kind == "step":
        return tuple(_of_step(death, owner, params))
    fits = f"{death.fits:,}" if 0 < death.fits < owner.count else ""
    ways = [_WAYS.get(owner.kind, _IN_PARTS)]
    if owner.kind == "shuffle" and fits:
        identity, text = ways[0]
        ways = [(identity, f"{text}, or at most {fits} elements")]
    elif owner.kind == "container" and (owner.copied or owner.unit == "models"):
        ways = [_IN_PARTS if owner.copied else _MODELS]
    elif death.copies:
        ways = [_BATCHES, _IN_PARTS]
    return tuple(Remedy(id=identity, text=text.replace("NAME", owner.name)) for identity, text in ways)


def _of_step(death: OutOfMemory, owner: MemoryOwner, params: Params) -> Iterator[Remedy]:
    fixed = owner.fixed >= params.min_fixed_ratio * owner.bytes
    if _is_wide(owner, params):
        fewer = f"use fewer filters or units in {owner.layers}, or a stride or pooling before it"
        narrow = fewer if owner.layers else ""
        yield Remedy(id=_LAYER[0], text=narrow if narrow and not fixed else _LAYER[1])
    if owner.whole:
        text = f"give {owner.role} batches: batch_size=32 to 64, or batch(32) of its Dataset"
        yield Remedy(id="smaller-batch", text=text)
    elif not fixed and owner.count > 1:
        fits = f"{death.fits:,}" if 0 < death.fits < owner.count else ""
        text = f"a batch size of {fits or 'fewer samples'}; for the same step, accumulate gradients over several"
        yield Remedy(id="smaller-batch", text=text)


_KEPT = (
    Remedy(
        id="keep-numbers",
        text="each step leaves something on the device: keep numbers (loss.item()) or copies on the host "
        "(.detach().cpu()) in lists and attributes, not tensors",
    ),
)
_TOO_LARGE = (
    Remedy(id="smaller-batch", text="a smaller batch; for the same step, accumulate gradients over several"),
    Remedy(id="recompute", text="or keep fewer activations: checkpoint (recompute) the largest layers, 16-bit numbers"),
)
_LAYER = ("smaller-layer", "make the largest layer smaller: pool before it is flattened, or fewer units or filters")
_IN_PARTS = (
    "read-in-parts",
    "read the data in parts: tf.data from files, numpy.memmap, or a smaller type (uint8 until it is used)",
)
_MODELS = (
    "one-of-each-model",
    "load or build each model once and keep it in a dictionary by its name, or drop it (keras.backend.clear_session())",
)
_BATCHES = (
    "hand-over-batches",
    "hand over the array, or batches of it (a generator, PyDataset, files), not a tensor or Variable of all data",
)
_WAYS: dict[str, tuple[str, str]] = {
    "variables": _LAYER,
    "cache": ("smaller-cache", "cache before the data is made larger (as bytes or uint8), or in a file: cache(PATH)"),
    "shuffle": ("smaller-shuffle", "shuffle file names or records before they are decoded"),
    "container": ("bound-what-is-kept", "bound what NAME keeps (numbers instead of arrays, deque(maxlen=N), a file)"),
}
"""Remedies by the kind of owner."""


DETECTOR = Detector(
    code="MEM004",
    name="out-of-memory",
    symptom="Memory: out of memory",
    introduced_stage="unknown",
    needs=frozenset({Signal.ENDED}),
    params=Params(),
    detect=detect,
)
