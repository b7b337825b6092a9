"""Stable pseudonyms for what a session says of its user: paths, names, arguments, hosts, addresses.

Words that are not known to be public are replaced, wherever they stand: what is forgotten here is hidden, not shown.
A pseudonym is the keyed hash of the word (HMAC-SHA256), so that equal words stay equal, in other sessions packed with
the same key too, and words cannot be tried out without it.
"""

from __future__ import annotations

import builtins
import hashlib
import hmac
import keyword
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEX = 8
_SHORT = 2
"""Words of at most so many letters say nothing."""
_DEVICE = r"/(?:host|device|job|replica|task)(?=:)"
"""Parts of a device's name: /job:worker/replica:0/task:0/device:CPU:0."""
_PATH = r"(?<![\w.<])/(?:[^\s/:;,'\"()<>|*?]+/?)+"
_FILE = r"[^\s/:;,'\"()<>|*?=]+\.pyw?\b"
_ADDRESS = r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}\b"
_SHAPE = r"\[\d+(?:,\d+)*\]"
_ID = r"\b[0-9a-f]{11}-[0-9a-f]{8}\b"
"""The id of a command (``wire.commands.new_id``): stepscope names captures, and their folders, after it."""
_DOMAIN = r"\b[0-9a-f]{16}\b"
"""A clock domain (``model.session.clock_domain``)."""
_FROZEN = r"<frozen (?P<root>[^\W\d]\w*)[\w.]*>"
"""The file of a module that is part of an interpreter."""
_TEXT = re.compile(
    rf"(?P<kept>{_DEVICE}|{_SHAPE})|(?P<made>{_ID}|{_DOMAIN})|(?P<frozen>{_FROZEN})|(?P<path>{_PATH})|(?P<file>{_FILE})"
    rf"|(?P<address>{_ADDRESS})|(?P<word>[^\W\d]\w*)|(?P<number>\d{{5,}})"
)
_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>(?:_\d{1,4})*)")
_WORD = re.compile(r"[^\W\d]\w*")
_KEPT = re.compile(r"\.{0,2}|usr|lib|lib32|lib64|bin|sbin|local|home|root|tmp|var|opt|proc|sys|dev|shm|etc|self")
_PYTHON = re.compile(r"python3\.\d+|pypy3\.\d+|site-packages|dist-packages|\.?venv")
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_MADE = re.compile(r"(?P<by>__(?:inference|forward|backward)_|__autograph_generated_file)(?P<of>\w*)")
"""Names that TensorFlow makes of a function's, and AutoGraph of nothing."""
_OURS = ("arm", "stepscope")
"""Where the agent lies in a run directory."""
_PUBLIC_ROOTS = ("/usr/lib/", "/lib/", "/lib64/", "/proc/self/", "/sys/")


_TF_DATA = """
    DirectedInterleave EmptyRepeat EmptySkip EmptyTake FileReader FileWriter FiniteRepeat FiniteSkip FiniteTake
    ForeverRepeat FromTensor Iterator MemoryReader MemoryWriter Root
"""
"""Names of tf.data's iterators (tensorflow/core/kernels/data), which its model holds, but for those of its ops."""
_NAMES = Path(__file__).with_name("public_names.txt")
"""Ops of TensorFlow; layers, losses, metrics, optimizers and callbacks of Keras (scripts/gen_public_names.py)."""
_OF_DATASET = re.compile(r"(?:Experimental)?(?P<iterator>\w+?)Dataset(?P<version>V\d+)?")


@cache
def public_words() -> frozenset[str]:
    """Words that stepscope's own sources hold, Python's, TensorFlow's: field names, kinds, types of ops, modules."""
    named = _NAMES.read_text("ascii").split()
    found = {*sys.stdlib_module_names, *keyword.kwlist, *dir(builtins), *_TF_DATA.split(), *named}
    of_data = [one for name in named if (one := _OF_DATASET.fullmatch(name)) is not None]
    iterators = {one["iterator"] + version for one in of_data for version in ("", one["version"] or "")}
    found |= {iterator + does for iterator in iterators for does in ("", "Produce", "Consume")}
    for file in sorted(Path(__file__).resolve().parents[1].rglob("*.py")):
        found.update(_WORD.findall(file.read_text("utf-8")))
    return frozenset(found)


