"""A real Python is asked what is installed in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest

from stepscope.machine.python import ask
from stepscope.native.kernel import counting
from stepscope.tables.errors import TargetError


def package(site: Path, name: str, version: str, *requires: str) -> None:
    """Install a package that consists of its metadata."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n\n")


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that goes before all others."""
    site = tmp_path / "site"
    package(site, "tensorflow", "2.15.1", "numpy<2.0,>=1.23", "six; extra == 'never'", "no-such-package>=1")
    package(site, "numpy", "2.1.0")
    build = site / "tensorflow" / "python" / "platform" / "build_info.py"
    build.parent.mkdir(parents=True)
    build.write_text(
        "import collections\n"
        "build_info = collections.OrderedDict([('is_cuda_build', True), ('cuda_version', '12.5')])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


def test_packages_and_what_they_require(site: Path) -> None:
    """A version that does not fit and a package that is missing are told; extras nobody asked for are not."""
    found = ask(sys.executable, load=False)
    assert found.version == sys.version_info[:3]
    assert found.packages["tensorflow"] == "2.15.1"
    assert [one for one in found.unmet if one[0] == "tensorflow"] == [
        ("tensorflow", "numpy<2.0,>=1.23", "2.1.0"),
        ("tensorflow", "no-such-package>=1", ""),
    ]
    assert found.build == {"is_cuda_build": "True", "cuda_version": "12.5"}
    assert found.allocator is not None
    assert found.loaded is None


def test_what_an_import_says(site: Path) -> None:
    """What TensorFlow prints when it is imported is read; one that cannot be imported says why."""
    says = (
        "import sys\n"
        "sys.stderr.write('To enable the following instructions: AVX2 FMA, in other operations, rebuild\\n')\n"
        "__version__ = '2.15.1'\n"
        "class config:\n"
        "    list_physical_devices = staticmethod(lambda kind: [kind])\n"
    )
    (site / "tensorflow" / "__init__.py").write_text(says)
    good = ask(sys.executable, load=True).loaded
    assert good is not None
    assert (good.version, good.error, good.gpus, good.unused) == ("2.15.1", "", 1, ("AVX2", "FMA"))
    (site / "tensorflow" / "__init__.py").write_text("raise ImportError('numpy.core.multiarray failed to import')\n")
    bad = ask(sys.executable, load=True).loaded
    assert bad is not None
    assert bad.error == "ImportError: numpy.core.multiarray failed to import"
    (site / "tensorflow" / "__init__.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    dead = ask(sys.executable, load=True).loaded
    assert dead is not None
    assert "without a word" in dead.error


@pytest.mark.parametrize(
    ("python", "text"),
    [("/nowhere/python", "cannot be run"), ("/bin/true", "does not answer"), ("/bin/sh", "does not answer")],
)
def test_what_is_no_python(python: str, text: str) -> None:
    """One clear line."""
    with pytest.raises(TargetError, match=text):
        ask(python, load=False)


def test_the_kernel_is_asked() -> None:
    """Whatever it answers, nothing is left open and the answer is a sentence or nothing."""
    answers = {counter: counting.attempt(counter) for counter in get_args(counting.Counter)}
    assert set(answers) == {"clock-user", "clock-kernel", "cycles"}
    assert all(isinstance(answer, str) for answer in answers.values())
    if not answers["clock-kernel"]:
        assert answers["clock-user"] == ""
