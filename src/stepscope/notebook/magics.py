"""The magics: ``%%stepscope`` measures a cell; ``%stepscope report|whatif|fix`` ask about the last measured one.

A cell's error is the user's: it is shown once, and ends the cell, so that "run all" stops there. An error of ours is a
line, and ends nothing.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stepscope.notebook import cells, measured_cell
from stepscope.notebook.shown import ShownReport
from stepscope.tables.errors import StepscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.notebook.measured_cell import MeasuredCell

COMMANDS = ("report", "whatif", "fix")
_SESSION = "--session"
_USAGE = f"expected: {cells.MAGIC} [{_SESSION} PATH] above a cell, or %stepscope report|whatif|fix [OPTIONS]"
_NONE_YET = f"no cell has been measured in this kernel: put {cells.MAGIC} above one and run it"
_END_S = 30.0
"""Time for a command to end after it was interrupted."""


class History(Protocol):
    """IPython's history of a kernel."""

    input_hist_raw: list[str]


class CellResult(Protocol):
    """IPython's ``ExecutionResult``."""

    error_before_exec: BaseException | None
    error_in_exec: BaseException | None


class Compiler(Protocol):
    """IPython's ``CachingCompiler``."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """The path under which a cell is compiled."""


class Events(Protocol):
    """IPython's ``EventManager``."""

    def register(self, event: str, function: Callable[..., object]) -> None:
        """Call ``function`` at an event."""

    def unregister(self, event: str, function: Callable[..., object]) -> None:
        """Take it off."""


class Shell(Protocol):
    """What of IPython's ``InteractiveShell`` is used."""

    execution_count: int
    history_manager: History
    compile: Compiler
    events: Events
    showtraceback: Callable[..., object]
    showsyntaxerror: Callable[..., object]
    showindentationerror: Callable[..., object]

    def run_cell(self, raw_cell: str) -> CellResult:
        """Run a cell in the user's namespace; show its value or its error."""

    def transform_cell(self, raw_cell: str) -> str:
        """Python of a cell's text."""

    def register_magic_function(self, func: Callable[..., object], magic_kind: str, magic_name: str) -> None:
        """Make a function a magic."""


class Magics:
    """The magics of one kernel."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.last: MeasuredCell | None = None
        self._last_number = 0
        self._failed: set[int] = set()

    def note(self, result: CellResult) -> None:
        """After each cell: remember which failed; they are no part of the program."""
        if result.error_before_exec is not None or result.error_in_exec is not None:
            self._failed.add(len(self._shell.history_manager.input_hist_raw) - 1)

    # -- %%stepscope ---------------------------------------------------------------------------------------------

    def cell(self, line: str, cell: str) -> None:
        """Run the cell measured, and show what was found."""
        __tracebackhide__ = True  # of an error, IPython shows the user's frames
        measured: MeasuredCell | None = None
        with _Said("the cell runs unmeasured: "):
            try:
                measured = self._begin(line, cell)
            except UsageError as problem:
                _say(f"stepscope: {problem}")
                return
        error = self._run(cell, measured)
        if error is not None:
            raise error

    def _begin(self, line: str, cell: str) -> MeasuredCell:
        shell = self._shell
        match _words(cells.MAGIC, line):
            case []:
                wanted = None
            case [option, path] if option == _SESSION:
                wanted = Path(path)
            case _:
                raise UsageError(f"{cells.MAGIC} {line}: not understood; {_USAGE}")
        history = shell.history_manager.input_hist_raw
        number = len(history) - 1
        texts = {}
        for text in (*history, cell):
            path = shell.compile.get_code_name(text, text, number)
            if path.endswith(".py"):  # a terminal's cells have no such name
                texts[path] = text
        measured = measured_cell.begin(f"cell {number}", cells.known(history), texts, wanted)
        self.last, self._last_number = measured, number
        return measured

    def _run(self, cell: str, measured: MeasuredCell | None) -> BaseException | None:
        """Run the cell as IPython does, then show the report; the cell's error is not shown yet, but returned."""
        code, error = 1, None
        try:
            with _inner(self._shell, len(self._shell.history_manager.input_hist_raw) - 1):
                result = self._shell.run_cell(cell)
            error = result.error_before_exec or result.error_in_exec
            code = 0 if error is None else -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        finally:
            ended = measured is not None and self._end(measured, code)
        if measured is not None and ended:
            with _Said(""):
                self._show(measured)
        return error

    def _end(self, measured: MeasuredCell, code: int) -> bool:
        """Measure no more; False: that failed, and no report is near."""
        with _Said("measuring the cell did not end as it should, %stepscope report asks for its report: "):
            measured.end(code)
            return True
        return False

    def _show(self, measured: MeasuredCell) -> None:
        try:
            if not measured.wait():
                _say(f"stepscope: no report after {measured_cell.REPORT_S:.0f} s: %stepscope report asks again")
                return
            _display(_of_session(measured.session))
        except KeyboardInterrupt:
            _say("stepscope: the report is still being written: %stepscope report shows it")

    # -- %stepscope ----------------------------------------------------------------------------------------------

    def line(self, line: str) -> None:
        """``report [SESSION]``, ``whatif [OPTIONS]``, ``fix [OPTIONS]``: of the last measured cell."""
        try:
            command, *words = _words("%stepscope", line) or [""]
            if command == "report":
                self._report(words)
            elif command in COMMANDS:
                self._try(command, words)
            else:
                raise UsageError(f"%stepscope {line}: not understood; {_USAGE}")
        except StepscopeError as error:
            _say(f"stepscope: {error}")

    def _report(self, words: Sequence[str]) -> None:
        if words and not words[0].startswith("-"):
            session, options = Path(words[0]), words[1:]
        elif self.last is not None:
            session, options = self.last.session, words
        else:
            raise UsageError(_NONE_YET)
        if options:
            _command(["report", str(session), *options], str)
        else:
            _display(_of_session(session))

    def _try(self, command: str, words: Sequence[str]) -> None:
        """Run a command on the cells as a script, in a folder that goes with it."""
        if self.last is None:
            raise UsageError(_NONE_YET)
        history = self._shell.history_manager.input_hist_raw
        failed = self._failed - {self._last_number}
        made = cells.script(history, self._last_number, failed, self._shell.transform_cell, str(Path.cwd()))
        with tempfile.TemporaryDirectory(prefix="stepscope_cells_") as folder:
            path = Path(folder) / cells.SCRIPT
            path.write_text(made.text, "utf-8")
            _command([command, *words, str(path)], made.named)


