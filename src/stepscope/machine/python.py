"""A Python and its installed packages, as it reports them; its malloc as resolved by its dynamic linker.

The Python is started once, waits while it is examined, imports TensorFlow if requested, and ends.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope.native.memory import allocator
from stepscope.tables.errors import TargetError
from stepscope.wire.env import ALWAYS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.allocator_info import AllocatorInfo

_ASK = Path(__file__).with_name("ask_python.py")
_PATIENCE_S = 120.0
_UNUSED = re.compile(r"To enable the following instructions: ([A-Z0-9_. ]+?), in other operations")
"""Source: TensorFlow, tensorflow/core/platform/cpu_feature_guard.cc."""
_NO_LIBRARIES = re.compile(r"Cannot dlopen some GPU libraries")
"""Source: TensorFlow, core/common_runtime/gpu/gpu_device.cc."""


class _Packages(msgspec.Struct):
    version: str
    executable: str
    packages: dict[str, str]
    unmet: list[tuple[str, str, str]]
    unchecked: str
    build: dict[str, str]
    torch_cuda: str = ""


class _Loaded(msgspec.Struct):
    tensorflow: str = ""
    gpus: int = 0


class TensorFlowImport(Struct, frozen=True, kw_only=True):
    """Result of importing TensorFlow."""

    version: str
    error: str
    """Reason of a failure; "" if it succeeded."""
    gpus: int
    unused: tuple[str, ...]
    """Instructions of this CPU that the wheel was not built for, by its own message."""
    no_gpu_libraries: bool
    """Flag: it was built for GPUs and did not find their libraries."""


class PythonFacts(Struct, frozen=True, kw_only=True):
    """One Python."""

    executable: str
    version: tuple[int, ...]
    packages: Mapping[str, str]
    """Versions of frameworks and their dependencies, by name in lower case with hyphens."""
    unmet: tuple[tuple[str, str, str], ...] = ()
    """Unmet requirements: (package, its requirement, the installed version or "")."""
    unchecked: str = ""
    """Reason why requirements could not be compared."""
    build: Mapping[str, str]
    """TensorFlow's build settings: is_cuda_build, cuda_version, cudnn_version ..."""
    torch_cuda: str = ""
    """The CUDA that PyTorch is built for; "": none, or there is no PyTorch."""
    allocator: AllocatorInfo | None = None
    loaded: TensorFlowImport | None = None
    """Import result; None: there is no TensorFlow, or it was not to be imported."""


def ask(python: str, *, load: bool) -> PythonFacts:
    """Ask a Python; with ``load`` it imports TensorFlow if it is installed.

    Raises:
        TargetError: it cannot be run, or does not answer.
    """
    source = _ASK.read_text("utf-8")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", ALWAYS_VARIABLE: "0"}
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [python, "-c", source],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
            )
        except OSError as error:
            raise TargetError(
                f"{python} cannot be run: {error.strerror}; expected a Python, see stepscope doctor --python PATH"
            ) from error
        try:
            return _converse(process, said, python, load=load)
        finally:
            process.kill()
            process.communicate()


def _converse(process: subprocess.Popen[bytes], said: IO[bytes], python: str, *, load: bool) -> PythonFacts:
    try:
        found = msgspec.json.decode(_line(process), type=_Packages)
    except msgspec.DecodeError:
        raise TargetError(f"{python} does not answer{_last_words(said)}; expected a Python of 3.8 or newer") from None
    malloc = allocator.look(process.pid)
    loaded = None
    if load and any(name.startswith(("tensorflow", "tf-nightly")) for name in found.packages):
        loaded = _load(process, said)
    return PythonFacts(
        executable=found.executable,
        version=tuple(int(part) for part in re.findall(r"\d+", found.version)[:3]),
        packages=found.packages,
        unmet=tuple(found.unmet),
        unchecked=found.unchecked,
        build=found.build,
        torch_cuda=found.torch_cuda,
        allocator=allocator.look(process.pid) or malloc,
        loaded=loaded,
    )


def _load(process: subprocess.Popen[bytes], said: IO[bytes]) -> TensorFlowImport:
    if process.stdin is not None:
        process.stdin.write(b"import\n")
        process.stdin.flush()
    error = ""
    try:
        answer = msgspec.json.decode(_line(process), type=_Loaded)
    except msgspec.DecodeError:
        answer, error = _Loaded(), _last_words(said) or "it ended without a word"
    text = _all(said)
    unused = _UNUSED.search(text)
    return TensorFlowImport(
        version=answer.tensorflow,
        error=error,
        gpus=answer.gpus,
        unused=tuple(unused.group(1).split()) if unused else (),
        no_gpu_libraries=bool(_NO_LIBRARIES.search(text)),
    )


def _line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line of its output; the partial line if it ends or takes too long."""
    line = b""
    end = time.monotonic() + _PATIENCE_S
    if process.stdout is None:
        return line
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        part = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not part:
            break
        line += part
    return line


def _all(said: IO[bytes]) -> str:
    size = os.fstat(said.fileno()).st_size
    return os.pread(said.fileno(), size, 0).decode("utf-8", "replace")  # the position is shared with the child


def _last_words(said: IO[bytes]) -> str:
    lines = [line for line in _all(said).splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""
