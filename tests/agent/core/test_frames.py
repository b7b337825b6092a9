"""Whose code it is, and where it begins and ends."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Armed

from stepscope.agent.core import frames


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/home/me/train.py", True),
        ("/tmp/ipykernel_123/456.py", True),
        ("/venv/lib/python3.11/site-packages/keras/x.py", False),
        ("/usr/lib/python3/dist-packages/x.py", False),
        (os.__file__, False),
        (json.__file__, False),
        (frames.__file__, False),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", False),
        ("<stdin>", True),
        ("<__array_function__ internals>", False),
        ("/tmp/__autograph_generated_fileabc.py", False),
        ("relative/train.py", True),
    ],
)
def test_is_own(path: str, own: bool) -> None:
    """Code that the user would edit is the user's, everything else is not."""
    assert frames.is_own(path) is own


def test_frameworks_outside_of_site_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework imported from a source tree is not the user's."""
    monkeypatch.setattr(frames, "_frameworks", [])
    monkeypatch.setattr(frames, "_own", {})
    assert frames.is_own("/src/keras/layers/dense.py")
    frames.exclude("/src/keras")
    assert not frames.is_own("/src/keras/layers/dense.py")
    assert frames.is_own("/src/keras_extra/x.py")


def test_user_stack_is_root_to_leaf() -> None:
    """The innermost user frames, outermost first, with lines."""

    def inner() -> list[tuple[str, str, int]]:
        return frames.user_stack(2)

    def outer() -> list[tuple[str, str, int]]:
        return inner()

    first, second = outer()
    assert first[1].endswith("outer")
    assert second[1].endswith("inner")
    assert first[0] == second[0] == __file__
    assert second[2] == inner.__code__.co_firstlineno + 1


def test_user_frame_through_library_code() -> None:
    """Library frames between the user and the probe are passed over."""
    found = functools.reduce(lambda _a, _b: frames.user_frame(), [1, 2])  # type: ignore[arg-type,return-value]
    assert isinstance(found, tuple)
    assert found[0] == __file__


def decorate(function: Any) -> Any:
    """An ordinary decorator."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Callable:
    """An object that can be called."""

    def __call__(self) -> int:
        """Answer."""
        return 1

    def method(self) -> int:
        """Answer,
        after two lines."""
        return 1


@decorate
def decorated() -> int:
    """Answer, with an inner function."""

    def inside() -> int:
        return 2

    return inside()


def test_code_lines() -> None:
    """Decorated functions, partials, methods and callable objects come down to the code that runs."""
    lines = Path(__file__).read_text().splitlines()

    def text(thing: Any) -> tuple[str, str]:
        file, first, last = frames.code_lines(thing)
        assert file == __file__
        return lines[first - 1].strip(), lines[last - 1].strip()

    assert text(decorated) == ("@decorate", "return inside()")
    assert text(functools.partial(decorated)) == ("@decorate", "return inside()")
    assert text(Callable()) == ("def __call__(self) -> int:", "return 1")
    assert text(Callable().method) == ("def method(self) -> int:", "return 1")
    assert text(functools.partial(Callable().method)) == ("def method(self) -> int:", "return 1")
    assert frames.code_lines(len) == ("", 0, 0)
    assert frames.code_lines(3) == ("", 0, 0)
    assert frames.code_lines(None) == ("", 0, 0)


def test_code_of_an_object_with_hostile_attributes() -> None:
    """An object whose attributes raise is answered with nothing."""

    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert frames.code_lines(Hostile()) == ("", 0, 0)


def test_relative_script_after_chdir(armed: Armed, tmp_path: Path) -> None:
    """A script that changes its directory is still named by its real path."""
    (tmp_path / "job.py").write_text(
        "import os, sys; sys.path.insert(0, '.')\n"
        "import helper\nos.chdir('/')\nimport stepscope\nhelper.work(stepscope)\n"
    )
    (tmp_path / "helper.py").write_text("def work(s):\n    with s.span('x'): pass\n")
    result = armed.start(Path("job.py"), cwd=tmp_path)
    assert result.stderr == ""
    (process,) = armed.processes()
    (name,) = [line for line in process.lines if getattr(line, "text", "") == "x"]
    assert (name.call_file, name.call_line) == (str(tmp_path / "helper.py"), 2)  # type: ignore[union-attr]