@contextlib.contextmanager
def _inner(shell: Shell, number: int) -> Iterator[None]:
    """What is run now has the number of the cell around it, which will show its error: IPython shows none."""
    count, shell.execution_count = shell.execution_count, number
    names = ("showtraceback", "showsyntaxerror", "showindentationerror")
    before = {name: vars(shell)[name] for name in names if name in vars(shell)}
    for name in names:
        setattr(shell, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name in names:
            delattr(shell, name)
        for name, value in before.items():
            setattr(shell, name, value)
        shell.execution_count = count


def _of_session(session: Path) -> object:
    """The report that the sidecar wrote; of a session without one, what it shows when it is opened."""
    import msgspec

    from stepscope.model.report.report import Report
    from stepscope.use_cases.record import REPORT_JSON, shown

    path = Path(shown(session))
    try:
        report = msgspec.json.decode((session / REPORT_JSON).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        from stepscope.use_cases.opened_session import OpenedSession

        return OpenedSession(session)
    return ShownReport(report, path)


def _command(words: Sequence[str], named: Callable[[str], str]) -> None:
    """Run a command of stepscope and print its lines as they come; an interrupt ends it as Ctrl-C does, and so does the
    end of the kernel.
    """
    from stepscope.native import own_python

    child = subprocess.Popen(
        own_python.of_command(*words),
        env={**own_python.environment(), "NO_COLOR": "1", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        for said in child.stdout or ():
            sys.stdout.write(named(said))
    except KeyboardInterrupt:  # the kernel's process group has it, and with it the command
        try:
            sys.stdout.write(named(child.communicate(timeout=_END_S)[0]))
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            child.send_signal(signal.SIGINT)
    finally:
        if child.stdout is not None:
            child.stdout.close()
        child.wait()


class _Said:
    """What fails in here is ours: one line says so, and nothing of it becomes the user's error."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if kind is None or not isinstance(error, Exception):
            return False
        name = "" if isinstance(error, StepscopeError | OSError) else f"{kind.__name__}: "
        _say(f"stepscope: {self._what}{name}{' '.join(str(error).split())}")
        return True


def _words(magic: str, line: str) -> list[str]:
    """The words of a magic's line, as a shell reads them."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{magic} {line}: {error}; {_USAGE}") from error


def _display(shown: object) -> None:
    from IPython import display

    show: Callable[[object], object] = display.display
    show(shown)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


_MAGICS: dict[int, Magics] = {}
"""Those of each shell of this process, by its id."""


def load_ipython_extension(shell: Shell) -> None:
    """``%load_ext stepscope``: nothing is measured before a cell asks for it."""
    magics = _MAGICS.setdefault(id(shell), Magics(shell))
    shell.register_magic_function(magics.cell, "cell", "stepscope")
    shell.register_magic_function(magics.line, "line", "stepscope")
    shell.events.register("post_run_cell", magics.note)


def unload_ipython_extension(shell: Shell) -> None:
    """``%unload_ext stepscope``: the magics stay registered, as those of every extension; nothing is noted any more."""
    magics = _MAGICS.pop(id(shell), None)
    if magics is not None:
        shell.events.unregister("post_run_cell", magics.note)
