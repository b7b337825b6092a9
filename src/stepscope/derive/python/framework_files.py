"""Which framework a file on a stack belongs to."""

from __future__ import annotations

from stepscope.model.frameworks import TITLES

AGENT = "/stepscope/agent/"
"""Folder of the agent's code, wherever it was copied to."""
_FOLDERS = {
    **dict.fromkeys(("/tensorflow/", "/keras/", "/tf_keras/"), TITLES["tensorflow"]),
    "-packages/torch/": TITLES["torch"],
    **dict.fromkeys(("-packages/jax/", "-packages/jaxlib/"), TITLES["jax"]),
}
"""Folders of frameworks' packages, and whose they are."""


def is_framework(file: str) -> bool:
    """Whether a file belongs to a framework. The agent's folders for their probes do not."""
    return bool(framework_of(file))


def framework_of(file: str) -> str:
    """The name of the framework that a file belongs to; "" for any other."""
    path = file.replace("\\", "/")
    return "" if AGENT in path else next((title for part, title in _FOLDERS.items() if part in path), "")
