"""Runs programs before and after a fix in warm interpreters: TensorFlow is imported once, not once per program."""

from __future__ import annotations

import json
import math
import os
import re
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

WORKER = Path(__file__).with_name("_warm_worker.py")
TOLERANCE = 1e-5
"""Relative tolerance of 32-bit floats: graphs and batches add in another order than eager code and rows."""
_BLANKS = re.compile(r"[ \n]+")
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Result of one program."""

    stdout: str = ""
    values: dict[str, object] = field(default_factory=dict)
    """Its public variables at the end, described with their types."""
    error: str = ""
    """The exception that ended it; "" for none."""


class Warm:
    """An interpreter that runs programs one after the other; restarted when a program ends it or takes too long.

    Args:
        python: the interpreter, which has TensorFlow.
        timeout: seconds of the wall clock that a program may take.
    """

    def __init__(self, python: str = sys.executable, timeout: float = 120.0) -> None:
        self.python = python
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="stepscope-warm-")
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._rest = b""

    def __enter__(self) -> Self:
        """Start at the first program."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the interpreter, remove the programs."""
        self._end()
        self._folder.cleanup()

    def run(self, text: str) -> Ran:
        """Run a program's text."""
        path = Path(self._folder.name) / f"program_{self._count}.py"
        self._count += 1
        path.write_text(text, encoding="utf-8")
        process = self._process or self._start()
        if process.stdin is None:
            raise RuntimeError("the worker has no input")
        process.stdin.write(json.dumps({"path": str(path)}).encode() + b"\n")
        process.stdin.flush()
        line = self._line(process)
        if not line:
            code = self._end()
            return Ran(error=f"the interpreter ended, or was ended after {self.timeout:g} s: {code}")
        return Ran(**json.loads(line))

    def _start(self) -> subprocess.Popen[bytes]:
        environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        self._rest = b""
        self._process = subprocess.Popen(
            [self.python, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
            cwd=self._folder.name,
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """The worker's next line; b"" if none comes in time."""
        if process.stdout is None:
            raise RuntimeError("the worker has no output")
        while b"\n" not in self._rest:
            if not select.select([process.stdout], [], [], self.timeout)[0]:
                return b""
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return b""
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        return process.wait()


def difference(before: Ran, after: Ran, tolerance: float = TOLERANCE) -> str:
    """Description of how two runs differ; "" if they are equal."""
    if after.error:
        return f"fails: {after.error}"
    if not _same_text(before.stdout, after.stdout, tolerance):
        return f"prints {_shown(after.stdout)} instead of {_shown(before.stdout)}"
    for name, value in before.values.items():
        if name not in after.values:
            return f"{name} is gone"
        if not same(value, after.values[name], tolerance):
            return f"{name} is {_shown(after.values[name])} instead of {_shown(value)}"
    return ""


def same(one: object, other: object, tolerance: float) -> bool:
    """Whether two described values are equal: floats to a tolerance, everything else exactly."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k], tolerance) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and one == other


def _same_text(one: str, other: str, tolerance: float) -> bool:
    """Whether texts are equal, numbers with a decimal point to the tolerance; a number never equals a tensor of it."""
    one, other = _unpadded(one), _unpadded(other)  # NumPy pads numbers to the widest
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(
        a == b
        or (("." in a or "e" in a) and math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=max(tolerance, 1e-6)))
        for a, b in pairs
    )


def _unpadded(text: str) -> str:
    return _BLANKS.sub(" ", text).replace("[ ", "[").replace(" ]", "]")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text if len(text) <= 160 else text[:159] + "…")
