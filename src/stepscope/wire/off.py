"""Whether measuring is switched off: for a host, a user, or a program that came to harm while it was measured.

``/etc/stepscope/off`` is the host's file, ``stepscope/off`` in XDG_CONFIG_HOME (``~/.config``) the user's. An empty
one switches everything off; else each line names a program: its path, its file name, its module, or a pattern of these
(``*``). What follows ``#`` is a comment. A program is switched off with all that it starts.

``stepscope/harmed.jsonl`` in XDG_STATE_HOME (``~/.local/state``) is written by collectors, and read where a process is
about to be measured.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOST_FILE = "/etc/stepscope/off"
WHERE = "switched off"
"""Word in ``wire.trouble`` for a process that was not measured for this reason."""
LOOK_NS = 2_000_000_000
"""Between two looks at the files, each of which costs two ``stat``."""
MAX_BYTES = 65_536
MAX_HARMED = 200
"""Programs kept in the list; the oldest goes."""
_MAX_ANCESTORS = 64
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_WITH_VALUE = frozenset(("-W", "-X", "--check-hash-based-pycs"))


def user_file() -> str:
    """The user's file. Source: XDG Base Directory Specification."""
    return os.path.join(_base("XDG_CONFIG_HOME", ".config"), "stepscope", "off")


def harmed_file() -> str:
    """The list of programs that came to harm."""
    return os.path.join(_base("XDG_STATE_HOME", os.path.join(".local", "state")), "stepscope", "harmed.jsonl")


def _base(variable: str, default: str) -> str:
    said = os.environ.get(variable, "")
    return said if os.path.isabs(said) else os.path.join(os.path.expanduser("~"), default)


def program_of(argv: Sequence[str], folder: str) -> str:
    """Name of the program of a command line: the path of its script or its executable, or "-m MODULE".

    "" for code without a file: ``python -c``, a console, a process of ``multiprocessing``.
    """
    if not argv or not (is_python(argv) or os.path.basename(argv[0]) in _SHELLS):
        first = argv[0] if argv else ""
        return os.path.realpath(os.path.join(folder, first)) if os.sep in first else first
    words = iter(argv[1:])
    for word in words:
        if word == "-m":
            return "-m " + next(words, "")
        if word in _WITH_VALUE:
            next(words, "")
        elif word.startswith("-m"):
            return "-m " + word[2:]
        elif word.startswith("-"):
            if word.startswith("-c") or word == "-":
                return ""
        else:
            return os.path.realpath(os.path.join(folder, word))
    return ""


def is_python(argv: Sequence[str]) -> bool:
    """Whether a command line is Python's own."""
    return bool(argv) and os.path.basename(argv[0]).startswith(("python", "pypy"))


def programs(pid: int) -> list[str]:
    """The programs of a process and of those that started it, its own first."""
    found: list[str] = []
    for _ in range(_MAX_ANCESTORS):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as stream:
                words = [os.fsdecode(word) for word in stream.read(MAX_BYTES).split(b"\0")[:-1]]
            with open("/proc/%d/stat" % pid, "rb") as stream:
                parent = int(stream.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        try:
            folder = os.readlink("/proc/%d/cwd" % pid)
        except OSError:  # of another user
            folder = ""
        found.append(program_of(words, folder))
        if parent <= 1:
            break
        pid = parent
    return [program for program in dict.fromkeys(found) if program]


class OffSwitch:
    """The two files, seen by one process."""

    def __init__(self, named: Callable[[], Sequence[str]]) -> None:
        """``named``: gives the programs that the process belongs to; called only if a file names some."""
        self._named = named
        self._files = (HOST_FILE, user_file())
        self._seen: dict[str, tuple[int, int, int]] = {}
        self.due_ns = 0
        """CLOCK_MONOTONIC from which ``look`` looks again."""

    def look(self, now_ns: int) -> str:
        """Why measuring is switched off, "" if it is not, or if nothing has changed since the last look."""
        if now_ns < self.due_ns:
            return ""
        self.due_ns = now_ns + LOOK_NS
        for path in self._files:
            try:
                about = os.stat(path)
            except OSError:
                self._seen.pop(path, None)
                continue
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if self._seen.get(path) != stamp:
                self._seen[path] = stamp
                why = _said(path, self._named)
                if why:
                    return why
        return ""


def why(named: Callable[[], Sequence[str]], *, harmed: bool) -> str:
    """Why a process must not be measured, "" if it may be; ``harmed``: also by the list of harmed programs."""
    return OffSwitch(named).look(0) or (harmed and harm(named)) or ""


def lines_of(path: str) -> list[str] | None:
    """The programs that a file names; none: it switches everything off. None if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read(MAX_BYTES).splitlines()
    except FileNotFoundError:
        return None
    except OSError:  # it is there: nothing says that it is not meant for us
        return []
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]


def _said(path: str, named: Callable[[], Sequence[str]]) -> str:
    patterns = lines_of(path)
    if patterns is None:
        return ""
    if not patterns:
        return "measuring is switched off by %s" % path
    for program in named():
        if any(_matches(program, pattern) for pattern in patterns):
            return "measuring is switched off for %s by %s" % (short(program), path)
    return ""


def _matches(program: str, pattern: str) -> bool:
    names = (program, os.path.basename(program), program.partition("-m ")[2])
    return any(fnmatchcase(name, os.path.expanduser(pattern)) for name in names if name)


def short(program: str) -> str:
    """A program as a person calls it."""
    return program if program.startswith("-m ") else os.path.basename(program)


# -- programs that came to harm ----------------------------------------------------------------------------------


def harmed() -> list[dict[str, str]]:
    """The list, oldest first: ``program``, ``since`` (a date), ``what`` happened. Damaged lines are left out."""
    try:
        with open(harmed_file(), encoding="utf-8", errors="replace") as stream:
            lines = stream.read(1 << 20).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
            found.append({name: str(entry[name]) for name in ("program", "since", "what")})
        except (ValueError, KeyError, TypeError):
            continue
    return found


def harm(named: Callable[[], Sequence[str]]) -> str:
    """What came to one of these programs while it was measured, and how to take that back; "" if nothing did."""
    entries = harmed()
    mine = named() if entries else ()
    return next((told(entry) for entry in reversed(entries) if entry["program"] in mine), "")


def told(entry: dict[str, str]) -> str:
    """One line of the list, for a person."""
    name = entry["program"]
    again = "take it back: stepscope enable --again '%s'" % name
    said = (short(name), entry["since"], entry["what"], again)
    return "measuring is off for %s since %s, when it %s while it was measured (%s)" % said


def add_harmed(program: str, since: str, what: str) -> None:
    """Enter a program, whose older line goes.

    Raises:
        OSError: no rights, or no space.
    """
    kept = [entry for entry in harmed() if entry["program"] != program]
    write_harmed([*kept, {"program": program, "since": since, "what": what}][-MAX_HARMED:])


def write_harmed(entries: Sequence[dict[str, str]]) -> None:
    """Write the list whole or not at all.

    Raises:
        OSError: no rights, or no space.
    """
    replace_file(harmed_file(), "".join(json.dumps(entry) + "\n" for entry in entries))


def replace_file(path: str, text: str) -> None:
    """Write a file whole or not at all, with its folder.

    Raises:
        OSError: no rights, or no space.
    """
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    made = "%s.%d.new" % (path, os.getpid())
    with open(made, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(made, path)
