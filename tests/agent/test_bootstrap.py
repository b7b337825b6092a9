"""The import hook: callbacks after exact names, and everything else as without it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.agent.conftest import Armed

from stepscope.model.log.events import AgentDiagnostic

HEAD = """
import importlib, importlib.util, pickle, sys, stepscope
from stepscope.agent import bootstrap
stepscope.step()
hook = bootstrap.HOOK
seen = []
hook.after_import("awaited", lambda module: seen.append((module.__name__, getattr(module, "VALUE", None))))
"""


@pytest.fixture
def module(tmp_path: Path) -> dict[str, str]:
    """A module to wait for, and the environment that finds it."""
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "awaited.py").write_text("VALUE = 7\n")
    return {"PYTHONPATH": str(folder)}


def check(armed: Armed, module: dict[str, str], body: str, expected: str, *flags: str) -> None:
    """Run a program that waits for the module."""
    result = armed.start(HEAD + body, *flags, env=module)
    assert result.stderr == ""
    assert result.stdout.strip() == expected


def test_called_once_after_the_import(armed: Armed, module: dict[str, str]) -> None:
    """The callback gets the finished module, once, however often it is imported."""
    check(armed, module, "import awaited, awaited as b\nfrom awaited import VALUE\nprint(seen)", "[('awaited', 7)]")


def test_spec_and_loader_are_the_interpreters(armed: Armed, module: dict[str, str]) -> None:
    """``__spec__``, ``__loader__`` and the module's dictionary are what they are without a hook."""
    body = """
import awaited, json
print(type(awaited.__loader__).__name__, awaited.__spec__.loader is awaited.__loader__, seen != [])
print(vars(awaited.__loader__).keys() == vars(json.__loader__).keys(), awaited.__loader__.get_source("awaited").strip())
print(pickle.loads(pickle.dumps(awaited.__spec__)) == awaited.__spec__)
"""
    check(armed, module, body, "SourceFileLoader True True\nTrue VALUE = 7\nTrue")


def test_find_spec_without_import(armed: Armed, module: dict[str, str]) -> None:
    """Asking whether a module exists runs nothing; what comes back can be compared, pickled and executed."""
    body = """
spec = importlib.util.find_spec("awaited")
again = importlib.util.find_spec("awaited")
print(seen, type(spec.loader).__name__, spec == again, pickle.loads(pickle.dumps(spec)).origin == spec.origin)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
print(seen, made.VALUE, importlib.util.find_spec("no_such_module"))
"""
    check(armed, module, body, "[] SourceFileLoader True True\n[('awaited', 7)] 7 None")


def test_lazy_loader(armed: Armed, module: dict[str, str]) -> None:
    """A lazily loaded module stays unloaded until it is used, then the callback runs."""
    body = """
spec = importlib.util.find_spec("awaited")
spec.loader = importlib.util.LazyLoader(spec.loader)
lazy = importlib.util.module_from_spec(spec)
sys.modules["awaited"] = lazy
spec.loader.exec_module(lazy)
print(seen)
print(lazy.VALUE, len(seen))
"""
    check(armed, module, body, "[]\n7 1")


def test_reload(armed: Armed, module: dict[str, str]) -> None:
    """A reloaded module is a new body: the callback runs again."""
    body = "import awaited\nawaited.VALUE = 0\nimportlib.reload(awaited)\nprint(seen)"
    check(armed, module, body, "[('awaited', 7), ('awaited', 7)]")


def test_already_imported(armed: Armed, module: dict[str, str]) -> None:
    """A callback for a module that has been imported already runs at once."""
    body = 'import json\nhook.after_import("json", lambda m: seen.append(m.__name__))\nprint(seen)'
    check(armed, module, body, "['json']")


def test_a_body_that_raises(armed: Armed, module: dict[str, str]) -> None:
    """A failing import raises as without us, calls nothing, and can be tried again."""
    path = Path(module["PYTHONPATH"], "awaited.py")
    body = f"""
path = {str(path)!r}
text = open(path).read()
open(path, "w").write("1/0")
try:
    import awaited
except ZeroDivisionError as error:
    trace = error.__traceback__
    files = []
    while trace: files.append(trace.tb_frame.f_code.co_filename); trace = trace.tb_next
    print(seen, "awaited" in sys.modules, files.count(path))
open(path, "w").write(text)
importlib.invalidate_caches()
import awaited
print(seen)
"""
    check(armed, module, body, "[] False 1\n[('awaited', 7)]", "-B")


