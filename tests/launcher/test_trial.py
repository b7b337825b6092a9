"""How the launcher tells the job's processes that the run is a trial."""

import json
from pathlib import Path

from stepscope.launcher import rundir
from stepscope.launcher.trial import Trial
from stepscope.wire.env import CONFIG_NAME
from stepscope.wire.trials import CONFIG_KEY, split


def test_a_trial_stands_in_the_configuration(tmp_path: Path) -> None:
    """Interventions, seconds, steps and what is switched are written; what was there stays; all steps are recorded."""
    (tmp_path / CONFIG_NAME).write_text(json.dumps({"version": 1, "slots": 64}))
    rundir.arm_trial(
        tmp_path,
        Trial(interventions=("xla-on", "stub:train.py:41"), seconds=6.0, switched="stub:train.py:41", block_s=0.25),
    )
    written = json.loads((tmp_path / CONFIG_NAME).read_text())
    assert written == {
        "version": 1,
        "slots": 64,
        "duty_cycle": False,
        CONFIG_KEY: {
            "interventions": ["xla-on", "stub:train.py:41"],
            "seconds": 6.0,
            "steps": 20,
            "switched": "stub:train.py:41",
            "block_seconds": 0.25,
            "most_seconds": 0.0,
        },
    }
    assert [split(text) for text in written[CONFIG_KEY]["interventions"]] == [("xla-on", ""), ("stub", "train.py:41")]
