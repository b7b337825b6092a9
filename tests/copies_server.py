"""Imports TensorFlow and Keras, then runs each program that it is asked for in a copy of itself (``tests.copies``).

The program runs at the level of this module, so that the interpreter ends as it does after any program.
"""

import contextlib
import importlib
import json
import os
import sys
import types
from pathlib import Path

for name in ("numpy", "tensorflow", "keras"):
    importlib.import_module(name)


def asked_of_copy() -> str:
    """In each copy: the line that says what to run. The process itself ends here, with its input."""
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        pid = os.fork()
        if not pid:
            return line
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


def begin(argv: list[str], source: str, env: dict[str, str], cwd: str, output: str) -> types.CodeType:
    """Make this process what Python makes of a new one; returns the program."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, path, flags in (
        (0, Path(os.devnull), os.O_RDONLY),
        (1, Path(output, "stdout"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, Path(output, "stderr"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        file = os.open(path, flags, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.argv[:] = argv
    sys.path[:1] = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ModuleNotFoundError):  # ours looks for the job's, as Python does
        importlib.import_module("sitecustomize")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    of_command = sys.argv[0] == "-c"
    if not of_command:
        main.__file__ = sys.argv[0]
    sys.path.insert(0, "" if of_command else str(Path(sys.argv[0]).parent))
    return compile(source, "<string>" if of_command else sys.argv[0], "exec")


if __name__ == "__main__":
    exec(begin(**json.loads(asked_of_copy())), vars(sys.modules["__main__"]))
