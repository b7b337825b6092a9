"""What the static checker adds to a report made by hand."""

from __future__ import annotations

from stepscope.model.report.report import LineHeat, SourceCheck
from stepscope.tables.findings import Cost, Evidence, Finding, Remedy
from stepscope.tables.place import Place

MS = 1_000_000


def _static(code: str, title: str, place: Place, remedy: str, *, seen: bool) -> Finding:
    """A pattern without a measured cost."""
    return Finding(
        code=code,
        name="a-pattern",
        title=title,
        severity="info",
        confidence=0.9,
        symptom="Time: slow execution time",
        cause="API: inefficient API usage",
        introduced_stage="data preparation",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=(place,),
        cost=Cost(ratio=0.0, low=0.0, high=0.6, basis="prior"),
        remedies=(Remedy(id="a-pattern", text=remedy, rule=code),),
        origin="static",
        seen=seen,
    )


JOINED = Finding(
    code="INP001",
    name="slow-input-stage",
    title="the input pipeline's stage map read_pictures takes 48 ms per batch (train.py:26); steps wait 58 % of their "
    "time for it",
    severity="high",
    confidence=0.9,
    where=(Place(file="train.py", line=26, function="make_dataset"),),
    evidence=(Evidence(metric="input_wait_ratio", value=0.58, unit="ratio", threshold=0.15),),
    cost=Cost(ratio=0.58, low=0.55, high=0.6, ns_per_step=46 * MS),
    remedies=(
        Remedy(
            id="parallel-map",
            text="give the map num_parallel_calls=tf.data.AUTOTUNE: it runs one element at a time now",
        ),
        Remedy(
            id="sequential-stateful-map",
            text="add num_parallel_calls=tf.data.AUTOTUNE at train.py:26",
            safety="unsafe",
            rule="TFD001",
            edit="stepscope check --diff --unsafe-fixes --select TFD001 train.py",
        ),
    ),
    explanation="The batch is not ready when the step asks for it. TFD001 sees it in the source: map runs "
    "read_pictures on one element at a time: tf.random.uniform makes it stateful. Random ops draw in another order "
    "than before.",
    origin="joined",
    related_codes=("TFD001",),
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
)
"""A detector's finding and a rule's, made one."""

SOURCE_CHECK = SourceCheck(
    tensorflow="2.21",
    files=3,
    lines=812,
    rules=41,
    findings=(
        _static(
            "TFF001",
            "train_step is traced anew for each value of step, a Python number that changes in the loop",
            Place(file="train.py", line=31, function="main"),
            "pass tf.constant(step) at train.py:31",
            seen=True,
        ),
        _static(
            "KER001",
            "model.predict | is called for a <single> row again and again in this loop",
            Place(file="tools/a `b`.py", line=7, function="score"),
            "predict all rows in one call",
            seen=False,
        ),
    ),
    not_shown=2,
    left_out=("/home/ann/demo/generated.py: skipped, its 9,000 lines exceed the 5,000 that a report checks",),
    command="stepscope check train.py 'tools/a `b`.py'",
)
"""What a run did not see to cost anything."""

HEAT = (
    LineHeat(file="train.py", line=26, ratio=0.58),
    LineHeat(file="train.py", line=37, ratio=0.047),
    LineHeat(file="other.py", line=25, ratio=0.02),
)
"""What lines are known to cost."""
