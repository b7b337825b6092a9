"""The one name for untyped values: objects of the job and its frameworks, in any version."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Foreign = Any
    """An object that is not ours, of any type: inspected with care, never relied upon."""