class Pseudonyms:
    """Replaces words; remembers which, so that they can be looked for afterwards."""

    def __init__(self, key: bytes) -> None:
        """Pseudonyms of this key, of 16 bytes or more."""
        self._key = key
        self.hidden: set[str] = set()
        """Words that were replaced and are not public."""
        self.shown: set[str] = set()
        """Words of the paths of public packages and of Python's own functions, which stay."""
        self.domains: dict[str, str] = {}
        """What clock domains of the session are in the copy."""
        self._done: dict[str, str] = {}
        self._learnt: set[str] = set()

    def learn(self, file: str, name: str) -> None:
        """A function of a file: its name says nothing of the user if the file is of Python or of a public package."""
        if Path(self.path(file)).name == Path(file).name:
            found = words_of(name)
            self._learnt |= found
            self.shown |= found

    @property
    def left(self) -> set[str]:
        """Words that the copy may not hold: those that were replaced and stay nowhere."""
        return self.hidden - self.shown

    def of(self, word: str) -> str:
        """The pseudonym of any word."""
        self._hide({word})
        return "w" + hmac.new(self._key, word.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_HEX]

    def text(self, text: str) -> str:
        """A text in which every word that is not public is replaced."""
        found = self._done.get(text)
        if found is None:
            found = self._done[text] = _TEXT.sub(self._replace, text)
        return found

    def argument(self, word: str) -> str:
        """A word of a command line: an option keeps its name if that is public, its value never stays."""
        if word.startswith("/"):
            return self.path(word)
        option, equals, value = word.partition("=")
        if word.startswith("-"):
            return self.text(option) + (equals + self.part(value) if equals else "")
        return self.part(word)

    def path(self, path: str) -> str:
        """A path: folders of the system stay, and what lies in Python's library or in a public package."""
        frozen = re.fullmatch(_FROZEN, path)
        if path.startswith(_PUBLIC_ROOTS) or (frozen is not None and frozen["root"] in sys.stdlib_module_names):
            return self._public(path)
        parts = path.split("/")
        made: list[str] = []
        for at, part in enumerate(parts):
            above = parts[at - 1] if at else ""
            if above.startswith("lib") and _PYTHON.fullmatch(part) and not _PACKAGES.intersection(parts):
                return "/".join([*made, self._public("/".join(parts[at:]))])
            if (above in _PACKAGES and part.partition(".")[0] in public_words()) or (above, part) == _OURS:
                return "/".join([*made, self._public("/".join(parts[at:]))])
            kept = _KEPT.fullmatch(part) or _PYTHON.fullmatch(part)
            made.append(part if kept else self.part(part))
        return "/".join(made)

    def _public(self, path: str) -> str:
        self.shown |= words_of(path)
        return path

    def part(self, part: str) -> str:
        """The name of a file or folder, or another word that is replaced as a whole: a short extension stays."""
        made = _MADE.match(part)
        if made is not None and not made["by"].endswith("_"):
            return made["by"] + self.part(part[made.end("by") :])
        stem, dot, ending = part.rpartition(".")
        if not stem or not ending.isalnum() or ending not in public_words():
            stem, dot, ending = part, "", ""
        if not stem:
            return part
        self._hide(words_of(re.sub(_ID, "", stem)))
        return f"{self.of(stem)}{dot}{ending}"

    def _hide(self, words: Iterable[str]) -> None:
        self.hidden |= {
            word for word in words if len(word) > _SHORT and _WORD.fullmatch(word) and word not in public_words()
        }

    def _replace(self, found: re.Match[str]) -> str:
        kind, text = found.lastgroup, found[0]
        if kind in {"path", "frozen"}:
            return self.path(text)
        if kind == "file":
            return self.part(text)
        if kind == "word":
            return self._word(text)
        return text if kind == "kept" else self.domains.get(text) or self.of(text)

    def is_public(self, word: str) -> bool:
        """Whether a word says nothing of the user."""
        return self._word(word, hide=False) == word

    def _stays(self, word: str) -> bool:
        return word in public_words() or word in self._learnt

    def _word(self, word: str, *, hide: bool = True) -> str:
        made = _MADE.fullmatch(word)
        if made is not None:
            return made["by"] + self._word(made["of"], hide=hide)
        numbered = _NUMBERED.fullmatch(word)
        stem, number = (numbered["stem"], numbered["number"]) if numbered is not None else (word, "")
        if len(stem) <= _SHORT or self._stays(word) or self._stays(stem):
            return word
        return self.of(stem) + number if hide else ""


def words_of(text: str) -> set[str]:
    """The words of a text, as they are hidden."""
    return {found["stem"] for word in _WORD.findall(text) if (found := _NUMBERED.fullmatch(word)) is not None}
