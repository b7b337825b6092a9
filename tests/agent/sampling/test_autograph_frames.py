"""Stacks of code that AutoGraph made, with the real TensorFlow: they name the user's functions and lines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.agent.conftest import Armed

from stepscope.model.log.events import Code, Stack

pytestmark = [
    pytest.mark.tf,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="no TensorFlow in this environment"),
]
PROGRAM = '''"""Looks at its own stack while a tf.function is traced, and from another thread for its line."""

import sys
import threading

import tensorflow as tf

from stepscope.agent import state
from stepscope.agent.core import autograph
from stepscope.agent.sampling.stacks import StackTable

seen, places = [], []


class Model:
    def grow(self, x):
        for turn in range(3):
            x = [x * value for value in (look(turn),)][0]
        return x


@tf.autograph.experimental.do_not_convert
def look(turn):
    seen.append(StackTable(state.CURRENT).stack(sys._getframe()))
    frame = sys._getframe()
    while autograph.PREFIX not in frame.f_code.co_filename:
        frame = frame.f_back
    place = frame.f_code.co_filename, frame.f_lineno
    for elsewhere in (False, True):
        thread = threading.Thread(target=lambda: places.append(autograph.place_of(*place)))
        if elsewhere:
            thread.start()
            thread.join()
        else:
            thread.run()
    return 1.0


tf.function(Model().grow)(tf.constant(1.0))
print(seen[0][1], places[0] == places[1], places[1][1])
'''
LOOP, BODY = 17, 18


def test_stacks_name_the_users_lines(armed: Armed, tmp_path: Path) -> None:
    """The loop and its body are frames of the user's function; no generated file is one."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = armed.start(program, env={"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"})
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"True True {BODY}\n"
    (process,) = armed.processes()
    codes = {code.id: code for code in process.of(Code)}
    frames = [
        [(codes[code].function, line) for code, line in stack.frames if codes[code].file == str(program)]
        for stack in process.of(Stack)
    ]
    (stack,) = {tuple(found) for found in frames if any(function == "look" for function, _ in found)}
    lines = [line for function, line in stack if function.endswith("grow")]
    assert (lines[0], set(lines[1:])) == (LOOP, {BODY})
    assert all(codes[code].own for code, _ in process.of(Stack)[0].frames if codes[code].file == str(program))
