"""The measurements of ``stepscope whatif``: public API, schema ``stepscope.whatif/1`` (additions only).

``docs/schemas/whatif-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.model.slope import WhatIfSlope
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.whatif/1"

Measure = Literal["sample", "step", "run"]
"""Measure. sample: steady time per sample, where the number of samples is known. step: mean time of a steady step. run:
the whole run, for a program without steps."""
Verdict = Literal["faster", "slower", "same", "undecided", "not-possible", "not-tried"]
"""Verdict. same: the interval lies within 3 % of no change. undecided: the interval contains no change, and more.
not-possible: ``note`` says why. not-tried: there was no time for it."""
ClaimKind = Literal[
    "constant",
    "repeated",
    "duplicate",
    "batch-only",
    "zeros",
    "padding",
    "equal-rows",
    "wide-type",
    "unused",
    "wide-integer",
]
"""What is wrong with values. constant: the same in all steps. repeated: the same in successive runs. duplicate: two ops
compute the same. batch-only: depends on the batch alone, and samples come again. zeros: nearly all numbers are 0.
padding: positions that hold nothing. equal-rows: the same computed for equal rows. wide-type: float64 that is cast.
unused: most of a result is cut off. wide-integer: arithmetic in int64 with numbers that fit into int32."""
ShareBasis = Literal["shapes", "op-times"]
"""What a claim's share is of. shapes: work, estimated from the shapes of all ops; it ranks, and is no share of time.
op-times: the time of all ops in traced steps of the unchanged job."""
Kind = Literal["gain", "ceiling"]
"""What a trial shows. gain: what can be had by a change that lasts. ceiling: the most that any change of this part can
bring, because the trial leaves the part out."""


class Choice(Struct, frozen=True, kw_only=True):
    """Something that can be tried."""

    name: str
    """As ``--try`` takes it; after a colon, what its argument is."""
    kind: Kind | Literal["look"]
    text: str
    """What it does."""
    limits: str
    """What it cannot do; "" if nothing is to be said."""


Stop = Literal["no-gain", "nothing-suggested", "time", "steps", "interrupted", "not-measured"]
"""Why ``--until-done`` ended. no-gain: no trial is a sure gain over 3 %. nothing-suggested: the last look suggests no
gain. steps: it has kept as many changes as it may. not-measured: the job with what was kept shows no steady steps."""


class WhatIfRun(Struct, frozen=True, kw_only=True):
    """One run of the program."""

    round: int
    """Round, from 1."""
    remedy: str
    """Remedy in its environment; "": none."""
    ns: int
    """Measured time; 0: the run was not possible."""
    findings: tuple[str, ...] = ()
    """Codes of findings, from severity low."""
    session: str
    kept: tuple[str, ...] = ()
    """Changes that were in effect before the remedy was added."""
    switched: bool = False
    """Whether the remedy was switched on and off in this run; ``ns`` is with it, ``findings`` are of both."""
    stage: str = ""
    """Part of the experiment: step1, step2 ..., final and left of ``--until-done``; batch or threads of a curve;
    stacks: only sampled, with what was best in ``kept``; "": the only one."""


class WhatIfNoise(Struct, frozen=True, kw_only=True):
    """The unchanged job against itself: in the same rounds, or blocks of the same processes."""

    ratio: float
    low: float
    high: float
    """Interval at 99 %."""


class WhatIfMemory(Struct, frozen=True, kw_only=True):
    """The memory of a job in some runs: medians, of its largest process, at the newest look."""

    anonymous_bytes: int
    huge_bytes: int
    """Part of it in huge pages."""
    hole_bytes: int
    """Holes between mappings on boundaries of huge pages."""
    layout: str
    """Layout of large mappings: padded | packed | mixed | few."""
    faults_per_step: float | None = None
    """Minor page faults; null: steps or faults are not known."""
    miss_ns: float | None = None
    """The most that a TLB miss costs here with so much memory in small pages; null: not measured on this machine."""
    cpu_ns_per_step: float | None = None
    """CPU time of the process that makes the steps, for each of them; null: it is not known."""
    translation_ratio: float | None = None
    """The most of the time of the steps that TLB misses can take; null: it cannot be bounded."""


class WhatIfResult(Struct, frozen=True, kw_only=True):
    """The effect of one trial."""

    remedy: str
    """Trial, as ``--try`` takes it: an environment setting or an intervention, NAME or NAME:ARGUMENT."""
    text: str
    """Effect in words."""
    ns: int
    """Time with it: the geometric mean over the pairs of ``ratio``; 0: it was not measured."""
    ratio: float
    """Time with it over time without: the geometric mean over the rounds' pairs. 0.91: 9 % less."""
    low: float
    high: float
    """Upper end of the interval at 99 %, Student's t over the logarithms of the ratios of rounds, or of ``pairs``; low
    and high are 0 with fewer than three."""
    verdict: Verdict
    kind: Kind = "gain"
    rounds: int = 0
    """Rounds in which it was measured."""
    smallest_ratio: float = 0.0
    """Smallest change that these rounds could have shown; 0: unknown."""
    keeps_results: bool = True
    """Whether the job computes the same numbers with it."""
    expected_ratio: float = 0.0
    """Share of the step that it was expected to remove; 0: nothing was expected."""
    reason: str = ""
    """Why it was tried."""
    lasting: str = ""
    """The change that makes a gain permanent, of a setting of the environment as a line for the shell that starts the
    job; of a ceiling: what to look at."""
    gone: tuple[str, ...] = ()
    """Findings of every run without it and of none with it."""
    new: tuple[str, ...] = ()
    """Findings of every run with it and of none without."""
    note: str = ""
    """Reason why it was not in effect or not possible, if so."""
    pairs: int = 0
    """Pairs of blocks of one process, one with it and one without, if it was switched on and off in its runs; 0: it was
    in effect in whole runs, each compared with the unchanged runs of its round."""
    noise: WhatIfNoise | None = None
    """Blocks of these processes without it against each other; null with fewer than three pairs, or without blocks."""
    whole_why: str = ""
    """Reason why it was in effect in whole runs although it can be switched; "" if it was switched, or cannot be."""
    memory_before: WhatIfMemory | None = None
    """Memory without it, if it changes the memory."""
    memory_after: WhatIfMemory | None = None
    """Memory with it; null if it changes no memory, or the runs ended before the first look."""
    peak_before_bytes: int = 0
    """Most resident memory that the job held in a run without it: the median over the runs; 0: unknown, or it was
    switched on and off in its runs."""
    peak_after_bytes: int = 0
    """The same with it."""
    cpu_ratio: float = 0.0
    """CPU time of a step with it over that without, if it changes the memory: the geometric mean over the rounds; 0: it
    is not known. It says what time on the wall does not, if others use the machine."""
    cpu_low: float = 0.0
    cpu_high: float = 0.0
    """Upper end of its interval at 99 %."""
    before_ns: int = 0
    """Time without it in the same pairs, of which ``ns`` is ``ratio``; 0: unknown."""


