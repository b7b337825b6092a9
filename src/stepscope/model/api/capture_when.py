"""The condition of ``stepscope trace --when``: what must happen in a capture for it to be kept."""

from __future__ import annotations

import re

from msgspec import Struct

from stepscope.tables.errors import UsageError

SAVING, EPOCH_END, RETRACE, SLOW_STEP = "saving", "epoch-end", "retrace", "slow-step"
TEXTS = {
    SAVING: "a checkpoint or summary is written",
    EPOCH_END: "an epoch ends",
    RETRACE: "a function is traced again",
    SLOW_STEP: "a step is slow",
}
"""What happens under each word, as the end of a sentence with "when"."""
_CODE = re.compile(r"[A-Z]{3}\d{3}")


class When(Struct, frozen=True, kw_only=True):
    """A condition."""

    word: str
    """One of ``TEXTS``, or the code of a detector."""

    @property
    def code(self) -> str:
        """Code of the detector whose component of the step must be in the capture; "" for another condition."""
        return "" if self.word in TEXTS else self.word

    @property
    def text(self) -> str:
        """What must happen, as the end of a sentence with "when"."""
        return TEXTS.get(self.word) or f"a step shows what {self.word} found"


def parse(text: str) -> When:
    """The condition that a text names.

    Raises:
        UsageError: it names none.
    """
    word = text.strip()
    if word in TEXTS or _CODE.fullmatch(word):
        return When(word=word)
    raise UsageError(f"--when {text!r}: expected {', '.join(TEXTS)}, or the code of a detector such as HST004")
