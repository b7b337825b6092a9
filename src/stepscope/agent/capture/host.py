"""Types for the parts of the agent's state that captures use; the state holds the captures."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from stepscope.agent.core.graph_sizes import GraphSizes
    from stepscope.agent.core.guard import Failures, Guard
    from stepscope.agent.core.hooks import Hooks
    from stepscope.agent.core.lines import AgentLog
    from stepscope.agent.core.records import Records
    from stepscope.agent.duty_cycle import DutyCycle

    class Looking(Protocol):
        """Interface of the captures for the first look."""

        asked: int
        """Number of captures that were requested."""
        served: bool
        """Whether a profiler server was started."""
        sizes: GraphSizes
        """Sizes of the graphs traced so far."""
        profiled: Callable[[], bool]
        """Test whether the user's own profiler is running."""

        @property
        def tracers(self) -> Mapping[str, object]:
            """What can trace here."""

        def order(self, fields: dict[str, object]) -> None:
            """Carry out a command."""

    class LookHost(Protocol):
        """The state of the process, for the first look."""

        now: Callable[[], int]
        lines: AgentLog
        records: Records
        hooks: Hooks

        @property
        def captures(self) -> Looking:
            """The captures of this process."""

    class OtherProfiler(Protocol):
        """Interface that tells whether another profiler is active."""

        profiled: Callable[[], bool]
        """Test whether the user's own profiler is running."""

    class CaptureHost(Protocol):
        """The state of the process."""

        now: Callable[[], int]
        guard: Callable[[str], Guard]
        lines: AgentLog
        records: Records
        failures: Failures
        duty_cycle: DutyCycle

        @property
        def captures(self) -> OtherProfiler:
            """The captures of this process."""
