"""The table of ``bench-faults``: programs by the probes that they exercise, and faults with what a report must say.

A new probe adds its name to a program that exercises it, or a program (a contract test). A fault applies to every
program unless it names some.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program of ``bench/programs/faults``. ``python``: which interpreter, as options of the bench name it."""

    probes: tuple[str, ...]
    python: str = "own"
    cpu_s: float
    """CPU time of a pair, without and with stepscope: for the estimate, until runs have measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and where: around launcher and job, for the job alone, inside the program, or at a moment."""

    says: str = ""
    """Pattern that the report, or the launcher's last lines, must have, "CODE" for the exit code without stepscope; "":
    nothing is lost, so nothing must be said, but the job must be measured."""
    around: tuple[str, ...] = ()
    """Changes of the mount namespace and groups in which launcher and job run (``_faults_cell``)."""
    before: tuple[str, ...] = ()
    """Command in front of the launcher, or of the job where there is none."""
    job: tuple[str, ...] = ()
    """Command in front of the job's Python."""
    flags: tuple[str, ...] = ()
    """Arguments of the job's Python."""
    inside: str = ""
    """What ``programs/faults/fault.py`` does in the program."""
    moment: str = ""
    """What happens in the middle of the program (``_faults_cell``)."""
    environment: dict[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    python: str = ""
    """Interpreter instead of the program's."""
    exit_code: bool = True
    """Whether the exit code is the job's: not if the launcher is killed."""
    unmeasured: bool = False
    """Whether there need not be a measured process: then ``says`` tells why."""


PROGRAMS = {
    "inference": Program(
        probes=(
            *("python.gc", "python.children", "python.thread_deaths", "python.memory_watch"),
            "onnxruntime.inference",
        ),
        cpu_s=5,
    ),
    "training": Program(
        probes=(
            *("keras.frameworks", "keras.keras_loops", "keras.keras_steps", "keras.keras_callbacks", "keras.layers"),
            *("keras.model_calls", "python.py_functions", "tensorflow.settings", "tensorflow.graph_nodes"),
            *("tensorflow.padding", "tensorflow.tf_data", "tensorflow.tf_data_model", "tensorflow.saving"),
        ),
        cpu_s=14,
    ),
    "eager": Program(
        probes=(
            *("tensorflow.tf_function", "tensorflow.gradients", "tensorflow.eager_turns", "tensorflow.eager_ops"),
            *("tensorflow.sync", "tensorflow.profiler", "tensorflow.device_memory", "tensorflow.servers"),
        ),
        cpu_s=11,
    ),
    "sessions": Program(
        probes=("tensorflow.session", "tensorflow.session_hooks", "tensorflow.building"),
        cpu_s=11,
    ),
    "torch_steps": Program(
        probes=("torch.optimizer_steps", "torch.backward", "torch.data_loaders"),
        python="torch",
        cpu_s=11,
    ),
    "jax_steps": Program(
        probes=("jax.processes", "jax.compilations", "jax.waits", "jax.jit_calls"),
        python="jax",
        cpu_s=9,
    ),
    "keras_jax_steps": Program(probes=("keras.keras_batches",), python="jax", cpu_s=14),
    "numpy_steps": Program(probes=(), cpu_s=24),
}

_ELSEWHERE = r"DX107.*cannot (hold|store) a session|cannot (hold|store) a session"
_NO_RING = r"DX900.*no ring|DX115"
_NOT_ARMED = r"DX10[89]|DX115|not armed|was not measured"
_ALONE = {"FAULT_ALONE": "1"}
"""No processes beside the program's: where they cannot be made."""
_NEWER = ("eager",)

_WITHOUT_FOLDER = """import runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")"""
"""Under -I a program's own folder is not on the path."""

FAULTS: dict[str, Fault] = {
    "none": Fault(),
    "sidecar killed": Fault(moment="kill sidecar", says="DX101"),
    "sidecar stopped for a while": Fault(moment="stop sidecar"),
    "launcher killed": Fault(moment="kill launcher", exit_code=False),
    "job killed": Fault(moment="kill job", says="ended with CODE"),
    "job terminated": Fault(moment="terminate job", says="ended with CODE"),
    "job stopped for a while": Fault(moment="pause job"),
    "job raises": Fault(inside="callback-raises", says="ended with CODE"),
    "disk full from the start": Fault(around=("sessions=4m",), says=_ELSEWHERE),
    "disk full in the middle": Fault(around=("sessions=9m",), moment="fill sessions", says="No space|full|DX10"),
    "disk and all else full in the middle": Fault(
        around=("sessions=9m", "shm=64m", "tmp=64m"), moment="fill all", says="No space|full|DX10|could not be written"
    ),
    "file size limit": Fault(before=("prlimit", "--fsize=2000000"), says=_NO_RING, unmeasured=True),
    "read-only session folder": Fault(around=("sessions=ro",), says=_ELSEWHERE),
    "read-only root": Fault(around=("root=ro",)),
    "nothing can be written": Fault(
        around=("root=ro", "tmp=ro", "shm=ro", "sessions=ro"),
        environment=_ALONE,
        says="nothing is recorded",
        unmeasured=True,
    ),
    "/dev/shm of 64 MB": Fault(around=("shm=64m",)),
    "/dev/shm of 64 MB, no disk": Fault(around=("shm=64m", "tmp=ro")),
    "/dev/shm full": Fault(around=("shm=64m", "fill=shm"), environment=_ALONE),
    "/dev/shm full, no disk": Fault(
        around=("shm=64m", "fill=shm", "tmp=ro"),
        environment=_ALONE,
        says="nothing is recorded|no ring",
        unmeasured=True,
    ),
    "/dev/shm read-only": Fault(around=("shm=ro",), environment=_ALONE),
    "clock of the day back by an hour": Fault(
        moment="set clock",
        environment={"LD_PRELOAD": "CLOCK"},
        programs=tuple(name for name in PROGRAMS if name != "training"),  # tf.data itself then waits for an hour
    ),
    "other time since boot": Fault(before=("unshare", "-T", "--monotonic", "900000", "--boottime", "900000", "--fork")),
    "other time since boot, job alone": Fault(
        job=("unshare", "-T", "--monotonic", "900000", "--boottime", "900000", "--fork")
    ),
    "memory group": Fault(around=("memory=1500m",)),
    "address space": Fault(before=("prlimit", f"--as={24 << 30}")),
    "no thread can start, from the start": Fault(
        job=("sh", "-c", 'echo $$ > "$FAULT_PIDS/cgroup.procs" && exec "$@"', "sh"),
        around=("pids=1",),
        environment={**_ALONE, "FAULT_SAYS": "1"},
        says="DX9.*thread",
        programs=("inference",),
    ),
    "no thread can start, from the middle": Fault(
        around=("pids=5000",), moment="limit pids", environment={"FAULT_SAYS": "1"}
    ),
    "no descriptor left": Fault(inside="files"),
    "few descriptors": Fault(before=("prlimit", "--nofile=128:128")),
    "raising hooks": Fault(inside="raising-hooks"),
    "cProfile": Fault(inside="cprofile"),
    "sys.setprofile": Fault(inside="setprofile"),
    "sys.settrace": Fault(inside="settrace"),
    "sys.monitoring": Fault(inside="monitoring", python="newer", programs=_NEWER),
    "strace follows the job": Fault(moment="attach strace"),
    "perf record follows the job": Fault(moment="attach perf"),
    "TensorFlow's profiler": Fault(inside="tf-profiler", programs=("eager",)),
    "collections off": Fault(inside="no-gc"),
    "malloc of debug, -X dev": Fault(environment={"PYTHONMALLOC": "debug"}, flags=("-X", "dev")),
    "warnings are errors": Fault(flags=("-W", "error::ResourceWarning", "-W", "error::RuntimeWarning")),
    "-O": Fault(flags=("-OO",)),
    "-I": Fault(flags=("-I", "-c", _WITHOUT_FOLDER), says=_NOT_ARMED, unmeasured=True),
    "unbuffered, verbose": Fault(flags=("-u", "-v")),
    "uid without a name": Fault(
        before=(
            "setpriv",
            "--reuid=54321",
            "--regid=54321",
            "--clear-groups",
            "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override",
        ),
        around=("owner=54321",),
    ),
    "no ptrace": Fault(around=("deny=ptrace",)),
    "no perf": Fault(around=("deny=perf",)),
    "pid namespace": Fault(before=("unshare", "-p", "--fork", "--mount-proc")),
    "job in a pid namespace": Fault(job=("unshare", "-p", "--fork", "--mount-proc")),
    "no network": Fault(before=("unshare", "-n")),
    "no environment": Fault(environment={"HOME": "", "LANG": "", "TERM": "", "USER": ""}),
    "home that is not there": Fault(environment={"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}),
    "locale C": Fault(environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "closed standard streams": Fault(before=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")),
    "umask 077": Fault(before=("sh", "-c", 'umask 077 && exec "$@"', "sh")),
    "umask 777": Fault(job=("sh", "-c", 'umask 777 && exec "$@"', "sh")),
    "working directory deleted": Fault(
        job=("sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh"),
        programs=tuple(name for name in PROGRAMS if name != "torch_steps"),  # PyTorch itself cannot be imported then
    ),
}

LEFT_OUT = {
    "quotas of users": "need a file system with quotas; a limit of file sizes and a small file system stand for them",
    "clock of the day, set for real": "would set the clock of the whole machine; a preloaded library stands for it",
    "perf_event_paranoid": "a setting of the whole machine; the system call is denied instead",
}
"""Faults that are not made, and why."""


def cells(pythons: dict[str, str]) -> list[tuple[str, str]]:
    """(fault, program) of all that can run with these interpreters, by fault."""
    return [
        (fault, name)
        for fault, about in FAULTS.items()
        for name in about.programs or tuple(PROGRAMS)
        if pythons.get(about.python or PROGRAMS[name].python)
    ]
