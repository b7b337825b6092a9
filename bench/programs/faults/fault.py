"""What the programs share: a fault inside the program, the moment at which one comes from outside, and the end.

Files go to ``OUT``. Standard library only, any Python from 3.9 on.
"""

import atexit
import cProfile
import gc
import hashlib
import os
import random
import resource
import sys
import threading
import time

FOLDER = os.path.dirname(os.path.abspath(sys.argv[0]))
OUT = os.environ["FAULT_OUT"]
MOMENT = os.environ.get("FAULT_MOMENT", "")
INSIDE = os.environ.get("FAULT_INSIDE", "")
random.seed(7)
_held = []
_lines = [0]
_calls = [0]
_alone = os.getpid()


def _own(frame):
    return frame.f_code.co_filename.startswith(FOLDER) and not frame.f_code.co_filename.endswith("fault.py")


def _tracer(frame, event, arg):
    if not _own(frame):
        return None
    _lines[0] += event == "line"
    return _tracer


def _profiler(frame, event, arg):
    _calls[0] += event == "call" and _own(frame)


def _raises(*args):
    raise RuntimeError("a hook of the user's")


def begin():
    """Seed, and set the fault inside the program up."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(11)
    if INSIDE == "raising-hooks":
        gc.callbacks.append(_raises)
        sys.excepthook = _raises
        threading.excepthook = _raises
        atexit.register(_raises)
        os.register_at_fork(before=_raises, after_in_child=_raises, after_in_parent=_raises)
    elif INSIDE == "settrace":
        threading.settrace(_tracer)
        sys.settrace(_tracer)
        sys._getframe(1).f_trace = _tracer
    elif INSIDE == "setprofile":
        threading.setprofile(_profiler)
        sys.setprofile(_profiler)
    elif INSIDE == "cprofile":
        _held.append(cProfile.Profile())
        _held[0].enable()
    elif INSIDE == "monitoring":
        watch = sys.monitoring
        watch.use_tool_id(watch.COVERAGE_ID, "fault")
        watch.register_callback(watch.COVERAGE_ID, watch.events.PY_START, _started)
        watch.set_events(watch.COVERAGE_ID, watch.events.PY_START)
    elif INSIDE == "no-gc":
        gc.disable()


def _started(code, offset):
    _calls[0] += code.co_filename.startswith(FOLDER) and not code.co_filename.endswith("fault.py")


def moment():
    """The middle of the program: wait until whoever brings the fault from outside has done so."""
    try:
        open(os.path.join(os.environ["FAULT_TMP"], "reached"), "w").close()
    except OSError:
        pass
    if INSIDE == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            while True:
                _held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            print("files:", error.strerror)
    if INSIDE == "callback-raises":
        raise RuntimeError("in the middle")
    if MOMENT:
        with open(MOMENT, "w") as file:
            file.write(str(os.getpid()))
        until = time.monotonic() + 60
        while os.path.exists(MOMENT) and time.monotonic() < until:
            time.sleep(0.01)
    if os.environ.get("FAULT_SAYS"):
        try:
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()
            print("a thread can start")
        except RuntimeError as error:
            print(error)


def live_long(function):
    """Call a function of a library for longer than a process lives unsampled; under stepscope, until it is sampled."""
    began, before = time.monotonic(), len(os.listdir("/proc/self/task"))
    late = "STEPSCOPE_RUN" in os.environ
    while time.monotonic() < began + (60 if late and len(os.listdir("/proc/self/task")) == before else 8):
        function()


def end(*states):
    """Print the random states and what a tracer has seen."""
    sys.settrace(None)
    sys.setprofile(None)
    for held in _held:
        held.disable() if isinstance(held, cProfile.Profile) else os.close(held)
    known = [repr(random.getstate())]
    if "numpy" in sys.modules:
        known.append(repr(sys.modules["numpy"].random.get_state()))
    for state in (*known, *states):
        print("state", hashlib.sha256(state if isinstance(state, bytes) else str(state).encode()).hexdigest()[:16])
    if _alone == os.getpid():
        print("seen", _lines[0], _calls[0])
        print("umask", oct(os.umask(0o22)), "callbacks", len(gc.callbacks) > 9)


def save(name, data):
    """Write bytes to a file of the program's."""
    with open(os.path.join(OUT, name), "wb") as file:
        file.write(data)
