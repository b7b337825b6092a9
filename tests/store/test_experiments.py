"""The file of what an experiment has shown: written, read back, packed, and hostile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfResult
from stepscope.model.session.experiment import MAX_RESULTS, Experiment
from stepscope.store import bundle, experiments, open_session
from stepscope.tables import layout

RESULT = WhatIfResult(remedy="prefetch", text="", ns=1, ratio=0.5, low=0.4, high=0.6, verdict="faster")
CLAIM = WhatIfClaim(
    kind="zeros", ratio=0.5, text="", remedy="", places=(WhatIfPlace(file="a.py", line=1, function="", ratio=0.5),)
)
GOOD = Experiment(measure="step", rounds=3, results=(RESULT,), claims=(CLAIM,))


def changed(**fields: object) -> bytes:
    """The file with another result."""
    return msgspec.json.encode(msgspec.structs.replace(GOOD, results=(msgspec.structs.replace(RESULT, **fields),)))


def test_round_trip(made: Path, tmp_path: Path) -> None:
    """What was stored is what the session has, and what a packed one has; it may be stored again."""
    experiments.write(made, msgspec.structs.replace(GOOD, rounds=1))
    experiments.write(made, GOOD)
    assert open_session(made).experiment == GOOD
    packed = tmp_path / "packed.stepscope.zip"
    bundle.pack(made, packed)
    assert open_session(packed).experiment == GOOD


def test_a_session_without_it(made: Path) -> None:
    """Most sessions have none."""
    assert open_session(made).experiment is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schema": "other/9", "measure": "step", "rounds": 1}',
        changed(ratio=-0.5),
        changed(ratio=0.7),
        changed(verdict="rm -rf"),
        changed(high=1e999).replace(b"null", b"1e999"),
        msgspec.json.encode(msgspec.structs.replace(GOOD, claims=(msgspec.structs.replace(CLAIM, ratio=-1.0),))),
        msgspec.json.encode(msgspec.structs.replace(GOOD, claims=(CLAIM,) * (MAX_RESULTS + 1))),
        b"x" * (experiments.MAX_BYTES + 1),
    ],
    ids=["empty", "list", "schema", "negative", "outside", "verdict", "infinite", "share", "many", "large"],
)
def test_a_hostile_file_costs_itself_only(made: Path, data: bytes) -> None:
    """The session opens without it, and says so."""
    path = made / layout.EXPERIMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    session = open_session(made)
    assert session.experiment is None
    assert any(layout.EXPERIMENT in d.text for d in session.manifest.diagnostics)
