"""Tasks of the sample reports."""

from stepscope.model.report.task import Task, TaskPart
from stepscope.tables.place import Place

MS = 1_000_000

TASKS = (
    Task(
        kind="Keras function",
        name="train_function",
        pid=4711,
        count=600,
        timed=600,
        first_ns=3 * 10**9,
        last_ns=50 * 10**9,
        rate_per_s=12.77,
        total_ns=43_500 * MS,
        mean_ns=72_500_000,
        p50_ns=71_000_000,
        p95_ns=90_100_000,
        p99_ns=140_000_000,
        max_ns=310 * MS,
        outliers=4,
        trend_ratio=0.0,
    ),
    Task(
        kind="Session.run",
        name="train, loss:0",
        pid=4711,
        count=1_204_117,
        timed=8_031,
        first_ns=3 * 10**9,
        last_ns=50 * 10**9,
        rate_per_s=25_619.0,
        total_ns=19_200 * MS,
        mean_ns=15_945,
        p50_ns=14_100,
        p95_ns=31_000,
        p99_ns=77_000,
        max_ns=12 * MS,
        outliers=0,
        trend_ratio=0.12,
        where=Place(file="train.py", line=24, function="train"),
        added=(TaskPart(text="StepCounterHook: global_step:0", count=1_204_117),),
    ),
)
