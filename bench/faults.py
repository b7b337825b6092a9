"""Does a fault that meets a measured job change anything for the job, and does the report say what happened?

Every program of ``_faults_table`` meets every fault, without stepscope and under ``stepscope run``. Output, files, exit
code and random states are compared bit by bit; then what is left: processes, mounts, files, shared memory. Runs are
kept in ``--results`` and not run again. Needs root.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

import _faults_judge
from _faults_data import Plain, Ran, Run, Spec
from _faults_table import FAULTS, LEFT_OUT, PROGRAMS, cells

ROOT = Path(__file__).resolve().parent.parent
PROGRAM_FOLDER = ROOT / "bench" / "programs" / "faults"
BUILD = ROOT / "build" / "faults"
PAGE = ROOT / "docs" / "benchmarks" / "faults.md"
STEADY = {
    "PYTHONHASHSEED": "0",
    "TF_DETERMINISTIC_OPS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Results:
    """Rows so far, one JSON object a line; all files of a folder are read, one is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(path.parent.glob("*.jsonl"))
        self.rows = [
            msgspec.json.decode(line, type=Plain | Run) for file in files for line in file.read_bytes().splitlines()
        ]

    def runs(self, **fields: object) -> list[Run]:
        """The runs under stepscope with these fields."""
        runs = [row for row in self.rows if isinstance(row, Run)]
        return [row for row in runs if all(getattr(row, name) == value for name, value in fields.items())]

    def plain(self, fault: str, program: str) -> Plain | None:
        """The run without stepscope."""
        plain = [row for row in self.rows if isinstance(row, Plain)]
        return next((row for row in plain if (row.fault, row.program) == (fault, program)), None)

    def add(self, row: Plain | Run) -> None:
        """Keep a row."""
        with self._path.open("ab") as stream:
            stream.write(msgspec.json.encode(row) + b"\n")
        self.rows.append(row)


