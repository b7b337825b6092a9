"""The kinds of records: everything that a report and the timeline say of each, in one table.

What a record is and what code may ask of several kinds stands in ``wire.kinds``, which the job's process knows too. The
checker knows the report's words but not the records: so this table is by the kinds' names. A new kind needs a row in
each of the two tables, and the probe that writes it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TaskKind = Literal[
    "Session.run",
    "tf.function",
    "Keras loop",
    "Keras function",
    "model call",
    "ONNX Runtime run",
    "request",
    "span",
    "step",
]
"""What a task is made of, in report.json: calls of one kind of records, or requests, which may be of several kinds."""


Happened = Literal[
    "save",
    "callback",
    "evaluation",
    "retrace",
    "build",
    "garbage collection",
    "host sync",
    "input",
    "pipeline",
    "span",
    "function call",
]
"""What a record is when it happens in one step; ``pipeline``: the user's Python in the input pipeline, on another
thread."""


class About(Struct, frozen=True, kw_only=True):
    """Everything that is said of one kind of records."""

    drawn: str = ""
    """The timeline's category of its spans; "": it has none."""
    undrawn: str = ""
    """What is left out of the timeline, and where it is shown instead; "": nothing."""
    text: str = ""
    """Text of a span whose record has none; "": the name of the kind."""
    happens: Happened | None = None
    """What it is when one step is looked at; None: it is not listed there."""
    task: TaskKind | None = None
    """What the report's table of tasks calls its calls; None: they are no task."""
    step: str = ""
    """Title of a step that is such a call, made of ``text`` and ``role`` of its name."""
    rank: int | None = None
    """How much such calls say about a step: the least rank says most. None: they make no steps."""
    anywhere: bool = False
    """Whether a program without a framework makes such records, too."""


KINDS: dict[str, About] = {
    "step": About(
        drawn="step", happens="function call", text="step", task="step", step="stepscope.step", rank=0, anywhere=True
    ),
    "execution": About(drawn="call", happens="function call", task="Keras function", step="Keras {role}", rank=1),
    "loop": About(drawn="python", happens="evaluation", task="Keras loop", step="Keras {role}", rank=5),
    "hook": About(drawn="callbacks"),
    "callback": About(drawn="callbacks", happens="callback"),
    "function": About(drawn="call", happens="function call", task="tf.function", step="tf.function {text}", rank=3),
    "trace": About(drawn="tracing", happens="retrace"),
    "next": About(drawn="input", happens="input", text="next batch", step="batch", rank=10),
    "pyfunc": About(drawn="input", happens="pipeline"),
    "session_run": About(drawn="call", happens="function call", task="Session.run", step="Session.run", rank=2),
    "save": About(drawn="saving", happens="save"),
    "summary": About(drawn="saving", happens="save"),
    "sync": About(drawn="wait", happens="host sync", text="waits for a tensor", step="read of a value", rank=11),
    "gc": About(drawn="gc", happens="garbage collection", text="garbage collection", anywhere=True),
    "sample": About(undrawn="stack samples: they are in the flame graph", anywhere=True),
    "model_call": About(drawn="call", happens="function call", task="model call", step="call of {text}", rank=8),
    "apply": About(drawn="call", happens="function call", text="apply gradients", step="optimizer update", rank=6),
    "span": About(drawn="python", happens="span", task="span", anywhere=True),
    "counts": About(undrawn="calls too short to be recorded one by one", anywhere=True),
    "tick": About(anywhere=True),
    "rest": About(drawn="other", text="calls only counted", anywhere=True),
    "build": About(drawn="building", happens="build"),
    "metric": About(undrawn="values of metrics: they are in the charts", anywhere=True),
    "inference": About(
        drawn="call", happens="function call", task="ONNX Runtime run", step="ONNX Runtime {text}", rank=9
    ),
    "gradient": About(drawn="call", happens="function call", text="gradient", step="gradient of a tape", rank=7),
    "op": About(drawn="call", happens="function call", step="turn of a loop that calls {text}", rank=12),
    "autograd": About(drawn="call", happens="function call", text="backward pass"),
}
"""By the name of the kind, in the order of their numbers (a test). ``derive.kinds`` has it by kind."""