def test_a_callback_that_raises(armed: Armed, module: dict[str, str]) -> None:
    """An error in a callback is a diagnostic; the other callbacks run and the import succeeds."""
    body = """
hook._awaited["awaited"].insert(0, lambda module: 1/0)
import awaited
print(awaited.VALUE, seen)
"""
    check(armed, module, body, "7 [('awaited', 7)]")
    (process,) = armed.processes()
    assert [line.code for line in process.of(AgentDiagnostic)] == ["DX901"]


def test_zip_files_share_their_loader(armed: Armed, tmp_path: Path) -> None:
    """Modules of a zip file share one loader: only the awaited one is reported, and the loader is left clean."""
    archive = tmp_path / "lib.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("awaited.py", "import other\nVALUE = other.VALUE")
        file.writestr("other.py", "VALUE = 9")
    body = "import awaited\nprint(seen, 'exec_module' in vars(awaited.__loader__))"
    check(armed, {"PYTHONPATH": str(archive)}, body, "[('awaited', 9)] False")


def test_namespace_packages_and_built_in_modules_are_left_alone(armed: Armed, tmp_path: Path) -> None:
    """What has no file of its own is imported as ever."""
    (tmp_path / "lib" / "awaited").mkdir(parents=True)
    body = """
import awaited
print(list(awaited.__path__) != [])
hook.after_import("faulthandler", seen.append)
import faulthandler
"""
    check(armed, {"PYTHONPATH": str(tmp_path / "lib")}, body, "True")


def test_other_finders_keep_their_place(armed: Armed, module: dict[str, str]) -> None:
    """A finder that the job puts first is asked as before, and its loader does the work."""
    body = """
class Mine:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "awaited" else None
    def create_module(self, spec): return None
    def exec_module(self, module): module.VALUE = "mine"
mine = Mine()
sys.meta_path.insert(1, mine)
import awaited
print(seen, awaited.__loader__ is mine, vars(mine))
"""
    check(armed, module, body, "[('awaited', 'mine')] True {}")


def test_two_hooks_that_ask_each_other(armed: Armed, module: dict[str, str]) -> None:
    """A second hook of the same making neither loops nor calls twice."""
    body = """
import threading
class Chained:
    busy = threading.local()
    def find_spec(self, name, path=None, target=None):
        if name != "awaited" or getattr(self.busy, "on", False): return None
        self.busy.on = True
        try: return importlib.util.find_spec(name)
        finally: self.busy.on = False
sys.meta_path.insert(0, Chained())
sys.meta_path.append(Chained())
import awaited
print(seen)
"""
    check(armed, module, body, "[('awaited', 7)]")


def test_threads_that_import_at_the_same_time(armed: Armed, module: dict[str, str]) -> None:
    """Imports by several threads, with a callback that imports too, end without deadlock."""
    body = """
import threading
def late(module):
    import decimal, fractions
    seen.append("late")
hook.after_import("awaited", late)
start = threading.Barrier(4)
def work(names):
    start.wait()
    for name in names: importlib.import_module(name)
names = ["awaited", "decimal", "fractions", "csv"]
threads = [threading.Thread(target=work, args=(names[i:] + names[:i],)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(seen)
"""
    check(armed, module, body, "[('awaited', 7), 'late']")


def test_removal_stops_everything(armed: Armed, module: dict[str, str]) -> None:
    """After its removal the hook is not in sys.meta_path and calls nothing."""
    check(armed, module, "hook.remove()\nimport awaited\nprint(seen, hook in sys.meta_path)", "[] False")


def test_warnings_as_errors(armed: Armed, module: dict[str, str]) -> None:
    """The hook survives -W error."""
    check(armed, module, "import awaited\nimportlib.reload(awaited)\nprint(len(seen))", "2", "-W", "error")
