"""What PyTorch's compiler does with frames of ours. Shared by its probes.

Where the compiler has left a function of the job's (a graph break), it looks at each frame that is called there, ours
included, and would compile it. Its private C module, which ``import torch`` brings, says whether that is so on this
thread, and takes the order to leave code alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from stepscope.agent.core.foreign import Foreign


def left_alone(code: CodeType) -> str:
    """Order the compiler not to read frames of this code; what they call is looked at again. "", or why it cannot be.

    This is what its own ``skip_code`` does, which would import the compiler.
    """
    frames = _eval_frame()
    try:
        if hasattr(frames, "skip_code"):  # up to 2.5
            frames.skip_code(code)
        else:
            action = frames._FrameAction
            frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
    except (AttributeError, TypeError):
        return "the compiler takes no order to leave it alone"
    return ""


def compiler_looks() -> Callable[[], object] | None:
    """The function whose result is not None while the compiler looks at frames of this thread; None: there is none."""
    found: Callable[[], object] | None = getattr(_eval_frame(), "get_eval_frame_callback", None)
    return found


def _eval_frame() -> Foreign:
    return getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
