"""The wire is tested with what the agent writes: its fixtures serve here too."""

from tests.agent.conftest import armed, nothing_left

__all__ = ["armed", "nothing_left"]
