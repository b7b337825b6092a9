"""The one name for what has no type: objects of the job and of its frameworks, whatever their version."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Foreign = Any
    """An object of somebody else's, or what it is taken for: looked at with care, and never relied upon."""
