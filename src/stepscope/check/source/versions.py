"""The versions of TensorFlow and Keras that a project is checked for."""

from __future__ import annotations

import re

from msgspec import Struct

NEWEST = (2, 21)
"""Newest version that rules were measured on."""
KERAS_3_SINCE = (2, 16)
"""First TensorFlow whose ``tf.keras`` is Keras 3."""
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?")


class Target(Struct, frozen=True, kw_only=True):
    """The versions to check for, compared with rules' ranges as (major, minor)."""

    tensorflow: tuple[int, int] = NEWEST
    keras: int = 3
    """Major version of Keras."""
    oldest: bool = False
    """Flag: the project's pin allows no older TensorFlow: it is exact, or a lower bound."""
    source: str = "newest"
    """Source of the version: ``--target-version``, a file's path, ``installed``, ``newest``."""


def parse(text: str) -> tuple[int, int] | None:
    """Major and minor of a version: ``parse("2.15.1") == (2, 15)``; None if the text contains none."""
    found = _VERSION.search(text)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else None


def target(version: tuple[int, int], source: str, keras: int | None = None, *, oldest: bool = False) -> Target:
    """The target of a TensorFlow version, with the Keras that came with it unless another is known."""
    keras = keras or (3 if version >= KERAS_3_SINCE else 2)
    return Target(tensorflow=version, keras=keras, source=source, oldest=oldest)
