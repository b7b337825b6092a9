"""The components of the step: all their properties, in one table.

``derive.steps.anatomy`` measures the components; nothing else has a list of them. The colours and words of the page
(``frontend/src/generated``) are generated from this table by ``make assets``, those of the report's page when it is
written.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.tables.findings import Cause, PipelineStage

ComponentName = Literal[
    "input-wait",
    "call",
    "forward",
    "backward",
    "optimizer",
    "tracing",
    "callbacks",
    "evaluation",
    "building",
    "saving",
    "host-sync",
    "gc",
    "framework",
    "other-python",
]
"""Name of a component in report.json, in evidence and in the address of a page."""
REF = "component:"
"""Beginning of a reference of evidence to a component: it claims the component's time."""


class Trait(enum.Enum):
    """A property of components: one for every question that code asks about several components."""

    HOST = 0
    """Time in which the host works or waits for input, while a device could compute."""
    DIP_EXPLAINED = 1
    """Component whose utilisation dip is only information: another detector states its cost, or it is the
    framework's."""
    STALL_EXPLAINED = 2
    """Component whose periodic stall is no stall finding: another detector states its frequency; Keras' own loop has
    nothing to change; a wait for a tensor every N steps is the device's work on those N steps."""
    RISE_EXPLAINED = 3
    """Component whose rising time is no finding: the detectors of input and tracing name it; an evaluation is as long
    as its data."""
    RECORDED_IN_GAPS = 4
    """Component whose records are written in gaps of the duty cycle, too: observed steps need not stand for them."""
    PHASE = 5
    """Component that is also a phase of the ledger, of the same name: what a turn has apart from its steps."""
    PERHAPS_WAIT = 6
    """Part of a trace in which the thread of the steps may wait for a batch, if calls of ``next`` are not recorded."""
    TORCH = 7
    """Part of a step of PyTorch: calls that its user makes, by the time that they take on the host."""


class About(Struct, frozen=True, kw_only=True):
    """Properties of one component."""

    word: str
    """Name shown to people."""
    stage: PipelineStage
    """Pipeline stage that its time counts under."""
    cause: Cause
    """Cause of avoidable time in it, if a detector knows nothing better."""
    painted: tuple[int, ...]
    """Depths at which it is painted, 1 on top: a moment belongs to the topmost that covers it. One for each of its sets
    of intervals in ``anatomy.MEASURED``; none: the time that nothing else covers, or a part of it."""
    runs: str
    """Activity as the end of a sentence: "then ..."."""
    claimed: frozenset[PipelineStage]
    """Stages whose findings may lose their time in it, if their evidence names no component."""
    light: str
    """Colour on the report's page."""
    dark: str
    """Colour on the report's page with a dark background."""
    page: str
    """Colour on the server's page, whose timeline also colours ops and kernels."""
    part: str = ""
    """Part of a traced step that its records name; "": the op trace itself shows that part."""
    part_means: str = ""
    """Description of that part, if only records can show it."""
    drawn: str = ""
    """Category of the timeline's spans that are drawn in its colour."""
    traits: tuple[Trait, ...] = ()


_COMPUTE: frozenset[PipelineStage] = frozenset({"forward-backward"})
_INPUT: frozenset[PipelineStage] = frozenset({"raw-input", "preprocessing"})
_NONE: frozenset[PipelineStage] = frozenset()
_API: Cause = "API: inefficient API usage"
_PYTHON: Cause = "Python: interpreter overhead"