class WhatIfPlace(Struct, frozen=True, kw_only=True):
    """A line that makes ops."""

    file: str
    line: int
    function: str
    ratio: float
    """Share of its needless work in all work, as the claim's ``basis`` says."""


class WhatIfClaim(Struct, frozen=True, kw_only=True):
    """Needless work that the values of tensors show."""

    kind: ClaimKind
    ratio: float
    """Share of the needless work in all work of the compiled steps, as ``basis`` says."""
    text: str
    """What was seen."""
    remedy: str
    places: tuple[WhatIfPlace, ...] = ()
    """Lines that make the ops, most work first."""
    ops: tuple[str, ...] = ()
    """Names of the ops, most work first, a few."""
    trial: str = ""
    """Trial that times it: without these ops; "" if there is none."""
    time_ratio: float = 0.0
    """Time without these ops over time with them: the most that a way around them can bring; 0: not timed."""
    time_low: float = 0.0
    time_high: float = 0.0
    """Upper end of its interval at 99 %; low and high are 0 with fewer than three rounds."""
    note: str = ""
    """Reason why it is not timed, if so."""
    basis: ShareBasis = "shapes"


class WhatIfValues(Struct, frozen=True, kw_only=True):
    """What the value trial saw."""

    claims: tuple[WhatIfClaim, ...] = ()
    tensors: int = 0
    """Number of tensors looked at."""
    left_out: int = 0
    """Number of tensors beyond the limit."""
    steps: int = 0
    """Steps looked at as they came."""
    same_batch_steps: int = 0
    """Steps on the same batch; 0: it could not be held."""
    wall_ns: int = 0
    """Duration of the trial."""
    session: str = ""
    note: str = ""
    """Reason why nothing could be looked at, if so."""


class WhatIfStep(Struct, frozen=True, kw_only=True):
    """One step of ``--until-done``: what was tried on the job with some changes kept."""

    kept: tuple[str, ...]
    """Changes in effect in all runs of the step, as ``--try`` takes them."""
    ns: int
    """Time with them: median over the step's rounds."""
    winner: str
    """The gain that is kept from then on; "": no trial was a sure gain over 3 %."""
    results: tuple[WhatIfResult, ...]
    """What was tried, against the job with ``kept``."""
    rounds: int
    noise: WhatIfNoise | None = None
    """The job with ``kept`` against itself; null with fewer than three rounds."""


