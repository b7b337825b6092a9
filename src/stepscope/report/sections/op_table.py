"""The report's table of ops."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import line_times
from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.trace_view import OpView
from stepscope.model.report.op_table import MakerTime, OpTable, OpTime, TypeTime
from stepscope.model.session.session import Worker, WorkerInfo
from stepscope.tables.errors import DamagedError, SessionError, StepscopeError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.records import RecordTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.optrace.line_times import Line, OpLines
    from stepscope.derive.optrace.line_times import OpTime as Joined
    from stepscope.derive.view import SessionView

MAX_MAKERS, MAX_OPS, MAX_TYPES = 30, 50, 30
LEAST = 0.005
TOP_TYPES = 3
UNREADABLE = "DX121"
FAILED = "DX124"
"""An analysis of an op trace failed; the rest of the report is complete."""


def build(view: SessionView) -> tuple[OpTable | None, tuple[Diagnostic, ...]]:
    """The table of the report's trace, else of the newest trace of another process; None if no ops were traced.

    Also returns what could not be read, or failed.
    """
    traced, problems = view.traces.shown, []
    for stored in view.traces.elsewhere:
        try:
            traced = OpView(stored.load(), stored.name, worker=stored.worker)
            break
        except DamagedError:
            raise
        except SessionError as error:
            problems.append(Diagnostic(code=UNREADABLE, text=str(error)))
    try:
        table = _of(view, traced) if traced is not None else None
    except DamagedError:
        raise
    except (StepscopeError, ArithmeticError, LookupError, ValueError) as error:  # files from elsewhere
        text = f"{traced.name if traced else ''}: the op table failed: {type(error).__name__}: {error}"
        return None, (*problems, Diagnostic(code=FAILED, text=text))
    return table, tuple(problems)


def _of(view: SessionView, traced: OpView) -> OpTable | None:
    index = index_of(view, traced.worker)
    lines = line_times.build(traced.trace, index, traced.periods.pauses)
    if not lines.total_ps:
        return None
    steps = traced_steps.find(traced.trace)  # ops of a step that is cut count too
    return OpTable(
        trace=traced.name,
        begin_ns=int(traced.trace.events.start_ns.min()),
        steps=len(steps[0]) if steps else 0,
        ns=lines.total_ps // 1000,
        joined_ratio=lines.joined_ratio,
        input_ratio=sum(op.self_ps for op in lines.ops if _of_input(op, index)) / lines.total_ps,
        named_ratio=lines.named_ratio,
        unnamed_types=_top_types([op for op in lines.ops if not op.named]),
        makers=_makers(view, lines, index),
        ops=tuple(
            OpTime(
                name=op.name,
                type=op.type,
                layer=op.layer.name if op.layer is not None else "",
                file=_file(view, op.place),
                line=op.place.line if op.place is not None else 0,
                gradient=op.gradient,
                input=_of_input(op, index),
                device=op.plane,
                shape=op.shape,
                flops=op.flops,
                calls=op.calls,
                ns=op.self_ps // 1000,
                ratio=op.self_ps / lines.total_ps,
            )
            for op in lines.ops[:MAX_OPS]
        ),
        types=tuple(
            TypeTime(type=share.type, calls=share.calls, ns=share.self_ps // 1000, ratio=share.ratio)
            for share in lines.by_type()[:MAX_TYPES]
        ),
    )


def index_of(view: SessionView, key: str) -> GraphIndex:
    """The graphs of the process that was traced; empty where the trace is of none of the session."""
    if view.worker is not None and key == view.worker.info.key and view.graphs is not None:
        return view.graphs
    nobody = Worker(info=WorkerInfo(key="", pid=0), records=RecordTable.empty())
    return GraphIndex(next((worker for worker in view.workers if worker.info.key == key), nobody))


def _of_input(op: Joined, index: GraphIndex) -> bool:
    """Whether tf.data calls the graph of an op; of an op without a node it is not known."""
    return op.row >= 0 and index.of_data(int(index.table.graph[op.row]))


def _makers(view: SessionView, lines: OpLines, index: GraphIndex) -> tuple[MakerTime, ...]:
    groups: dict[tuple[Line | None, int], list[Joined]] = defaultdict(list)
    for op in lines.ops:
        if op.named:
            groups[op.place, op.layer.id if op.layer is not None else 0].append(op)
    found = [_maker(view, group, lines.total_ps, index) for group in groups.values()]
    kept = [maker for maker in found if maker.ratio >= LEAST]
    return tuple(sorted(kept, key=lambda maker: -maker.ns)[:MAX_MAKERS])


def _maker(view: SessionView, ops: list[Joined], total_ps: int, index: GraphIndex) -> MakerTime:
    first = ops[0]
    own = sum(op.self_ps for op in ops)
    return MakerTime(
        layer=first.layer.name if first.layer is not None else "",
        layer_type=first.layer.cls if first.layer is not None else "",
        file=_file(view, first.place),
        line=first.place.line if first.place is not None else 0,
        function=first.place.function if first.place is not None else "",
        built=first.line is None and first.place is not None,
        types=_top_types(ops),
        calls=sum(op.calls for op in ops),
        ns=own // 1000,
        ratio=own / total_ps,
        input=all(_of_input(op, index) for op in ops),
        gradient_ratio=sum(op.self_ps for op in ops if op.gradient) / total_ps,
    )


def _top_types(ops: Sequence[Joined]) -> tuple[str, ...]:
    by_type: dict[str, int] = defaultdict(int)
    for op in ops:
        by_type[op.type] += op.self_ps
    return tuple(sorted(by_type, key=lambda name: -by_type[name])[:TOP_TYPES])


def _file(view: SessionView, line: Line | None) -> str:
    return view.place(line.file, line.line).file if line is not None else ""
