"""Runs a job as a trial of ``whatif`` does, and ends as it ended: _isolated_trial.py SESSION NETWORK ARGV...

NETWORK is "network" or "quiet".
"""

import sys
from pathlib import Path

from stepscope.agent.payload import PAYLOAD
from stepscope.launcher import launch
from stepscope.sandbox import isolation
from stepscope.tables.errors import StepscopeError

if __name__ == "__main__":
    options = launch.LaunchOptions(
        argv=tuple(sys.argv[3:]),
        payload=PAYLOAD,
        session=Path(sys.argv[1]),
        budget="0%",
        isolation=isolation.Isolation(network=sys.argv[2] == "network"),
    )
    try:
        outcome = launch.run(options)
    except StepscopeError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print(*outcome.messages, sep="\n", file=sys.stderr)
    launch.die_like(outcome.exit_code)
