"""What an experiment that this run was the unchanged job of has shown: the file ``captures/experiment.json``.

``stepscope whatif`` stores it when it ends. Who else was reached, other sessions and paths stay in the experiment's own
folder: a session may be given away.
"""

from __future__ import annotations

import msgspec

from stepscope.model.report.whatif import WhatIfClaim, WhatIfResult

SCHEMA = "stepscope.experiment/1"
MAX_RESULTS = 1_000
"""Number of trials, or of claims, in a file beyond which it is none of ours."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    schema: str = SCHEMA
    measure: str
    """What was compared: sample, step or run."""
    rounds: int
    results: tuple[WhatIfResult, ...] = ()
    """Trials on the unchanged job."""
    claims: tuple[WhatIfClaim, ...] = ()
    """Claims of the value trial, with their times."""
