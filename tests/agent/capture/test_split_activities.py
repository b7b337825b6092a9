"""No activity of TensorFlow's is split between threads while a process with collective operations is traced."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest

from stepscope.agent.capture import split_activities
from stepscope.agent.capture.split_activities import CannotPreventError

JOB = """
import ctypes
import tensorflow as tf
from stepscope.agent.capture import framework_log, split_activities

def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value

place = split_activities._slot()
slot = ctypes.c_uint64.from_address(place)
tf.constant(1) + 1
before = slot.value, split_activities._writable(place)
with split_activities.without():
    assert (slot.value, split_activities._writable(place)) == before, "nothing is needed without a cluster"
tf.__internal__  # the context exists
from tensorflow.python.eager import context
context.context()._collective_ops_server_def = object()
with split_activities.without():
    assert slot.value == address(ctypes.CDLL(None).pthread_getconcurrency)
    assert split_activities._writable(place) is before[1]
    tf.constant(1) + 1
assert (slot.value, split_activities._writable(place)) == before
assert slot.value == address(getattr(framework_log.library(), split_activities._NUMBERS)) or not before[1]
context.context()._collective_ops_server_def = None
print("as before")
"""


def test_the_address_is_exchanged_and_put_back() -> None:
    """In the real library, whose table may be closed for writing; a process without a cluster is left alone."""
    if not find_spec("tensorflow"):
        pytest.skip("no TensorFlow in this environment")
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "as before\n"), done.stderr


@pytest.fixture
def in_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has given TensorFlow a cluster for collective operations."""
    module = ModuleType("tensorflow.python.eager.context")
    module.__dict__["_context"] = SimpleNamespace(_collective_ops_server_def=object())
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("in_cluster")
def test_an_unknown_machine_is_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the place of the address is not known, nothing begins."""
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(CannotPreventError, match="collective operations"), split_activities.without():
        pytest.fail("recording began")


@pytest.mark.usefixtures("in_cluster")
def test_a_program_that_uses_the_function_is_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function that stands in returns what a program has set: only 0 will do."""
    monkeypatch.setattr(split_activities, "_slot", lambda: 4096)
    libc = ctypes.CDLL(None)
    libc.pthread_setconcurrency(3)
    try:
        with pytest.raises(CannotPreventError), split_activities.without():
            pytest.fail("recording began")
    finally:
        libc.pthread_setconcurrency(0)


def test_no_framework_no_cluster() -> None:
    """A process without TensorFlow's context is left alone."""
    assert not split_activities.happen()
