"""Put on PYTHONPATH of a program of the study, so that other tools work on it without a change of its text.

The programs of bench/dlperf ask ``time.perf_counter`` right before and right after their steady steps, at the top of
their own file: these calls mark the part that a user would profile. ``OTHER_TOOLS`` names a JSON file that says what to
do; the marks' figures are written beside it when the program ends. TensorFlow's profiler is started there and stopped
as its documentation says (``tf.profiler.experimental.start`` and ``stop``, default options). ``jit``: ``tf.function``
and Keras' ``compile`` get ``jit_compile=True`` where the program says nothing else.

Standard library only, except for TensorFlow itself; Python 3.9 and newer.
"""

from __future__ import annotations

import atexit
import functools
import json
import linecache
import os
import sys
import threading
import time
from pathlib import Path

_TASK = os.environ.pop("OTHER_TOOLS", "")
POLL = 0.02
"""Seconds between two looks at the CPU time."""


class _Steady:
    """Watches the steady steps of a program; starts and stops the profiler in them."""

    def __init__(self, task: dict) -> None:
        self.task = task
        self.said: dict = {"seconds": 0.0, "cpu_seconds": 0.0, "capture": ""}
        self._clock, self._ended, self._thread = time.perf_counter, threading.Event(), None
        self._began = (0.0, 0.0)

    def clock(self) -> float:
        """``time.perf_counter``, with a look at who asks."""
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__") == "__main__":
            line = linecache.getline(caller.f_code.co_filename, caller.f_lineno)
            if "t0 = " in line:
                self.begin()
            elif "- t0" in line:
                self.end()
        return self._clock()

    def begin(self) -> None:
        """The steady steps begin."""
        self._began = (self._clock(), time.process_time())
        if self.task.get("logdir") and self._thread is None:
            self._thread = threading.Thread(target=self.capture, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """They are over: figures, and the profiler writes what it has."""
        self.said["seconds"] += self._clock() - self._began[0]
        self.said["cpu_seconds"] += time.process_time() - self._began[1]
        self.close()

    def capture(self) -> None:
        """Profile a part of the steady steps, given in CPU seconds after their begin."""
        self._wait(self._began[1] + self.task["after"])
        import tensorflow as tf

        try:
            tf.profiler.experimental.start(self.task["logdir"])
            began = time.process_time()
            self._wait(began + self.task["length"])
            self.said["captured"] = time.process_time() - began
            tf.profiler.experimental.stop()
            self.said["capture"] = "done"
        except Exception as error:  # the tool's failure is its answer
            self.said["capture"] = f"{type(error).__name__}: {error}"
            return
        Path(self.task["out"]).write_text(json.dumps(self.said))
        os._exit(0)  # the rest of the program says nothing more of the tool

    def _wait(self, until: float) -> None:
        while time.process_time() < until and not self._ended.wait(POLL):
            pass

    def close(self) -> None:
        """Let the profiler write."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(300)

    def write(self) -> None:
        """Write the figures."""
        self.close()
        Path(self.task["out"]).write_text(json.dumps(self.said))


def _jit() -> None:
    """Compile every ``tf.function`` of the program and every Keras model with XLA."""
    import keras
    import tensorflow as tf

    function, compiled = tf.function, keras.Model.compile

    @functools.wraps(function)
    def jitted(func=None, **options):  # noqa: ANN001, ANN003, ANN202 - tf.function's own signature
        own = sys._getframe(1).f_globals.get("__name__") == "__main__"  # Keras' own loop reads input: not for XLA
        if own and options.get("jit_compile") is None:
            options["jit_compile"] = True
        return function(func, **options)

    @functools.wraps(compiled)
    def compile(self, *given, **options):  # noqa: A001, ANN001, ANN002, ANN003, ANN202 - Keras' own signature
        if not options.get("run_eagerly"):
            options["jit_compile"] = True
        return compiled(self, *given, **options)

    tf.function = jitted
    keras.Model.compile = compile


if _TASK:
    _steady = _Steady(json.loads(Path(_TASK).read_text()))
    time.perf_counter = _steady.clock
    atexit.register(_steady.write)
    if _steady.task.get("jit"):
        _jit()
