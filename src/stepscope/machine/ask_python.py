"""Asks a Python for its installed packages. Runs there by ``python -c``: standard library only, Python 3.8 or newer.

Writes one line of JSON and waits for a line; if that says "import", TensorFlow is imported and a second line is
written. It ends when its input ends; a failed import ends it, with the traceback on stderr.
"""

import ast
import importlib
import json
import os
import re
import sys
from importlib import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PARSERS = ("packaging.requirements", "pip._vendor.packaging.requirements")
"""Modules that can parse a requirement: TensorFlow brings the first, a new environment has the second."""
FRAMEWORKS = "tensorflow tensorflow-cpu tensorflow-gpu tensorflow-intel tensorflow-macos tensorflow-rocm tf-nightly"
OTHERS = "keras tf-keras jax jaxlib torch onnxruntime onnxruntime-gpu numpy protobuf ml-dtypes h5py"
ROOTS = frozenset((FRAMEWORKS + " " + OTHERS).split())
"""Packages that are reported, and whose requirements are compared with the installed versions."""
CUDA = ("nvidia-", "jax-cuda")
"""Beginnings of the names of packages with CUDA's libraries, and of JAX's plugins for it."""
TORCH = "torch/version.py"
BUILD = "tensorflow/python/platform/build_info.py"


def main() -> None:
    """Run the conversation."""
    here = os.getcwd()
    sys.path[:] = [p for p in sys.path if p not in {"", here}]  # a numpy.py in the user's folder is not a package
    answer(packages())
    if sys.stdin.readline().strip() == "import":
        answer(load())
    sys.stdin.read()


def answer(found: "dict[str, object]") -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def packages() -> "dict[str, object]":
    """The installed packages, and the requirements that are not met."""
    installed: "dict[str, metadata.Distribution]" = {}
    for distribution in metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name in ROOTS or name.startswith(CUDA):
            installed.setdefault(name, distribution)
    parse = parser()
    return {
        "version": sys.version.split()[0],
        "executable": sys.executable,
        "packages": {name: d.version for name, d in sorted(installed.items())},
        "unmet": compare(installed, parse) if parse else [],
        "unchecked": "" if parse else "neither packaging nor pip is installed there",
        "build": build(),
        "torch_cuda": torch_cuda(),
    }


def parser() -> "Callable[[str], Any] | None":
    """A parser of requirements; None if none is installed."""
    for name in PARSERS:
        try:
            parse: "Callable[[str], Any]" = importlib.import_module(name).Requirement
        except ImportError:
            continue
        return parse
    return None


def compare(installed: "dict[str, metadata.Distribution]", parse: "Callable[[str], Any]") -> "list[list[str]]":
    """(package, requirement, version installed or "") of each requirement that is not met."""
    unmet = []
    for name, distribution in installed.items():
        for text in distribution.requires or ():
            wanted = parse(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            try:
                have = metadata.version(wanted.name)
            except metadata.PackageNotFoundError:
                have = ""
            if not have or not wanted.specifier.contains(have, prereleases=True):
                unmet.append([name, text, have])
    return unmet


def build() -> "dict[str, str]":
    """TensorFlow's build settings, from its own file, without importing it."""
    for folder in sys.path:
        path = os.path.join(folder, BUILD)
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8") as stream:
            tree = ast.parse(stream.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.List):
                return {str(key): str(value) for key, value in ast.literal_eval(node)}
    return {}


def torch_cuda() -> str:
    """The CUDA that PyTorch is built for, from its own file, without importing it; "" if none."""
    for folder in sys.path:
        path = os.path.join(folder, TORCH)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as stream:
                found = re.search(r"^cuda\b[^=\n]*=\s*['\"]([0-9.]+)['\"]", stream.read(), re.MULTILINE)
            return found.group(1) if found else ""
    return ""


def load() -> "dict[str, object]":
    """Import TensorFlow; its output goes to stderr."""
    tf = importlib.import_module("tensorflow")
    return {"tensorflow": tf.__version__, "gpus": len(tf.config.list_physical_devices("GPU"))}


if __name__ == "__main__":
    main()
