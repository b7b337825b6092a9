"""Log line of a look at code that runs op by op, see ``agent.probes.tensorflow.eager_ops``."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event


class EagerOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ops of one type, line and layer in a look."""

    op: str
    """Type of the op, or name of the graph function."""
    file: str = ""
    function: str = ""
    line: int = 0
    """The user's line; 0 for ops that are too short to be looked up."""
    scope: str = ""
    """Names of the layers, or of the user's scopes, around it."""
    count: int = 0
    ns: int = 0
    """Time in the ops."""
    again: int = 0
    """Number of those that gave what they gave before."""
    again_ns: int = 0
    """Time of those, with Python's between two of them."""
    bytes: int = 0
    """Size of the largest result, of results that took long to make; 0: none did."""
    part: int = 0
    """Number of results that were copied whole, of which all uses took a quarter or less."""
    part_ns: int = 0
    """Time in the ops that copied those."""
    part_bytes: int = 0
    """Most that was used of one of them."""


class EagerOps(Event, tag="eager_ops", frozen=True, kw_only=True):
    """What ops ran op by op on one thread for some seconds. Since 0.1."""

    dur: int
    own: int = 0
    """Time that noting took: the job's time in the look is ``dur`` less this."""
    thread: int = 0
    ops: int = 0
    ns: int = 0
    """Time in ops."""
    again_ns: int = 0
    """Time of ops that gave what they gave before, with Python's between two of them."""
    late: int = 0
    """Number of ops in the second half of the look, without mere copies of what is known, and constants made again."""
    fresh: int = 0
    """Number of those that gave something new."""
    late_ns: int = 0
    """Time of the second half, without what noting took."""
    late_again_ns: int = 0
    """``again_ns`` of the second half: what the first turn of a loop computes is new to the look."""
    rows: tuple[EagerOp, ...] = ()
    """The longest first."""
