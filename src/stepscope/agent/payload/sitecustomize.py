"""Arms the process, then runs the job's own sitecustomize as Python would have.

Found by ``site`` because the directory of this file is the first entry of PYTHONPATH. Every Python that the job starts
parses this file, even versions too old to be measured: nothing here is newer than Python 2.7.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if sys.version_info >= (3, 9) and os.environ.get("STEPSCOPE_RUN"):
    try:
        from stepscope.agent import bootstrap

        bootstrap.arm(os.environ["STEPSCOPE_RUN"])
        bootstrap.listen()
    except Exception:  # the job runs as without us, and the report says why; same form as wire/trouble.py
        try:
            import json

            _text = "%s: %s" % (sys.exc_info()[0].__name__, sys.exc_info()[1])  # type: ignore[union-attr]
            _line = json.dumps({"pid": os.getpid(), "where": "arming", "text": _text[:500]})
            _file = os.path.join(os.environ["STEPSCOPE_RUN"], "trouble.jsonl")
            _fd = os.open(_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if os.fstat(_fd).st_size < 1 << 16:
                os.write(_fd, _line.encode() + b"\n")
            os.close(_fd)
        except Exception:  # no run directory, no rights: there is nowhere to report it
            pass
    # The stub is in sys.modules and knows its own folder: the job's search path is as without us.
    sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
    _self = sys.modules.pop("sitecustomize", None)  # kept: Python 2 clears a module without references
    import sitecustomize  # type: ignore[import-not-found]
else:
    _path = list(sys.path)
    sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
    _self = sys.modules.pop("sitecustomize", None)  # kept: Python 2 clears a module without references
    try:
        import sitecustomize  # noqa: F401
    finally:
        sys.path[:] = _path
