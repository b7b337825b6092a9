"""Optimizers of PyTorch that have a fused kernel for the CPU, and what it saves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.causes.host.optimizer_work import OptimizerWork
    from stepscope.derive.steps_view import StepsView

SAVED: dict[str, tuple[float, float, float]] = {
    "Adam": (0.6, 0.75, 0.9),
    "AdamW": (0.6, 0.75, 0.9),
    "Adagrad": (0.5, 0.7, 0.9),
}
"""Part of an optimizer's time that its fused kernel saves: at least, usually, at most (torch-optimizers.md)."""
TRAINER = '; in TrainingArguments of transformers optim="adamw_torch_fused"'
FIRST = (2, 4)
"""Version of PyTorch from which these kernels exist on the CPU."""


def remedy(view: StepsView, work: OptimizerWork) -> Remedy | None:
    """The remedy, where it exists and is not in use."""
    version = re.match(r"(\d+)\.(\d+)", view.frameworks.get("torch", ""))
    known = version is not None and (int(version[1]), int(version[2])) >= FIRST
    if not known or work.seen.fused or work.seen.cls not in SAVED:
        return None
    return Remedy(
        id="fused-optimizer",
        text=f"give it its fused kernel: torch.optim.{work.seen.cls}(..., fused=True)"
        f"{TRAINER if work.seen.cls == 'AdamW' else ''}",
    )
