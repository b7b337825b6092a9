"""Log lines of the value trial, see ``agent.trials.tensors.values``: what the ops of the steps computed."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """An op of the program that takes a tensor, views passed over."""

    type: str
    """Its type; "" for a use that is not known, such as by who calls the function."""
    name: str = ""
    place: int = 0
    """Number of the input that the tensor is."""
    shape: tuple[int, ...] = ()
    """Static shape of its only result; () if it has several. -1 for a size that is not known."""
    of: tuple[int, ...] = ()
    """Static shape of the view of the tensor that it takes."""


class ValueSeen(Event, tag="value", frozen=True, kw_only=True):
    """A tensor that was looked at in a few steps, or an argument of the program's calls. Since 0.1."""

    number: int
    """Number in this process, from 1."""
    function: str
    """Function or run of a session that the program calls; see ``FunctionWatched``."""
    type: str = ""
    """Type of the op; "" for an argument."""
    name: str = ""
    """Name of the op in its graph."""
    graph: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Shape when it was last looked at."""
    file: str = ""
    in_function: str = ""
    line: int = 0
    """The innermost user code that made the op."""
    attributes: str = ""
    """Attributes that its work depends on, as JSON."""
    inputs: tuple[int, ...] = ()
    """Numbers of the tensors that it takes, views passed over; 0 for one that is not looked at."""
    input_dtypes: tuple[str, ...] = ()
    input_shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of all inputs as the graph knows them; -1 for a size that it does not."""
    expression: str = ""
    """The same for ops that TensorFlow merges, because they compute the same from the same inputs."""
    alive: bool = True
    """Whether the program needs it: nothing else would keep it from being pruned."""
    steps: int = 0
    """Calls as they come in which it was computed."""
    runs: int = 0
    """How often it was computed in them."""
    looked_at: int = 0
    """Runs of which the value is known; below ``runs`` for an op that runs very often in a call."""
    again: int = 0
    """Runs that gave the value of the run before, in the same call."""
    distinct: int = 0
    """Number of different values."""
    step_distinct: int = 0
    """Number of calls that differ from each other."""
    same_steps: int = 0
    """Calls on the same batch in which it was computed."""
    same_distinct: int = 0
    """Number of these that differ from each other."""
    signature: str = ""
    """The same for tensors with the same values in all runs."""
    zeros_ratio: float = 0.0
    """Mean share of zeros."""
    equal_rows_ratio: float = 0.0
    """Mean share of rows that are the same as an earlier one of the same tensor."""
    padding_ratio: float = 0.0
    """Mean share of positions of its second axis that hold only zeros, at one end."""
    uses: tuple[Use, ...] = ()
    """Ops that take it; () if that is not known (a graph of version 1, code that runs eagerly)."""
    low: int = 0
    """Least whole number, or 0 if that is less."""
    high: int = 0
    """Largest whole number, or 0 if that is more."""


class FunctionWatched(Event, tag="watched-function", frozen=True, kw_only=True):
    """A function that the program calls again and again, or a run of a session, in the value trial. Since 0.1."""

    function: str
    calls: int = 0
    spent_ns: int = 0
    """Time of all calls but the first, with the looks in them."""
    same_batch_calls: int = 0
    """Calls on the same batch."""
    why_not_same: str = ""
    """Reason why there are none, if it is known."""
    recurring_ratio: float = 0.0
    """Share of the rows of the last batches that were in earlier ones."""
    left_out: int = 0
    """Tensors of the process beyond the number that is looked at."""


class FeedsSeen(Event, tag="feeds", frozen=True, kw_only=True):
    """What runs of a session were fed, by looks at the first runs and some of the others; the newest of a ``name``
    counts. Since 0.1."""

    name: int
    """Id of the runs' name."""
    looks: int = 0
    same: tuple[str, ...] = ()
    """Names of tensors that were fed the same object, with the same numbers, at each look."""
    changed: tuple[str, ...] = ()
    """Names of the others."""
