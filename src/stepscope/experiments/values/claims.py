"""Claims from what the value trial saw: pure logic over its log lines.

A claim is that ops compute what need not be computed, or not so. Ops are left out that nothing needs but the looks at
them, that TensorFlow folds or merges by itself, and whose values are all zero (what has not begun to learn). A claim
below 5 % of the work is not made.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.experiments.values import cost, unused
from stepscope.wire.trials import EAGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stepscope.experiments.values.cost import Costs
    from stepscope.model.log.values import FunctionWatched, ValueSeen
    from stepscope.model.report.whatif import ClaimKind, ShareBasis

MIN_RATIO = 0.05
"""Share of the work below which nothing is said: a trial of a few runs shows no smaller change."""
MIN_STEPS = 6
"""Calls from which equality is no accident."""
MIN_SAME = 3
"""Calls on the same batch from which equality is no accident."""
MIN_ZEROS = 0.99
"""Share of zeros from which a dense product is a lookup. One-hot of 100 classes; gradients of ReLU and pooling windows
have 0.5 to 0.9."""
MIN_PADDING = 0.5
"""Mean share of padding from which it is said: batches in buckets of length have 0.1 to 0.4."""
MIN_EQUAL_ROWS = 0.9
MIN_AGAIN = 0.75
"""Share of runs behind the first of a call that give the value of the run before, from which a loop computes the same
again; of eager code, the share of runs that give what was known."""
MAX_DISTINCT = 0.75
"""Share of different values in successive calls, up to which calls compute the same again."""
MIN_RECURRING = 0.5
"""Share of the rows of a batch that were in earlier ones, from which samples recur."""
MIN_PART = 0.02
"""Share of a claim's work below which an op is not named."""
PRODUCTS = ("MatMul", "BatchMatMul", "Einsum", "Conv", "DepthwiseConv", "SparseTensorDenseMatMul")
MIN_UNUSED = 0.9
"""Share that is cut off from which leaving out the ops whole shows what leaving out the needless part brings."""
INTEGER_WORK = frozenset(
    (
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "FloorDiv",
        "FloorMod",
        "Mod",
        "Maximum",
        "Minimum",
        "Cumsum",
        "Neg",
        "Abs",
        "Square",
    )
)
"""Types that compute with integers, each number on its own; lookups take the time of what they look up."""
_LONG = "int64"
_WIDE, _NARROW = "float64", frozenset({"float32", "float16", "bfloat16"})
_MAX_PLACES = 4
_MAX_OPS = 6


class LineOps(Struct, frozen=True, kw_only=True):
    """Ops of one line."""

    file: str
    line: int
    function: str
    ratio: float
    """Share of the work of the ops that are looked at and needed."""


class Claim(Struct, frozen=True, kw_only=True):
    """Needless work."""

    kind: ClaimKind
    ratio: float
    """Share of the needless work in all that was looked at, as ``basis`` says."""
    text: str
    """What was seen."""
    remedy: str
    places: tuple[LineOps, ...]
    """The lines, most work first."""
    ops: tuple[str, ...]
    """Names of the ops, most work first, a few."""
    needless: tuple[tuple[str, float], ...] = ()
    """Names of the main ops, each with the needless share of its work."""
    basis: ShareBasis = "shapes"
    ends: tuple[str, ...] = ()
    """Names of those ops whose results others take: without these, none of the ops is computed. Empty if leaving them
    out would not leave out the needless work."""


class _Seen(Struct, frozen=True):
    """All that was seen in a process."""

    values: Sequence[ValueSeen]
    functions: Mapping[str, FunctionWatched]
    costs: Costs
    used: set[int] = field(default_factory=set)
    """Numbers of ops that a claim has named: each is named once."""

    def ops(self) -> Iterable[ValueSeen]:
        """Ops that are needed, seen often enough, not all zero, and in no claim yet."""
        return (
            value
            for value in self.values
            if _is_op(value)
            and value.alive
            and value.steps >= MIN_STEPS
            and value.zeros_ratio < 1.0
            and value.number not in self.used
        )

    def moves(self, function: str) -> bool:
        """Whether what a function is given varies; True if it is given nothing."""
        inputs = [value for value in self.values if value.function == function and _is_input(value)]
        return not inputs or any(value.step_distinct > 1 for value in inputs)


def derive(values: Sequence[ValueSeen], functions: Sequence[FunctionWatched]) -> tuple[Claim, ...]:
    """All claims about a process, most work first."""
    seen = _Seen(values, {one.function: one for one in functions}, cost.estimate(values, functions))
    makers: tuple[Callable[[_Seen], Claim | None], ...] = (
        _constants, _repeated, _duplicates, _batch_only, _unused, _zeros, _equal_rows, _wide_types, _wide_integers,
        _padding,
    )  # fmt: skip
    found = [claim for claim in (make(seen) for make in makers) if claim is not None]
    return tuple(sorted(found, key=lambda claim: -claim.ratio))


