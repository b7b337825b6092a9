"""Runs small programs as trials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import copies

from stepscope.model.log.intervention import BlockEnded, DelayEnded, InterventionEnded

if TYPE_CHECKING:
    from tests.agent.conftest import Armed

    from stepscope.model.log.events import AnyEvent

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}
NEVER = 3_600.0
"""Seconds after which a trial would end early that is to run to its end."""


@dataclass(frozen=True, kw_only=True)
class Trialled:
    """What is left of a trial."""

    output: str
    errors: str
    code: int
    lines: list[AnyEvent]

    @property
    def interventions(self) -> dict[str, InterventionEnded]:
        """Lines of the interventions, by name."""
        return {line.name: line for line in self.lines if isinstance(line, InterventionEnded)}

    @property
    def blocks(self) -> list[BlockEnded]:
        """Lines of the blocks, in order."""
        return [line for line in self.lines if isinstance(line, BlockEnded)]

    @property
    def delay(self) -> DelayEnded:
        """What was found out of the delayed place."""
        return next(line for line in self.lines if isinstance(line, DelayEnded))

    def outcome(self, name: str) -> tuple[str, int, str]:
        """(outcome, count, text) of an intervention."""
        line = self.interventions[name]
        return line.outcome, line.count, line.text


def run(
    armed: Armed,
    program: str | Path,
    *interventions: str,
    seconds: float = NEVER,
    steps: int = 20,
    own_import: bool = False,
) -> Trialled:
    """Run a program (a script's path, or source) with interventions in effect.

    ``own_import``: in a process that imports the framework itself, for interventions that act on names which the
    framework's modules copy from each other meanwhile.
    """
    trial = {"interventions": list(interventions), "seconds": seconds, "steps": steps}
    return _run(armed, program, trial, own_import=own_import)


def switch(armed: Armed, program: str | Path, intervention: str, *, most_s: float = 0.0) -> Trialled:
    """Run a program with an intervention switched on and off in blocks of a quarter of a second; ``most_s``: delays."""
    trial: dict[str, object] = {"interventions": [intervention], "seconds": 5.0, "switched": intervention}
    trial.update(block_seconds=0.25, most_seconds=most_s)
    return _run(armed, program, trial)


def _run(armed: Armed, program: str | Path, trial: dict[str, object], *, own_import: bool = False) -> Trialled:
    armed.configure(trial=trial, duty_cycle=False)
    result = (
        armed.start(program, env=QUIET) if own_import else copies.run(program, armed.environment(**QUIET), armed.folder)
    )
    lines = [line for process in armed.processes() for line in process.lines]
    return Trialled(output=result.stdout, errors=result.stderr, code=result.returncode, lines=lines)
