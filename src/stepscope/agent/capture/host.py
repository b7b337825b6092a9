"""Types for the parts of the agent's state that captures use; the state holds the captures."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stepscope.agent.core.guard import Failures, Guard
    from stepscope.agent.core.lines import Lines
    from stepscope.agent.core.records import Records
    from stepscope.agent.rest import Rest

    class Profiled(Protocol):
        """Interface that tells whether another profiler is active."""

        profiled: Callable[[], bool]
        """Test whether the user's own profiler is running."""

    class Host(Protocol):
        """The state of the process."""

        now: Callable[[], int]
        guard: Callable[[str], Guard]
        lines: Lines
        records: Records
        failures: Failures
        rest: Rest

        @property
        def captures(self) -> Profiled:
            """The captures of this process."""
