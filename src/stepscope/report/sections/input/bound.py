"""The report's part on what the input could reach."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.causes.input import input_bound, source_change
from stepscope.derive import steps_view
from stepscope.derive.input import bound as model
from stepscope.model.report.input_bound import InputBound, InputEdit, InputStage, RateOnCores
from stepscope.report.sections.input import chains, edits_trial
from stepscope.tables.errors import DamagedError, StepscopeError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.causes.input.input_bound import Edit
    from stepscope.causes.input.input_bound import InputBound as Found
    from stepscope.derive.view import SessionView
    from stepscope.model.log.events import DatasetMade
    from stepscope.model.report.input_bound import RateUnit
    from stepscope.tables.place import Place

FAILED = "DX076"
"""The input's bound could not be computed."""
MIN_GAIN = 1.1
"""Rate at best over that of now, from which it is worth a line."""
BINDING = {
    "cores": "the cores bind",
    "step": "then the step binds",
    "disk": "the disk binds",
    "network": "the link binds",
}


def build(view: SessionView) -> tuple[InputBound | None, tuple[Diagnostic, ...]]:
    """What the input could reach; None without steps, without tf.data's model, or if no edit can be made."""
    try:
        return _build(view), ()
    except DamagedError:
        raise
    except (StepscopeError, ArithmeticError, LookupError, ValueError) as error:  # tf.data's model, and users' sources
        text = f"what the input could reach was not computed: {type(error).__name__}: {error}"
        return None, (Diagnostic(code=FAILED, text=text),)


def _build(view: SessionView) -> InputBound | None:
    steps = steps_view.of(view)
    found = steps.get(input_bound.build) if steps is not None else None
    if found is None:
        return None
    consumer = found.work.layout.consumer
    unit: RateUnit = "samples" if found.samples else "batches"
    each = found.samples or 1.0

    def rate(ns: float) -> float:
        return each * 1e9 / ns if ns > 0 else 0.0

    datasets = steps.pipeline.datasets if steps is not None else ()
    methods = {made.id: source_change.method(made) for made in datasets}
    ordinals = chains.ordinals(datasets, methods)
    text_of_changes, why = _diff(view, found.edits, methods, ordinals)
    now = rate(found.now_ns)
    best = found.best
    stage = found.work.stages[best.stage].name if best.stage >= 0 else ""
    edits = tuple(_edit(view, one, rate(one.after.ns), ordinals) for one in found.edits)
    trial = edits_trial.of(view, found.edits, ordinals)
    without = max(now, rate(found.without_cache.ns))
    rates = (now, without, max(now, rate(best.ns)))
    return InputBound(
        text=_text(edits, unit, rates, _binds(best.binds, stage), consumer.cores) if found.fits else _unknown(found),
        unit=unit,
        now_per_s=now,
        best_per_s=rates[-1] if found.fits else now,
        without_cache_per_s=without if found.fits else now,
        binds=best.binds,
        stage=stage,
        cores=consumer.cores,
        step_ns=round(consumer.step_ns),
        step_cpu_ns=round(consumer.step_cpu_ns),
        memory_bytes=float(view.session.manifest.host.memory_bytes),
        too_large_bytes=found.too_large,
        edits=edits,
        trial=trial,
        what_if=_what_if(view, trial),
        diff=text_of_changes,
        no_diff=why,
        by_cores=tuple(_on_cores(found, rate, cores) for cores in _core_counts(found)),
        stages=tuple(
            InputStage(
                name=work.name,
                file=place.file if (place := _place(view, one.datasets)) is not None else "",
                line=place.line if place is not None else 0,
                cpu_ns=round(work.cpu_ns),
                blocked_ns=round(work.blocked_ns),
                parallel=work.most > 1,
                elements=work.elements,
                bytes=work.bytes,
            )
            for work, one in zip(found.work.layout.stages, found.work.stages, strict=True)
        ),
    )


def _core_counts(found: Found) -> list[int]:
    return model.core_counts(found.as_it_is, found.layout) if found.fits else []


