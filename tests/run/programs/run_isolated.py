"""Runs a job as a trial does: run_isolated.py SESSION ARGV..., and ends as the job ended."""

import sys
from pathlib import Path

from stepscope.agent.payload import PAYLOAD
from stepscope.sandbox import isolation
from stepscope.launcher import launch
from stepscope.tables.errors import StepscopeError

options = launch.LaunchOptions(
    argv=tuple(sys.argv[2:]),
    payload=PAYLOAD,
    session=Path(sys.argv[1]),
    isolation=isolation.Isolation(),
    first_look_ns=50_000_000,
)
try:
    outcome = launch.run(options)
except StepscopeError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(*outcome.messages, sep="\n", file=sys.stderr)
launch.die_like(outcome.exit_code)
