"""Which frames are stepscope's own: wrappers around what is measured, and the sampler's handlers."""

from __future__ import annotations

from stepscope.derive.python.stack_samples import is_agent


def is_ours(file: str, ours: str) -> bool:
    """Whether a frame is stepscope's.

    ``ours``: the folder from which a run's agent ran. Under ``enable`` it is that of the installed package.
    """
    return is_agent(file) or bool(ours and file.startswith(ours))
