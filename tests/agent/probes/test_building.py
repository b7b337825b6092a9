"""Whose line made a session or a server."""

from __future__ import annotations

import sys

import pytest

from stepscope.agent.probes.tensorflow.building import _outside


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("/usr/lib/python3/site-packages/tensorflow/python/client/session.py", "test_the_line_is_the_users"),
        ("/home/me/tensorflow/train.py", "make"),
    ],
)
def test_the_line_is_the_users(file: str, names: str) -> None:
    """A class of TensorFlow's calls its base class in one file; a program in a folder of that name is the user's."""
    made: dict[str, object] = {"sys": sys}
    exec(compile("def make():\n    return sys._getframe()\n", file, "exec"), made)
    make = made["make"]
    assert callable(make)
    assert _outside(make()).f_code.co_name == names
