"""Names of interfaces, disks and GPUs, once each; tables contain their indices."""

from __future__ import annotations


class NameNumbers:
    """Numbers for names; those not stored yet wait here."""

    def __init__(self, first: int = 0) -> None:
        """Continue from number ``first``: the names before it are durable."""
        self.first = first
        self.waiting: list[str] = []
        """Names not stored yet; the first has number ``first``."""
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a name."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = self.first + len(self.waiting)
            self.waiting.append(text)
        return found

    def by_number(self) -> dict[int, str]:
        """The names that received a number since the start."""
        return {number: text for text, number in self._numbers.items()}

    def stored(self) -> None:
        """Mark the names as durable."""
        self.first += len(self.waiting)
        self.waiting.clear()
