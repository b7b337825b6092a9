"""Log lines about a program's settings and the inputs of its steps."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event, Frame
from stepscope.model.log.intervention import BlockEnded, DelayEnded, InterventionEnded
from stepscope.model.log.memory import MemoryEvent
from stepscope.model.log.values import FeedsSeen, FunctionWatched, ValueSeen


class Setting(Event, tag="setting", frozen=True, kw_only=True):
    """A setting of the framework that changes how everything runs was set."""

    name: str
    """Name: run_functions_eagerly | check_numerics | dump_debug_info | data_debug_mode | op_determinism |
    double_precision.
    """
    value: bool
    file: str = ""
    line: int = 0
    function: str = ""


class Padding(Event, tag="padding", frozen=True, kw_only=True):
    """A fit or a dataset received integer sequences padded to one length."""

    rows: int
    columns: int
    """Number of positions of each sequence."""
    mean: float
    """Mean number of positions that an examined row uses."""
    p95: float
    """Number of positions that one row in twenty exceeds."""
    first: bool = False
    """Flag: the padding is before the sequences."""
    file: str = ""
    line: int = 0
    function: str = ""
    """Function of user code that padded them, else that passed them."""


class InputSeen(Event, tag="input", frozen=True, kw_only=True):
    """A batch that steps were given was examined, or the rows of a whole data set. Since 0.1."""

    position: int
    """Number in the structure that it is part of, from 0, in TensorFlow's order."""
    name: str = ""
    """Name of the tensor that was fed; its position means nothing then."""
    of: str = ""
    """Place file:line of the function whose argument it is, ":" if unknown; "" for what is no argument."""
    batch: bool = True
    """Whether it is the batch of one step."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    rows: int = 0
    """Rows examined: the first ones."""
    distinct: int = 0
    """Number of these that differ from each other."""
    block: int = 0
    """Equal rows that follow each other, if their number is the same for all; else 0."""
    tiled: bool = False
    """Whether the same rows follow each other again and again."""
    zeros_ratio: float = 0.0
    """Share of zeros in these rows."""
    file: str = ""
    line: int = 0
    function: str = ""
    """Function of user code that passed it."""
    spent_ns: int = 0
    """Time that examining the structure took so far."""


class ShapeMet(Event, tag="shape", frozen=True, kw_only=True):
    """A shape that calls were given, and its number: bits 8-15 of the flags of their records (``wire.kinds``)."""

    id: int
    dims: tuple[int, ...] = ()
    """Sizes, at most five; none: all shapes beyond those that have a number."""
    rounded: bool = False
    """Flag: each size is the next power of two, because the process met many shapes."""


class ThreadDied(Event, tag="thread-death", frozen=True, kw_only=True):
    """A thread of the job ended by an exception that nobody caught."""

    thread: int
    """As in ``ThreadSeen``."""
    name: str = ""
    error: str = ""
    """The exception's class. Its message is not recorded."""
    file: str = ""
    function: str = ""
    line: int = 0
    """The innermost user code of the traceback; "" for none."""
    stack: tuple[Frame, ...] = ()
    """User frames of the traceback, root to leaf."""


class RunWaits(Event, tag="run-waits", frozen=True, kw_only=True):
    """A Session.run that lasts for seconds, and what it may wait for. Since 0.1."""

    start: int
    """When it began."""
    ops: tuple[tuple[str, str, str, int, str], ...] = ()
    """Type and name of ops that take from a queue or an iterator, the nearest to the fetches first, with file, line and
    function of the user's code that made them."""


class DeviceMemory(Event, tag="device-memory", frozen=True, kw_only=True):
    """Bytes on a device (GPU:0) by the framework's allocator, when the peak has risen, with CUDA_VISIBLE_DEVICES."""

    device: str
    current: int = 0
    peak: int = 0
    visible: str = ""


class DataLoaderMade(Event, tag="data-loader", frozen=True, kw_only=True):
    """A DataLoader of PyTorch whose batches are taken; ``id`` is that of its ``iterator`` line. Since 0.1."""

    id: int
    workers: int = 0
    """Processes that make batches; 0: the process that takes them makes them."""
    batch: int = 0
    """Samples of a batch; 0: not known."""
    prefetch: int = 0
    """Batches that each worker makes ahead; 0: not set."""
    pinned: bool = False
    """Flag: batches are put into memory that a device copies from at full speed."""
    persistent: bool = False
    """Flag: workers stay from one pass to the next."""
    dataset: str = ""
    """Class of its dataset."""
    file: str = ""
    """Place of the user's loop that takes the batches, with ``line`` and ``function``."""
    line: int = 0
    function: str = ""
    fn_name: str = ""
    """The user's method that makes a sample, at ``fn_file`` and ``fn_line``; empty: none is the user's."""
    fn_file: str = ""
    fn_line: int = 0


class TableSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix with many rows that an optimizer changed."""

    rows: int
    columns: int
    sparse: bool = False
    """Flag: its gradient is sparse."""
    looked: int = 0
    """Rows of its gradient that were looked at; 0: it cannot be read, as on a device."""
    zero: int = 0
    """Those of them that begin with zeros."""


class OptimizerSeen(Event, tag="optimizer", frozen=True, kw_only=True):
    """What an optimizer of PyTorch changed in a step, of those tensors that had a gradient. Since 0.1."""

    name: int
    """Id of the name of its line."""
    cls: str = ""
    """Its class in ``torch.optim``."""
    fused: bool = False
    """Flag: one kernel does all ops on a tensor; so it was asked for."""
    closure: bool = False
    """Flag: the step was given a function that computes the loss, so that its time is that of the whole step."""
    decays: bool = False
    """Flag: weights decay."""
    devices: tuple[str, ...] = ()
    """Types of the devices that hold the tensors."""
    tensors: int = 0
    elements: int = 0
    tables: tuple[TableSeen, ...] = ()
    """The largest matrices with many rows."""


class ImportAsked(Event, tag="import", frozen=True, kw_only=True):
    """The program's own line asked for a module that was not loaded, before stacks were sampled. Since 0.1."""

    name: str = ""
    """Module; "" in the last one, which says where the main thread was when the sampling began."""
    file: str = ""
    """Its file, if it is the user's."""
    stack: tuple[Frame, ...] = ()
    """Lines of user code that led there, root to leaf."""
    cpu: int = 0
    """CPU time of the main thread by then."""
    delay: int = 0
    """Time for which it was ready and had no CPU; like the following, in the last one alone."""
    read: int = -1
    """Bytes that the process has read from disks and network file systems; -1 unknown."""
    network: tuple[tuple[str, str], ...] = ()
    """Type and mount point of file systems over a network that hold Python's modules or the program, if it waited."""


ProgramEvent = (
    DataLoaderMade
    | ImportAsked
    | OptimizerSeen
    | Setting
    | Padding
    | InputSeen
    | ShapeMet
    | ThreadDied
    | RunWaits
    | InterventionEnded
    | BlockEnded
    | DelayEnded
    | ValueSeen
    | FeedsSeen
    | FunctionWatched
    | DeviceMemory
    | MemoryEvent
)
