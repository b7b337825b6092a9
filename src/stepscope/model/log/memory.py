"""Log lines about memory: what the job's Python held when it had grown, and that it was not enough."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event, Frame


class HeldValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable of the job, or an attribute of an object in one, with all that it leads to."""

    name: str
    """Variable, with the attribute: history, self.images."""
    kind: str = ""
    """Its class: ndarray, EagerTensor, list ..."""
    bytes: int = 0
    """Memory of the arrays and tensors that it leads to and no earlier variable does; of long containers estimated."""
    count: int = 0
    """Number of elements of a container."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Shape of the array; of a container's first one."""
    file: str = ""
    function: str = ""
    line: int = 0
    """Function that has the variable, and its line that runs; function ``<module>``, and 0 where that does not run."""
    model: str = ""
    """Class of the Keras object whose variable is the largest array in it: Sequential, Adam; "" for any other array."""
    variable: str = ""
    """Path of this variable: sequential/dense/kernel."""
    layer: str = ""
    """Class of the layer, or of the optimizer, that has it: Dense."""
    built: Frame | None = None
    """User's line that built this layer."""


class MemoryHeld(Event, tag="memory-held", frozen=True, kw_only=True):
    """The process's memory had grown, and the largest values that variables lead to were looked up. Since 0.1."""

    reason: str = ""
    """Reason: doubled | share (of what bounds it) | grown (for ten seconds) | at-once (more address space was taken at
    once than there is memory left) | asked (a capture of memory begins or ends) | error (an exception for lack of
    memory ends the process)."""
    own_bytes: int = 0
    """Resident memory without files and shared memory."""
    space_bytes: int = 0
    """Address space."""
    before_bytes: int = 0
    """Own memory at the tick before, a tenth of a second earlier."""
    space_before_bytes: int = 0
    """Address space at that tick."""
    group_limit: int = 0
    """Tightest limit of the process's control groups; 0: none."""
    group_bytes: int = 0
    """Memory charged to that group."""
    group_cache: int = 0
    """Page cache in it, which the kernel takes back first."""
    host_limit: int = 0
    """Memory of the host."""
    space_limit: int = 0
    """RLIMIT_AS; 0: none."""
    rows: tuple[HeldValue, ...] = ()
    """The largest first."""
    stack: tuple[Frame, ...] = ()
    """User frames of the main thread, root to leaf."""
    series: tuple[tuple[int, int], ...] = ()
    """Own memory since the look before: (milliseconds before ``at``, KiB)."""
    spent_ns: int = 0
    """CPU time of the look."""


class MemoryLacked(Event, tag="memory-error", frozen=True, kw_only=True):
    """An exception for lack of memory that was not caught ended the process. Since 0.1."""

    error: str = ""
    """The exception's class. Its message is not recorded."""
    asked_bytes: int = 0
    """Bytes that were asked for, as the message says; 0: it does not."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Type and shape of the array or tensor that was asked for."""
    device: str = ""
    """Device of a tensor: CPU:0, GPU:0."""
    node: str = ""
    """Name of the graph's node that asked for it."""
    thread: int = 0
    file: str = ""
    function: str = ""
    line: int = 0
    """The innermost user code of the traceback; "" for none."""
    stack: tuple[Frame, ...] = ()
    """User frames of the traceback, root to leaf."""


MemoryEvent = MemoryHeld | MemoryLacked
"""Lines about memory."""