def _on_cores(found: Found, rate: Callable[[float], float], cores: int) -> RateOnCores:
    now = model.pace(model.on_cores(found.as_it_is, cores))
    best = model.pace(model.on_cores(found.layout, cores))
    return RateOnCores(
        cores=cores,
        now_per_s=rate(found.factor * now.ns),
        best_per_s=rate(found.factor * min(best.ns, now.ns)),
        binds=best.binds,
    )


def _place(view: SessionView, made: tuple[DatasetMade, ...]) -> Place | None:
    return next((p for d in made if (p := view.dataset_place(d)) is not None), None)


def _edit(view: SessionView, edit: Edit, per_s: float, ordinals: Mapping[int, tuple[int, int]]) -> InputEdit:
    place = view.dataset_place(edit.made) if edit.made is not None else None
    return InputEdit(
        kind=edit.kind,
        text=edit.text,
        file=place.file if place is not None else "",
        line=place.line if place is not None else 0,
        per_s=per_s,
        binds=edit.after.binds,
        note=edit.note,
        bytes=edit.bytes,
        what_if=_what_if(view, edit.trial or edits_trial.of(view, (edit,), ordinals)),
    )


def _what_if(view: SessionView, trial: str) -> str | None:
    """The command that makes a trial; None if there is no trial or no command."""
    manifest = view.session.manifest
    if not trial or manifest.mode != "run" or not manifest.command:
        return None
    return shlex.join(["stepscope", "whatif", "--try", trial, "--", *manifest.command])


def _binds(binds: str, stage: str) -> str:
    return BINDING.get(binds, f"{stage} binds, on one thread")


def _text(edits: tuple[InputEdit, ...], unit: str, rates: tuple[float, float, float], binds: str, cores: float) -> str:
    """The answer in a sentence: now, at best without more memory, with a cache."""
    now, without, best = rates
    on = f"{cores:.3g} core{'' if cores == 1 else 's'}"
    if best < MIN_GAIN * now:
        return f"{format_rate(now)} {unit}/s; no edit of the pipeline that is known here gains on {on}: {binds}"
    most = f"{format_rate(best)} at best on {on} with the code of its functions as it is (modelled; {binds})"
    said = f"{format_rate(now)} {unit}/s now, {most}"
    if not edits:
        return f"{said}; no edit of the pipeline alone that is known here reaches it"
    said += ": "
    said += ", then ".join(_edit_text(edit) for edit in edits)
    if any(edit.kind == "cache" for edit in edits):
        said += f"; {format_rate(without)} without a cache"
    return said


def _unknown(found: Found) -> str:
    took, modelled = format_ns(round(found.now_ns)), format_ns(round(found.modelled_ns))
    return f"a batch took {took}, and by tf.data's counters {modelled}: what the input could reach is not known"


def _edit_text(edit: InputEdit) -> str:
    said = edit.text + (f" (line {edit.line})" if edit.line else "")
    if edit.bytes:
        said += f", {format_bytes(edit.bytes)} of memory"
    return f"{said} {edit.note}".rstrip()


def _diff(
    view: SessionView,
    edits: tuple[Edit, ...],
    methods: Mapping[int, str],
    ordinals: Mapping[int, tuple[int, int]],
) -> tuple[str, str]:
    """The edits as a diff, and why some are not in it. An edit that cannot be made in the text is left out whole."""
    texts: dict[str, str] = {}
    why: list[str] = []
    changes = [(edit, change) for edit in edits for change in edit.changes]
    files = list(dict.fromkeys(change.made.file for _, change in changes))
    found = ""
    for file in files:
        source = view.source_of(file)
        if source is None:
            why.append(f"the text of {view.place(file, 1).file} is not in the session")
            continue
        mine = [change for _, change in changes if change.made.file == file]
        try:
            texts[file] = chains.edited(source, mine, methods, ordinals)
        except chains.RefusedError as error:
            why.append(str(error))
            continue
        found += chains.diff(view.place(file, 1).file, source, texts[file])
    if any(not edit.changes for edit in edits):
        why.append("one of the edits stands at no line of the user's")
    return found, "; ".join(why)