COMPONENTS: dict[ComponentName, About] = {
    "input-wait": About(
        word="input wait",
        stage="preprocessing",
        cause="Data: inefficient data preprocessing",
        painted=(9,),
        runs="the steps wait for input",
        claimed=_INPUT,
        light="#e69f00",
        dark="#e69f00",
        page="#d55e00",
        drawn="input",
        traits=(Trait.HOST, Trait.RISE_EXPLAINED, Trait.PERHAPS_WAIT),
    ),
    "call": About(
        word="compute",
        stage="forward-backward",
        cause=_PYTHON,
        painted=(11,),
        runs="the compiled step itself takes longer",
        claimed=_COMPUTE,
        light="#0072b2",
        dark="#3592d0",
        page="#0072b2",
        drawn="call",
    ),
    "forward": About(
        word="forward pass",
        stage="forward-backward",
        cause=_PYTHON,
        painted=(),
        runs="the forward pass takes longer",
        claimed=_COMPUTE,
        light="#117733",
        dark="#4fa96b",
        page="#117733",
        traits=(Trait.TORCH,),
    ),
    "backward": About(
        word="backward pass",
        stage="forward-backward",
        cause=_PYTHON,
        painted=(12,),
        runs="the backward pass takes longer",
        claimed=_COMPUTE,
        light="#332288",
        dark="#9a8fd9",
        page="#332288",
        traits=(Trait.TORCH,),
    ),
    "optimizer": About(
        word="optimizer",
        stage="forward-backward",
        cause=_PYTHON,
        painted=(13,),
        runs="the optimizer takes longer",
        claimed=_COMPUTE,
        light="#aa4466",
        dark="#d9809b",
        page="#aa4466",
        traits=(Trait.TORCH,),
    ),
    "tracing": About(
        word="tracing",
        stage="none",
        cause=_PYTHON,
        painted=(7,),
        runs="a function is traced",
        claimed=_COMPUTE,
        light="#d55e00",
        dark="#d55e00",
        page="#7b5fb0",
        part="compile",
        drawn="tracing",
        traits=(Trait.DIP_EXPLAINED, Trait.STALL_EXPLAINED, Trait.RISE_EXPLAINED, Trait.RECORDED_IN_GAPS, Trait.PHASE),
    ),
    "callbacks": About(
        word="callbacks",
        stage="output-processing",
        cause=_API,
        painted=(2, 5),
        runs="callbacks run",
        claimed=_NONE,
        light="#cc79a7",
        dark="#cc79a7",
        page="#cc79a7",
        part="callbacks",
        part_means="callbacks and hooks",
        drawn="callbacks",
        traits=(Trait.HOST, Trait.DIP_EXPLAINED),
    ),
    "evaluation": About(
        word="evaluation",
        stage="none",
        cause=_PYTHON,
        painted=(3,),
        runs="the model is evaluated",
        claimed=_NONE,
        light="#882255",
        dark="#bb5a8c",
        page="#17a2b8",
        part="evaluation",
        part_means="validation",
        traits=(Trait.DIP_EXPLAINED, Trait.STALL_EXPLAINED, Trait.RISE_EXPLAINED, Trait.RECORDED_IN_GAPS, Trait.PHASE),
    ),
    "building": About(
        word="building",
        stage="none",
        cause=_PYTHON,
        painted=(6,),
        runs="a model or a graph is built",
        claimed=_INPUT,
        light="#44608c",
        dark="#8ba6cf",
        page="#a0522d",
        part="building",
        part_means="building models and graphs",
        drawn="building",
        traits=(Trait.RECORDED_IN_GAPS, Trait.PHASE),
    ),
    "saving": About(
        word="saving",
        stage="storage",
        cause=_API,
        painted=(1,),
        runs="something is saved",
        claimed=_NONE,
        light="#009e73",
        dark="#1fb389",
        page="#b8860b",
        part="saving",
        part_means="checkpoints and summaries",
        drawn="saving",
        traits=(Trait.HOST, Trait.DIP_EXPLAINED, Trait.STALL_EXPLAINED, Trait.RECORDED_IN_GAPS, Trait.PHASE),
    ),
    "host-sync": About(
        word="host sync",
        stage="device-to-host",
        cause=_PYTHON,
        painted=(4, 10),
        runs="the host waits for a tensor",
        claimed=_NONE,
        light="#56b4e9",
        dark="#56b4e9",
        page="#56b4e9",
        traits=(Trait.STALL_EXPLAINED,),
    ),
    "gc": About(
        word="garbage collection",
        stage="output-processing",
        cause=_PYTHON,
        painted=(8,),
        runs="garbage is collected",
        claimed=_NONE,
        light="#8a8a2a",
        dark="#adad4a",
        page="#8c564b",
        part="gc",
        part_means="Python's garbage collector",
        drawn="gc",
        traits=(Trait.HOST,),
    ),
    "framework": About(
        word="framework",
        stage="output-processing",
        cause=_PYTHON,
        painted=(14,),
        runs="the framework's own loop works",
        claimed=_COMPUTE | _INPUT,
        light="#9fb3c8",
        dark="#9fb3c8",
        page="#6b7280",
        part="framework",
        traits=(Trait.HOST, Trait.DIP_EXPLAINED, Trait.STALL_EXPLAINED),
    ),
    "other-python": About(
        word="other Python",
        stage="output-processing",
        cause=_PYTHON,
        painted=(),
        runs="Python of the loop runs",
        claimed=_INPUT,
        light="#f0d942",
        dark="#ece07a",
        page="#009e73",
        drawn="python",
        traits=(Trait.HOST, Trait.PERHAPS_WAIT),
    ),
}
"""Components in the order of the report's columns."""

PAINTED: tuple[tuple[ComponentName, int], ...] = tuple(
    (name, index)
    for _, name, index in sorted(
        (depth, name, index) for name, about in COMPONENTS.items() for index, depth in enumerate(about.painted)
    )
)
"""Painting order, topmost first: a component, and the index of its set of intervals."""
REST: ComponentName = "other-python"
"""Component of the time that nothing else covers."""


def components_with(trait: Trait) -> tuple[ComponentName, ...]:
    """Components that have a trait, by name: sums over them do not depend on the table's order."""
    return tuple(sorted(name for name, about in COMPONENTS.items() if trait in about.traits))


def components_of(stage: PipelineStage) -> tuple[ComponentName, ...]:
    """Components that count under a pipeline stage, by name."""
    return tuple(sorted(name for name, about in COMPONENTS.items() if about.stage == stage))


def claimed_by(stage: PipelineStage) -> frozenset[str]:
    """Components that findings of a stage may lose their time in; none named: in any."""
    return frozenset(name for name, about in COMPONENTS.items() if stage in about.claimed)


def stage_in_step(component: ComponentName | Literal[""]) -> PipelineStage:
    """The stage of time within a step, by component; "": unknown.

    Time between steps elsewhere counts as output if it interrupts a step.
    """
    if not component:
        return "none"
    stage = COMPONENTS[component].stage
    return "output-processing" if stage == "none" else stage