def _is_op(value: ValueSeen) -> bool:
    return bool(value.type) and value.type not in cost.FROM_ITERATORS


def _is_input(value: ValueSeen) -> bool:
    return not _is_op(value) and len(value.shape) > 0


def _is_product(value: ValueSeen) -> bool:
    return value.type.startswith(PRODUCTS)


def _constants(seen: _Seen) -> Claim | None:
    found = [
        value for value in seen.ops() if value.distinct == 1 and value.same_distinct <= 1 and seen.moves(value.function)
    ]
    steps = max((value.steps for value in found), default=0)
    return _claim(
        seen, "constant", dict.fromkeys(found, 1.0),
        f"gives the same value in all of {steps} steps, whatever the batch and the weights",
        "compute it once, before the loop, and pass it in",
    )  # fmt: skip


def _repeated(seen: _Seen) -> Claim | None:
    """The same value again: in a loop of the graph, or in successive calls."""
    found: dict[ValueSeen, float] = {}
    for value in seen.ops():
        ratio = _again(value)
        if ratio and seen.moves(value.function):
            found[value] = ratio
    return _claim(
        seen, "repeated", found,
        "gives the value of the run before in most runs",
        "compute it once, in front of the loop, or in the same call as what needs it",
    )  # fmt: skip


def _again(value: ValueSeen) -> float:
    """Share of an op's runs that give what is known already."""
    again = value.again / value.looked_at if value.looked_at else 0.0
    if value.function == EAGER:
        return again if again >= MIN_AGAIN else 0.0
    if value.runs >= 2 * value.steps:
        could = value.looked_at - value.steps
        return again if could > 0 and value.again >= MIN_AGAIN * could else 0.0
    calls = value.step_distinct / value.steps
    return 1.0 - calls if calls <= MAX_DISTINCT and value.step_distinct > 1 else 0.0


def _duplicates(seen: _Seen) -> Claim | None:
    """Different ops with the same values in all steps."""
    twins: dict[tuple[object, ...], list[ValueSeen]] = defaultdict(list)
    for value in seen.ops():
        if value.distinct > 1:
            key = (value.signature, value.shape, value.dtype, value.type, value.function, value.runs)
            twins[key].append(value)
    found: dict[ValueSeen, float] = {}
    firsts: list[ValueSeen] = []
    for same in twins.values():
        expressions = {value.expression: value for value in same}
        if len(expressions) > 1:
            first, *others = expressions.values()
            firsts.append(first)
            found.update((value, 1.0) for value in others)
    return _claim(
        seen, "duplicate", found,
        f"gives in all steps the values of another op, {_first(firsts)}: the work is done twice",
        "use the first result again",
    )  # fmt: skip


def _first(values: Sequence[ValueSeen]) -> str:
    """Where the results were computed first."""
    lines = sorted({value.line for value in values if value.line})
    return f"made at line {', '.join(map(str, lines[:_MAX_PLACES]))}" if lines else "made by a library"


def _batch_only(seen: _Seen) -> Claim | None:
    """What depends on the batch alone, in functions where weights move, if samples come again."""
    recurs = {name for name, one in seen.functions.items() if one.recurring_ratio >= MIN_RECURRING}
    trains = {value.function for value in seen.ops() if _is_product(value) and value.same_distinct > 1} & recurs
    found = [
        value
        for value in seen.ops()
        if value.function in trains
        and value.same_steps >= MIN_SAME
        and value.same_distinct == 1
        and value.step_distinct > 1
    ]
    return _claim(
        seen, "batch-only", dict.fromkeys(found, 1.0),
        "depends on the batch alone, while weights change, and samples come again",
        "compute it once for each sample, and keep it: a cached map of the dataset, or features saved before training",
    )  # fmt: skip


def _unused(seen: _Seen) -> Claim | None:
    """Results of which most is cut off."""
    found = unused.find(seen.values, seen.ops())
    most = max(found.values(), default=0.0)
    return _claim(
        seen, "unused", found,
        f"computes what is cut off: {100 * most:.4g} % of its results are used by nothing",
        "cut first (the rows of the input, the columns of the weights), then compute",
        confirms=most >= MIN_UNUSED,
    )  # fmt: skip


def _wide_integers(seen: _Seen) -> Claim | None:
    """Arithmetic in int64 with numbers that fit into int32."""
    found = [
        value
        for value in seen.ops()
        if value.dtype == _LONG
        and value.type in INTEGER_WORK
        and _LONG in value.input_dtypes
        and -(2**31) <= value.low <= value.high < 2**31
    ]
    return _claim(
        seen, "wide-integer", dict.fromkeys(found, 0.5),
        "computes in int64 with numbers that fit into int32",
        "cast the ids to int32 where they come in",
        confirms=False,
    )  # fmt: skip


