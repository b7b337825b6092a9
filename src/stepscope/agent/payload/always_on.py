"""Executed by the .pth line of ``stepscope enable`` at the start of every Python process of an environment.

Not imported, but executed from its compiled file, with ``PTH`` (the .pth file) and ``PACKAGE`` (the folder of the
package stepscope) as globals. It adds a finder that waits for a framework's import and does nothing else: no file is
opened, no module loaded, and ``import stepscope`` means the same as without it. A process that ``stepscope run`` arms
is left alone. Annotations are strings: ``from __future__`` would load one more module in every process.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

    PTH = PACKAGE = ""

_ROOTS = frozenset(("tensorflow", "keras", "tf_keras", "onnxruntime", "torch", "jax"))


class StepscopeWaits:
    """A finder that finds nothing until a framework is imported, and is then replaced by the agent's import hook."""

    def __init__(self, pth: str, package: str) -> None:
        self.pth = pth
        self.package = package

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """None for every name but a framework's."""
        if name not in _ROOTS:
            return None
        try:
            sys.meta_path.remove(self)
            hook = self._arm()
        except Exception:  # another thread was first, or stepscope is gone (`enable --status` says so): as without us
            return None
        return hook.find_spec(name, path, target) if hook is not None else None

    def _arm(self) -> "Any":
        known = sys.modules.get("stepscope")
        if known is None:
            self._load()
        elif not any(os.path.realpath(p) == self.package for p in list(getattr(known, "__path__", ()))[:1]):
            return None  # another stepscope is active here
        from stepscope.agent import always_on

        return always_on.arm(self.pth)

    def _load(self) -> None:
        """Make ``stepscope`` importable from where it is, without touching the search path."""
        from importlib import util

        init = os.path.join(self.package, "__init__.py")
        spec = util.spec_from_file_location("stepscope", init, submodule_search_locations=[self.package])
        if spec is None or spec.loader is None:
            raise ImportError(init)
        module = util.module_from_spec(spec)
        sys.modules["stepscope"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["stepscope"]
            raise


def _wanted() -> bool:
    if os.environ.get("STEPSCOPE_ALWAYS") == "0":
        return False
    run = os.environ.get("STEPSCOPE_RUN")
    if run and os.path.isdir(run):
        return False
    return not any(type(finder).__name__ == "StepscopeWaits" for finder in sys.meta_path)


if _wanted():
    sys.meta_path.insert(0, StepscopeWaits(PTH, PACKAGE))
