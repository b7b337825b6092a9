"""What a pprof file of a session says besides stacks: the phase of the step at each sample, and functions' modules."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.model.report.components import COMPONENTS
from stepscope.readers.stacks.pprof import Phases
from stepscope.tables.stacks import UNKNOWN

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.tables.stacks import Frame, StackProfile

OUTSIDE = "outside the steady steps"
_ROOT = re.compile(r"site-packages|dist-packages|python3\.\d+")
"""Folders that hold packages."""


def phases(profile: StackProfile, view: SessionView) -> Phases | None:
    """The component of the step at each sample of the process that makes the steps; None without steps."""
    if view.anatomy is None or view.steps is None:
        return None
    samples = profile.samples
    pids = np.array([*(thread.pid for thread in profile.threads), 0], np.int64)  # the last for an unknown thread
    known = (samples.at_ns != UNKNOWN) & (pids[samples.thread] == view.steps.worker.info.pid)
    words = [COMPONENTS[one].word if one else OUTSIDE for one in view.anatomy.component_at(samples.at_ns)]
    names, number = np.unique(np.array(words, np.str_), return_inverse=True)
    return Phases(np.where(known, number, UNKNOWN), names.tolist())


def qualified(profile: StackProfile) -> StackProfile:
    """With the module before each Python function's name: pprof sums up functions by their names alone."""
    return replace(profile, frames=[_qualified(frame) for frame in profile.frames])


def _qualified(frame: Frame) -> Frame:
    module = module_of(frame.file)
    return frame._replace(function=f"{module}.{frame.function}") if module else frame


def module_of(file: str) -> str:
    """A module's name by its file: from the folder that holds packages on, else the file's own name."""
    path = PurePosixPath(file)
    if path.suffix != ".py":
        return ""
    parts = path.with_suffix("").parts
    roots = [at for at, part in enumerate(parts) if _ROOT.fullmatch(part)]
    inner = parts[roots[-1] + 1 :] if roots else parts[-2:] if parts[-1] == "__init__" else parts[-1:]
    return ".".join(inner[:-1] if inner[-1:] == ("__init__",) else inner)
