"""Arms the process, then runs the job's own sitecustomize as Python would have.

Found by ``site`` because the directory of this file is the first entry of PYTHONPATH. Parsed by every Python that the
job starts, also by those that are too old to be measured: nothing here is newer than Python 2.7.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if sys.version_info >= (3, 9) and os.environ.get("STEPSCOPE_RUN"):
    try:
        from stepscope.agent import bootstrap

        bootstrap.arm(os.environ["STEPSCOPE_RUN"])
    except Exception:  # no run directory, no rights: the job runs as without us
        pass
    # The stub is in sys.modules and knows its own folder: the job's search path is as without us.
    sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
    _self = sys.modules.pop("sitecustomize", None)  # kept: Python 2 clears a module that nobody holds
    import sitecustomize  # type: ignore[import-not-found]
else:
    _path = list(sys.path)
    sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
    _self = sys.modules.pop("sitecustomize", None)  # kept: Python 2 clears a module that nobody holds
    try:
        import sitecustomize  # noqa: F401
    finally:
        sys.path[:] = _path
