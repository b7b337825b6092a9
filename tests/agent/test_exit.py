"""What the agent does last of all as a process ends."""

from __future__ import annotations

from tests.agent.conftest import Armed

TRIES = 5
"""A busy machine may leave the other thread without a CPU."""
ENDS_LATE = """
import atexit, os, sys, threading
held = threading.Lock()
held.acquire()
def late():
    held.acquire()
    os.write(1, b"said\\n")
threading.Thread(target=late, daemon=True).start()
atexit.register(held.release)
sys.setswitchinterval(10)
"""


def test_a_thread_that_ends_with_the_program_may_end(armed: Armed) -> None:
    """It goes on in the last exit handler but ours, as the feeder of a queue does, and gets the interpreter's lock."""
    (armed.folder / "torch.py").write_text(ENDS_LATE)
    body = f"import sys\nsys.path.append({str(armed.folder)!r})\nimport torch\n"
    assert "said\n" in [armed.start(body).stdout for _ in range(TRIES)]
