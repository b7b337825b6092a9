"""What the lines of a finding do, in words, and what can be done about work of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.findings import LinePart, LineWork, Remedy
from stepscope.tables.units import format_bytes, format_ratio

if TYPE_CHECKING:
    from stepscope.causes.general.waits import Rates
    from stepscope.derive.python.library_work import WorkKind
    from stepscope.derive.python.line_work import Part, Waited, Work

MOST = 0.5
"""Share of the lines' time from which a part is their reason, by the lower end of its interval."""
NAMED = 0.3
"""Share from which a part of a known kind is their reason, if none is larger."""
MIN_CALLS = 1.0
"""Reads and writes a step from which they are said."""
IDLE = 0.5
"""Share on a CPU below which the thread mostly waits."""
OF_KINDS: dict[WorkKind, tuple[str, str]] = {
    "attention": (
        "attention op by op (a score is stored for each pair of tokens)",
        'take a fused kernel: from_pretrained(..., attn_implementation="sdpa"), unless the attention weights are read',
    ),
    "choice": (
        "a draw with probabilities over the whole array",
        "sum the probabilities once before the loop and draw with np.searchsorted, or draw for many steps at once",
    ),
    "concatenate": (
        "a copy of whole arrays to make them longer",
        "collect the pieces in a list and join them once, or write into an array that is made once",
    ),
    "copy": ("a deep copy", "copy only what changes, or keep one copy and reuse it"),
    "csv": ("reading of tables", "read the table once before the loop, and keep what is used as arrays"),
    "deflate": ("compression", "write without compression, or compress in another process"),
    "eager": (
        "ops of JAX one by one, outside of jit",
        "put it into the jitted step: jax.jit around these lines; of an optimizer, tx.update and optax.apply_updates",
    ),
    "format": ("formatting of text", "format only what is read, every N steps"),
    "hash": ("hashing", "hash fewer bytes, or hash each item once and keep the digest"),
    "hdf5": (
        "reading of HDF5",
        "read many rows at once, in the file's order: each read of a compressed file inflates whole chunks",
    ),
    "image": (
        "decoding and resizing of images",
        "decode and resize the images once before the training, and keep the small ones",
    ),
    "inflate": ("decompression", "decompress the files once before the training, and keep what is used"),
    "json": ("parsing of JSON", "parse the documents once before the training, and keep what is used as arrays"),
    "list": ("listing of folders", "list the folder once before the loop"),
    "lists": (
        "conversion of lists of Python numbers to arrays",
        "keep the numbers in arrays from the start, and compute on whole arrays: no lists in between",
    ),
    "log": ("logging", "log every N steps, and format only what is written"),
    "npy": (
        "opening and reading of .npy files",
        "keep many items in one file: open it once (mmap_mode), and index it",
    ),
    "open": ("opening of files", "open it once before the loop, or keep many items in one file"),
    "pandas": (
        "work of pandas on tables",
        "do it once before the loop, and take what is used as NumPy arrays (to_numpy)",
    ),
    "parametrize": (
        "weights computed again at each read (parametrization)",
        "compute it once a step: torch.nn.utils.parametrize.cached(); for inference: remove_parametrizations",
    ),
    "pickle": ("unpickling", "unpickle once before the loop; plain arrays load faster than objects"),
    "regex": ("matching of regular expressions", "split the texts once before the training, and keep the numbers"),
    "request": ("a request over the network", "ask for what several steps need at once, or ahead of the step"),
    "sleep": ("a sleep of a fixed time", "wait for the event itself (a queue, a condition), or leave the sleep out"),
    "sort": ("a sort of whole arrays", "np.argpartition or heapq.nlargest take a few without sorting all"),
    "sql": ("queries of a database", "fetch the rows of a batch with one query, by a column with an index"),
    "unzip": (
        "unpacking of an archive's members (inflate)",
        "read each member once before the loop and index the array, or keep it as .npy and map it",
    ),
}
"""What work of a kind is, and what to do about it."""


def work(found: Work, counted: Rates | None, times: float) -> LineWork:
    """What lines do.

    Args:
        found: what their samples show.
        counted: counters of the thread that runs them; None: not counted.
        times: calls of their function a step; 0: not counted.
    """
    calls = counted if counted is not None and counted.calls >= MIN_CALLS else None
    items = [_part(part, first=number == 0) for number, part in enumerate(found.parts)]
    often = f"the function is called {times:.3g} times a step" if times else ""
    items += [text for text in (often, _ran(found), _calls(calls), _missing(found)) if text]
    return LineWork(
        text="; ".join(items),
        short=_short(found),
        samples=found.samples,
        parts=tuple(_shown(part) for part in found.parts),
        ran_ratio=found.ran_ratio,
        function_calls_per_step=times or None,
        calls_per_step=calls.calls if calls is not None else None,
        bytes_per_step=calls.calls * calls.bytes_per_call if calls is not None else None,
    )