class WhatIfWay(Struct, frozen=True, kw_only=True):
    """All steps of ``--until-done``, and what is left."""

    steps: tuple[WhatIfStep, ...]
    kept: tuple[str, ...]
    """Everything that was kept."""
    lasting: tuple[str, ...]
    """What makes each of ``kept`` permanent, in the same order."""
    total: WhatIfResult | None
    """The job with everything against the job as it was, in the same rounds; null if nothing was kept, or it was ended
    early."""
    left: tuple[WhatIfResult, ...]
    """Ceilings, and gains that were not kept because they change the results, on the job with everything."""
    left_rounds: int = 0
    """Rounds in which ``left`` was measured."""
    changed_results: bool
    """Whether gains that change the results were kept (``--allow-changed-results``)."""
    stop: Stop


class WhatIfPoint(Struct, frozen=True, kw_only=True):
    """One size of a curve."""

    trial: str
    """As ``--try`` takes it; "": the unchanged job."""
    size: float
    """Factor of the batch, or number of threads; 0: the unchanged job's number of threads is not known."""
    ns: int
    """Measured time: that of the unchanged job times ``ratio``; 0: not possible."""
    rate: float
    """Samples, steps or runs per second, as the report's ``measure`` says; 0: not possible."""
    ratio: float
    """Time over that of the unchanged job, the geometric mean over the rounds."""
    low: float
    high: float
    """Upper end of the interval at 99 %; low and high are 0 with fewer than three rounds."""
    rounds: int
    peak_bytes: int
    """Most resident memory that the job held in a run of this size; 0: unknown."""
    note: str = ""
    """Reason why it was not possible, or what failed."""


class WhatIfCurve(Struct, frozen=True, kw_only=True):
    """``batch`` or ``threads`` without an argument: several sizes."""

    name: str
    points: tuple[WhatIfPoint, ...]
    """The smallest size first; the unchanged job among them."""
    knee: str | None
    """The smallest size within 5 % of the best, as ``--try`` takes it; "": the unchanged job; null: none is known."""
    lasting: str
    """The line that sets it; "" if nothing is to be changed."""
    stopped: str
    """Why there is no larger size; "" if there is none."""
    limit_bytes: int
    """Memory that the job could have held; 0: unknown."""


class WhatIfPart(Struct, frozen=True, kw_only=True):
    """A component of the unchanged job's step, and what leaving it out has saved."""

    component: str
    """Name of the component, see ``model.report.components``."""
    ratio: float
    """Share of the mean step of the first unchanged run."""
    ns: int
    """Its time per step."""
    trial: str = ""
    """The ceiling that leaves it out; "": none was measured."""
    saved_ratio: float = 0.0
    """Share of the time that this trial has saved."""
    low: float = 0.0
    high: float = 0.0
    """Interval of ``saved_ratio`` at 99 %; both 0 with fewer than three rounds."""


class WhatIfPeer(Struct, frozen=True, kw_only=True):
    """What the job wants to reach outside."""

    peer: str
    """Peer, as HOST:PORT, or unix:PATH for a service of this host; "": unknown, because it is not Python that tries."""
    attempts: int
    """Attempts in one run."""


class WhatIfReport(Struct, frozen=True, kw_only=True):
    """A program unchanged and with each remedy, in turn."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    command: tuple[str, ...]
    measure: Measure
    step: str = ""
    """Description of a step: "Keras fit", "tf.function score" ..."""
    rounds: int
    ns: int
    """Time without a remedy: median over the rounds."""
    results: tuple[WhatIfResult, ...]
    runs: tuple[WhatIfRun, ...]
    """Runs in the order in which they were made."""
    folder: str
    """Folder of the sessions and the program's output."""
    noise: WhatIfNoise | None = None
    """Null with fewer than three rounds."""
    isolated: bool = False
    """Whether files that the job wrote were thrown away after each run."""
    network: bool = True
    """Whether the job could reach the network."""
    interrupted: bool = False
    """Whether the user ended it early: it holds the complete rounds."""
    values: WhatIfValues | None = None
    """What ``--try values`` saw; null if it was not asked for."""
    trial_s: float = 0.0
    """Seconds of steady steps after which a run ended; 0: runs went on to the program's end."""
    way: WhatIfWay | None = None
    """Steps of ``--until-done``, of which ``results`` has the first; null without it."""
    curves: tuple[WhatIfCurve, ...] = ()
    slopes: tuple[WhatIfSlope, ...] = ()
    """Of the places that were delayed, in the order in which they were tried."""
    against: str = ""
    """Description of the other program: its file, or the commit that it was checked out from; "" if there is none."""
    resume: str = ""
    """Command that resumes an experiment that was ended early, or repeats its report; "" if it cannot be resumed."""
    parts: tuple[WhatIfPart, ...] = ()
    """The step, the largest component first; empty if no steps are seen."""
    peers: tuple[WhatIfPeer, ...] = ()
    """What the first run wanted to reach, the most frequent first. Without the network all attempts fail, which may
    change the job's time."""
    trackers: tuple[str, ...] = ()
    """Trackers that the first run imported; in all runs they were set offline."""
    joined: str = ""
    """Session of the unchanged job whose report has what was found; "" if there is none."""
