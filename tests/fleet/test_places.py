"""Names of files in the fleet."""

from __future__ import annotations

import pytest

from stepscope.fleet.places import is_library, shortened


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/home/ann/nets/train.py", "train.py"),
        ("/home/ann/nets/data/read.py", "data/read.py"),
        ("/home/ann/env/lib/python3.11/site-packages/keras/src/layer.py", "keras/src/layer.py"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "numpy/core.py"),
        ("/home/ann/.pyenv/versions/3.11.7/lib/python3.11/json/decoder.py", "json/decoder.py"),
        ("/home/ann/env/lib/libjemalloc.so.2", "libjemalloc.so.2"),
        ("/home/bob/shared/models.py", "shared/models.py"),
        ("train.py", "train.py"),
        ("train.ipynb cell 3", "train.ipynb cell 3"),
        ("<frozen importlib>", "<frozen importlib>"),
        ("", ""),
    ],
)
def test_shortened(file: str, name: str) -> None:
    """The same code has the same name wherever it is installed."""
    assert shortened(file, "/home/ann/nets") == name


def test_library() -> None:
    """What is installed, and what is part of the interpreter."""
    assert is_library("/env/lib/python3.11/site-packages/keras/a.py")
    assert is_library("<frozen importlib>")
    assert not is_library("/home/ann/nets/train.py")