def unseen(kind: WorkKind) -> LineWork:
    """Of lines that no stack shows. ``kind``: of the work that their source calls for; "": not known."""
    source = f"; their source calls for {OF_KINDS[kind][0]}, which may be most of it" if kind else ""
    short = f"perhaps {_word(kind)}" if kind else ""
    return LineWork(text=f"too few stacks were sampled on these lines to say it{source}", short=short, samples=0)


def _word(kind: WorkKind) -> str:
    return OF_KINDS[kind][0].partition(" (")[0]


def is_known(found: Work) -> bool:
    """Whether it is known why the lines take long: by a kind of work, or by a library's function, no framework's."""
    part = next(iter(found.parts), None)
    called = part is not None and bool(part.entry) and part.low >= MOST
    return bool(_kinds(found)) or (called and not found.framework)


def has_kind(found: Work) -> bool:
    """Whether work of a known kind is a reason."""
    return bool(_kinds(found))


def only(found: Work, kind: WorkKind) -> bool:
    """Whether this kind of work alone is."""
    return set(_kinds(found)) == {kind}


def own_part(found: Work) -> float:
    """Part of the lines' time that the reason takes: that of the known kinds of work. Where ops of JAX run one by one,
    a thread on no CPU waits for what earlier calls compute, which they do not change.
    """
    kinds = _kinds(found)
    if "eager" in kinds and found.ran_ratio is not None:
        return found.ran_ratio
    return min(1.0, sum(part.ratio for part in found.parts if part.kind in kinds)) if kinds else 1.0


def most_of(found: Work) -> float:
    """The largest part that the reason may take."""
    kinds = _kinds(found)
    return min(1.0, sum(part.high for part in found.parts if part.kind in kinds)) if kinds else 1.0


def remedy(found: Work) -> Remedy | None:
    """What to do about work of the kind that is the reason; None if that is not known."""
    kind = next(iter(_kinds(found)), None)
    return Remedy(id=f"less-{kind}", text=OF_KINDS[kind][1]) if kind is not None else None


def _kinds(found: Work) -> dict[WorkKind, Part]:
    """The kinds of work that are a reason, the largest first, each with its largest part."""
    ratios: dict[WorkKind, float] = {}
    first: dict[WorkKind, Part] = {}
    for part in found.parts:
        ratios[part.kind] = ratios.get(part.kind, 0.0) + part.ratio
        first.setdefault(part.kind, part)
    kinds = sorted((kind for kind in ratios if kind), key=lambda kind: -ratios[kind])
    return {kind: first[kind] for kind in kinds if ratios[kind] >= NAMED}


def _short(found: Work) -> str:
    kinds = _kinds(found)
    words = [_word(kind) for kind in kinds]
    if len(words) > 1:
        return " and ".join(words[:2])
    part = next(iter(kinds.values()), None) or next(iter(found.parts), None)
    entry = part.entry.rpartition("<locals>.")[2] if part is not None else ""
    if words:
        return f"{words[0]}, below {entry}" if entry else words[0]
    if part is not None and entry and part.low >= MOST:
        inside = part.innermost.rpartition("<locals>.")[2]
        return f"{inside}, below {entry}" if inside else entry
    return _wait(found.waited) if _mostly_waits(found) and found.waited is not None else ""


def _part(part: Part, *, first: bool) -> str:
    share = (
        f"{format_ratio(part.ratio)} ({100 * part.low:.0f}-{100 * part.high:.0f})"
        if first
        else format_ratio(part.ratio)
    )
    of = f"{share} of the time of these lines is" if first else f"{share}"
    where = f"below {part.entry}" if part.entry else "in these lines or in C code that they call"
    if part.kind in OF_KINDS:
        inside = f" in {part.innermost}" if part.innermost else ""
        return f"{of} {OF_KINDS[part.kind][0]}{inside}, {where}"
    inside = f"in {part.innermost}, " if part.innermost else ""
    return f"{of} {inside}{where}"


def _ran(found: Work) -> str:
    if found.ran_ratio is None:
        return ""
    if _mostly_waits(found):
        why = _wait(found.waited) if found.waited is not None else "for what is not known"
        return f"the thread is on no CPU for {format_ratio(1.0 - found.ran_ratio)} of it: {why}"
    return f"the thread computes for {format_ratio(found.ran_ratio)} of it"


def _mostly_waits(found: Work) -> bool:
    return found.ran_ratio is not None and found.ran_ratio < IDLE


def _wait(waited: Waited) -> str:
    target = f" ({waited.target})" if waited.target else ""
    return f"a wait in {waited.call}{target}"


def _calls(counted: Rates | None) -> str:
    if counted is None:
        return ""
    size = f" of {format_bytes(counted.bytes_per_call)}" if counted.bytes_per_call else ""
    return f"the thread makes {counted.calls:.3g} reads and writes{size} a step"


def _missing(found: Work) -> str:
    """What would have to be known to say more."""
    if not _kinds(found) and found.parts and not found.parts[0].entry and not _mostly_waits(found):
        return "which C function is not known without native stacks"
    return ""


def _shown(part: Part) -> LinePart:
    return LinePart(
        kind=part.kind,
        entry=part.entry,
        innermost=part.innermost,
        ratio=part.ratio,
        low=part.low,
        high=part.high,
    )