class Bench:
    """Runs cells with the interpreters that there are."""

    def __init__(self, pythons: dict[str, str], results: Results) -> None:
        self.pythons = pythons
        self.results = results
        self._model = BUILD / "tower.onnx"
        self._clock = BUILD / "clock.so"

    def prepare(self) -> None:
        """Make what programs need: a model, and the clock that jumps."""
        BUILD.mkdir(parents=True, exist_ok=True)
        if not self._model.exists():
            subprocess.run([sys.executable, "-c", _MAKE_MODEL, str(self._model)], check=True)
        if not self._clock.exists():
            source = str(PROGRAM_FOLDER / "clock.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(self._clock), source, "-ldl"], check=True)

    def run(self, fault: str, program: str, *, measured: bool) -> Ran:
        """One run."""
        about = FAULTS[fault]
        folder = Path(tempfile.mkdtemp(prefix="fault-", dir=BUILD))
        try:
            python = self.pythons[about.python or PROGRAMS[program].python]
            session = ["--session", str(folder / "sessions" / "s.stepscope")]
            launcher = [sys.executable, "-m", "stepscope", "run", "-q", *session, "--"] if measured else []
            spec = Spec(
                folder=str(folder),
                launcher=launcher,
                keep=[str(Path(python).parent.parent)] if python.startswith("/tmp/") else [],
                command=[python, *about.flags, str(PROGRAM_FOLDER / f"{program}.py")],
                around=list(about.around),
                before=list(about.before),
                job=list(about.job),
                inside=about.inside,
                moment=about.moment,
                environment={
                    **STEADY,
                    "FAULT_MODEL": str(self._model),
                    "FAULT_TOKEN": folder.name,
                    **{name: value.replace("CLOCK", str(self._clock)) for name, value in about.environment.items()},
                },
            )
            (folder / "spec.json").write_bytes(msgspec.json.encode(spec))
            cell = [sys.executable, str(Path(__file__).with_name("_faults_cell.py"))]
            result = folder / "result.json"
            work = ["unshare", "-m", "-i", *cell, str(folder / "spec.json"), str(result)]
            subprocess.run(work, check=True, env=_environment())
            return msgspec.json.decode(result.read_bytes(), type=Ran)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def plain(self, fault: str, program: str) -> Plain:
        """The run without stepscope, made once, and once more to see that the program does the same again."""
        known = self.results.plain(fault, program)
        if known is None:
            row, again = (self.run(fault, program, measured=False) for _ in range(2))
            unstable = _faults_judge.differences(row, again, FAULTS[fault])
            known = Plain(fault=fault, program=program, unstable=unstable, row=row)
            self.results.add(known)
        return known

    def pair(self, fault: str, program: str, number: int) -> Run:
        """One run under stepscope, judged."""
        plain = self.plain(fault, program)
        if plain.unstable or _faults_judge.unused(plain.row):
            why = plain.unstable or ["the program does not get to the fault without stepscope"]
            row = Run(fault=fault, program=program, round=number, no_use=why)
        else:
            ours = self.run(fault, program, measured=True)
            row = _faults_judge.judged(fault, program, number, plain.row, ours)
        self.results.add(row)
        return row


_MAKE_MODEL = """
import sys, numpy as np, onnx
from onnx import TensorProto, helper
weight = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
initial = helper.make_tensor("w", TensorProto.FLOAT, [16, 16], weight.tobytes(), raw=True)
infos = [helper.make_tensor_value_info(*about) for about in
         (("scale", TensorProto.FLOAT, []), ("x", TensorProto.FLOAT, ["n", 16]), ("y", TensorProto.FLOAT, ["n", 16]))]
nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "scale"], ["y"])]
graph = helper.make_graph(nodes, "tower", infos[:2], infos[2:], [initial])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
"""


def _environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER")
    return {name: os.environ[name] for name in kept if name in os.environ}


def plan(pythons: dict[str, str], runs: int, seed: int) -> list[tuple[str, str, int]]:
    """(fault, program, round) of so many runs: every cell once in a random order, then again."""
    found = cells(pythons)
    order: list[tuple[str, str, int]] = []
    number = 0
    while len(order) < runs:
        mixed = list(found)
        random.Random(seed + number).shuffle(mixed)
        order += [(fault, program, number) for fault, program in mixed]
        number += 1
    return order[:runs]


def table(results: Results) -> str:
    """The runs as a table of Markdown, by fault."""
    lines = ["| fault | runs | differences | silent | the report must say |", "|---|---:|---:|---:|---|"]
    total: Counter[str] = Counter()
    for fault, about in FAULTS.items():
        rows = [row for row in results.runs(fault=fault) if not row.no_use]
        counts = Counter(runs=len(rows), differ=sum(bool(row.differences) for row in rows))
        counts["silent"] = sum(bool(row.silent) for row in rows)
        total += counts
        says = f"`{about.says}`".replace("|", "\\|") if about.says else "nothing is lost"
        lines.append(f"| {fault} | {counts['runs']} | {counts['differ']} | {counts['silent']} | {says} |")
    lines.append(f"| all | {total['runs']} | {total['differ']} | {total['silent']} | |")
    unused = sorted({(row.program, row.fault) for row in results.runs() if row.no_use})
    lines += [
        "",
        f"Cells of no use, since the program does not get there, or differs, without stepscope: {len(unused)}.",
    ]
    lines += [f"- {program}, {fault}" for program, fault in unused]
    lines += ["", "Faults that are not made:", *(f"- {name}: {why}" for name, why in LEFT_OUT.items())]
    return "\n".join(lines)


def estimate(todo: list[tuple[str, str, int]], results: Results) -> float:
    """CPU seconds of what is to be done: by runs of the same program so far, else by the table."""
    total = 0.0
    for _, program, _ in todo:
        known = [row.cpu_s for row in results.runs(program=program) if row.cpu_s]
        total += 1.8 * sum(known) / len(known) if known else PROGRAMS[program].cpu_s
    return total


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="0/1", help="i/n: the runs whose number leaves i when divided by n")
    parser.add_argument("--torch", default="", metavar="PYTHON")
    parser.add_argument("--jax", default="", metavar="PYTHON")
    parser.add_argument(
        "--newer", default="", metavar="PYTHON", help="3.12 or newer with TensorFlow, for sys.monitoring"
    )
    parser.add_argument("--only", default="", help="faults, separated by semicolons")
    parser.add_argument("--programs", default="", help="programs, separated by commas")
    parser.add_argument("--results", type=Path, default=BUILD / "results")
    parser.add_argument("--plan", action="store_true", help="print what would be run, and its cost")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    part, parts = map(int, options.shard.split("/"))
    results = Results(options.results / f"shard-{part}-of-{parts}.jsonl")
    pythons = {"own": sys.executable, "torch": options.torch, "jax": options.jax, "newer": options.newer}
    todo = plan(pythons, options.runs, options.seed)[part::parts]
    todo = [run for run in todo if not options.only or run[0] in options.only.split(";")]
    todo = [run for run in todo if not options.programs or run[1] in options.programs.split(",")]
    todo = [run for run in todo if not results.runs(fault=run[0], program=run[1], round=run[2])]
    print(f"{len(todo)} runs, about {estimate(todo, results) / 60:.0f} min of CPU", file=sys.stderr)
    if options.plan:
        sys.stdout.writelines(f"{program:12} {fault} ({number})\n" for fault, program, number in todo)
        return
    bench = Bench(pythons, results)
    bench.prepare()
    for fault, program, number in todo:
        try:
            row = bench.pair(fault, program, number)
        except subprocess.CalledProcessError as error:  # of the bench itself: the run is made when it is started again
            print(f"{program:12} {fault:40} failed: {error}", flush=True)
            continue
        worst = row.no_use or row.differences or row.silent or "same"
        print(f"{program:12} {fault:40} {worst}", flush=True)
    text = table(results)
    print(next(line for line in text.splitlines() if line.startswith("| all |")))
    if options.write:
        page, begin, end = PAGE.read_text(), "<!-- table -->", "<!-- end -->"
        before, _, rest = page.partition(begin)
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
