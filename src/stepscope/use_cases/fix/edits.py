"""One table: which edit each detector has, or why none.

An edit is a fix of the checker whose rule sees what the detector sees, or those edits of the tf.data chain that the
report's part Input predicts. What a fix may change is written down here for each rule whose fixes need review.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.check.registry import ALL as RULES
from stepscope.detectors.registry import EVERY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.check.hits import FixPlan
    from stepscope.model.report.fix import EditClass

ALLOW: Mapping[EditClass, str] = {
    "order": "random operations or the data come in another order",
    "less": "less work is done: fewer steps, or samples left out",
}
"""Words of ``--allow``, with what each lets happen."""
WEAKEST: tuple[EditClass, ...] = ("less", "order", "results", "same", "rule")
"""From the class that may change most."""
REVIEWED: Mapping[str, EditClass] = {
    "KER001": "same",
    "KER003": "results",
    "KER005": "results",
    "KER011": "less",
    "OPS001": "results",
    "OPS003": "same",
    "OPS004": "same",
    "TFD001": "order",
    "TFD004": "results",
    "TFD005": "order",
    "TFD009": "same",
    "TFD010": "order",
    "TFD016": "results",
    "TFD017": "order",
    "TFD020": "results",
    "TFF001": "same",
    "TFF002": "results",
    "TFF003": "same",
    "TFF004": "same",
    "TFF005": "same",
    "TFF006": "same",
    "TFF009": "results",
    "TFF011": "results",
    "TFF014": "results",
    "VEC001": "same",
    "VEC006": "same",
}
"""What a fix that needs review (``check --unsafe-fixes``) may change, by its rule."""
SAFE_ONLY = frozenset({"TFD002", "TFD013", "TFF012"})
"""Rules all of whose fixes are safe: they change nothing."""
OF_INPUT: Mapping[str, EditClass] = {
    "prefetch": "rule",
    "parallel": "results",
    "batch-first": "same",
    "earlier": "results",
    "cache": "results",
    "take-first": "results",
}
"""What an edit of the tf.data chain may change."""
INPUT = "input"
"""Where such an edit comes from, in place of a rule."""
OF_CHAIN = frozenset({"GEN003", "INP001", "INP005", "INP006", "INP007", "INP010", "INP011", "INP012"})
"""Detectors whose loss edits of the tf.data chain may end."""
_MACHINE = "the machine or its settings, not the program's lines: stepscope whatif tries settings"
_MEMBERS = "several members have part in it, and fix runs one program"
_DEVICE = "what to change depends on the model and on the device"
_MODEL = "another model, batch or precision, which only a person can decide"
_BY_HAND = "the code has to be rewritten by hand"
_NOT_YET = "an edit is possible, and none is written yet"
_PART = "it names a part of the time, not a cause"
_ONCE = "it is paid once, and no rule knows its lines"
_WHY = {
    "CFG001 CFG003 CFG007 DSK001 KRN006 MEM002 MEM003 NET001 NET002 NET003 UTL001": _MACHINE,
    "DST001 DST002 DST003 DST004 DST005 DST006 DST007 DST010 DST011": _MEMBERS,
    "GPU001 GPU002 KRN001 KRN002 KRN003 KRN005 LAY001": _DEVICE,
    "CFG002 CFG004 GPU004 GRF009 GRF011 GRF012 GRF015 GRF017 GRF022 GRF023 INP008 KRN004 KRN007 GPU003": _MODEL,
    "EXP001 EXP002": "it is the result of an experiment, whose trial says what lasts",
    "GRF005 GRF006 GRF013 GRF014 GRF016 GRF018 GRF019 GRF020 GRF021": _BY_HAND,
    "HST001 HST008 HST009 HST011 HST012 HST014 HST015 HST016 HST017 HST018 INP002 INP003 INP014 MEM005": _BY_HAND,
    "GRF025 HST019 HST020": _MODEL,
    "CFG005 CFG006 GRF010 GRF024 HST004 HST005 HST006 HST010 HST013 INP009 INP013 INP015 INP016 INP017": _NOT_YET,
    "INI001 INI002": _ONCE,
    "GEN001 GEN002 GEN004 GEN005 GEN006 GEN007 GEN008 GEN009 GEN010 GEN011 GEN012 GEN013 GEN014 GEN015": _PART,
}
WHY_NONE: Mapping[str, str] = {code: why for codes, why in _WHY.items() for code in codes.split()}
"""Why a detector has no edit."""


class DetectorEdits(Struct, frozen=True, kw_only=True):
    """A line of the table."""

    code: str
    name: str
    rules: tuple[str, ...]
    """Rules whose fixes are its edits."""
    input: bool
    """Whether edits of the tf.data chain are."""
    why: str
    """Why it has none; "" if it has one."""

    @property
    def text(self) -> str:
        """The edits, or why there is none."""
        named = [f"{code} ({class_words(code)})" for code in self.rules]
        return "; ".join([*named, *(["edits of the tf.data chain"] if self.input else [])]) or f"none: {self.why}"


def table() -> tuple[DetectorEdits, ...]:
    """A line for each detector."""
    return tuple(_line(detector.code, detector.name) for detector in EVERY)


def class_words(rule: str) -> str:
    """Classes of a rule's edits."""
    reviewed = REVIEWED.get(rule, "")
    return reviewed if reviewed and rule not in {"OPS001", "TFD001"} else f"rule or {reviewed}" if reviewed else "rule"


def class_of(rule: str, plan: FixPlan) -> EditClass:
    """What a fix may change."""
    return "rule" if plan.safety == "safe" else REVIEWED.get(rule, "results")


def weakest(classes: frozenset[EditClass]) -> EditClass:
    """The class of several edits together."""
    return next((one for one in WEAKEST if one in classes), "results")


def _line(code: str, name: str) -> DetectorEdits:
    fixable = REVIEWED.keys() | SAFE_ONLY
    rules = tuple(rule.code for rule in RULES if code in rule.related and rule.code in fixable)
    chain = code in OF_CHAIN
    return DetectorEdits(
        code=code, name=name, rules=rules, input=chain, why="" if rules or chain else WHY_NONE.get(code, "")
    )