def _zeros(seen: _Seen) -> Claim | None:
    known = {value.number: value for value in seen.values}
    found: dict[ValueSeen, float] = {}
    for value in seen.ops():
        given = [known[number].zeros_ratio for number in value.inputs if number in known]
        zeros = max((ratio for ratio in given if ratio < 1.0), default=0.0) if _is_product(value) else 0.0
        zeros = max(zeros, value.zeros_ratio)
        if zeros >= MIN_ZEROS:
            found[value] = zeros
    most = max(found.values(), default=0.0)
    return _claim(
        seen, "zeros", found,
        f"computes with zeros: {100 * most:.4g} % of the numbers",
        "a lookup (tf.gather, Embedding) in place of one-hot and product; sparse updates in place of dense gradients",
    )  # fmt: skip


def _equal_rows(seen: _Seen) -> Claim | None:
    known = {value.number: value for value in seen.values}
    found: dict[ValueSeen, float] = {}
    for value in seen.ops():
        given = [known[number] for number in value.inputs if number in known]
        equal = [one.equal_rows_ratio for one in given if one.zeros_ratio < MIN_ZEROS]
        if _is_product(value) and max(equal, default=0.0) >= MIN_EQUAL_ROWS:
            found[value] = max(equal)
    return _claim(
        seen, "equal-rows", found,
        "computes the same for equal rows",
        "compute it for one row, and repeat the result",
    )  # fmt: skip


def _wide_types(seen: _Seen) -> Claim | None:
    """Work in float64 whose result is made narrower."""
    known = {value.number: value for value in seen.values}
    left = [
        number
        for value in seen.values
        if value.type == "Cast" and value.dtype in _NARROW and _WIDE in value.input_dtypes
        for number in value.inputs
    ]
    wide = set[int]()
    while left:
        number = left.pop()
        if number in known and number not in wide and known[number].dtype == _WIDE and known[number].type:
            wide.add(number)
            left.extend(known[number].inputs)
    kept = {value.number: value for value in seen.values if value.alive and value.number in wide}
    return _claim(
        seen, "wide-type", dict.fromkeys(kept.values(), 0.5),
        "computes in float64 what is cast to a narrower type behind it",
        "cast its inputs instead: constants from NumPy are float64",
    )  # fmt: skip


def _padding(seen: _Seen) -> Claim | None:
    """Work on positions that hold only padding."""
    padded = [value for value in seen.values if _is_input(value) and value.padding_ratio >= MIN_PADDING]
    if not padded:
        return None
    worst = max(padded, key=lambda value: value.padding_ratio)
    length = worst.shape[1]
    found = {
        value: worst.padding_ratio
        for value in seen.ops()
        if length in value.shape or value.runs >= 0.8 * length * value.steps
    }
    return _claim(
        seen, "padding", found,
        f"works on padding: {100 * worst.padding_ratio:.0f} % of the {length} positions of a batch",
        "batches of similar length (bucket_by_sequence_length), padded to their own longest",
        confirms=False,
    )  # fmt: skip


def _claim(
    seen: _Seen,
    kind: ClaimKind,
    found: Mapping[ValueSeen, float],
    text: str,
    remedy: str,
    *,
    confirms: bool = True,
) -> Claim | None:
    """A claim about ops and the share of each that is needless; None if it is too little."""
    needless = {value: ratio * seen.costs.share(value) for value, ratio in found.items()}
    total = sum(needless.values())
    if total < MIN_RATIO:
        return None
    ranked = sorted(needless, key=lambda value: -needless[value])
    main = [value for value in ranked if needless[value] >= MIN_PART * total]
    if kind not in ("padding", "wide-type", "wide-integer"):
        seen.used.update(value.number for value in ranked)
    return Claim(
        kind=kind,
        ratio=total,
        text=text,
        remedy=remedy,
        places=_places(needless),
        ops=tuple(value.name for value in main[:_MAX_OPS]),
        needless=tuple({value.name: found[value] for value in main}.items()),
        ends=_ends(seen, main) if confirms and not any(value.function == EAGER for value in main) else (),
    )


def _places(needless: Mapping[ValueSeen, float]) -> tuple[LineOps, ...]:
    ratios: dict[tuple[str, int, str], float] = defaultdict(float)
    for value, ratio in needless.items():
        ratios[value.file, value.line, value.in_function] += ratio
    ranked = sorted(ratios.items(), key=lambda one: -one[1])[:_MAX_PLACES]
    return tuple(
        LineOps(file=file, line=line, function=function, ratio=ratio) for (file, line, function), ratio in ranked
    )


def _ends(seen: _Seen, ops: Sequence[ValueSeen]) -> tuple[str, ...]:
    """Ops whose results another op takes that was looked at, or none."""
    numbers = {value.number for value in ops}
    takers: dict[int, list[int]] = defaultdict(list)
    for value in seen.values:
        if value.alive:
            for number in value.inputs:
                takers[number].append(value.number)
    ends = [value.name for value in ops if not numbers.issuperset(takers[value.number]) or not takers[value.number]]
    return tuple(dict.fromkeys(ends))
