"""What captures ask of the agent's state, which holds them: types alone."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stepscope.agent.core.guard import Failures, Guard
    from stepscope.agent.core.lines import Lines
    from stepscope.agent.core.records import Records
    from stepscope.agent.rest import Rest

    class Profiled(Protocol):
        """Who knows what else profiles."""

        profiled: Callable[[], bool]
        """Whether the user's own profiler runs."""

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
            """What is captured."""
