"""Op determinism: it makes tf.data run some maps on one thread, whatever parallelism they request.

Affected are maps that read a variable, or draw random numbers in a branch or a loop; for other maps that draw, only the
part that does.

Source: tensorflow/core/grappler/optimizers/data/make_deterministic.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.log.program import Setting
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.view import SessionView

REMEDY = Remedy(
    id="stateless-random",
    text="draw in the map with tf.random.stateless_* (tf.image.stateless_random_*) and a seed that comes with the "
    "element (zip with Dataset.random or Dataset.counter), and read no variable in it: results stay the same from run "
    "to run, and the map may use all CPUs; or do without tf.config.experimental.enable_op_determinism",
)


def turned_on(view: SessionView) -> Setting | None:
    """The setting that turned it on, if any. It cannot be turned off."""
    settings = view.worker.all(Setting) if view.worker is not None else ()
    return next((s for s in settings if s.name == "op_determinism" and s.file), None)


def takes_threads(view: SessionView, stage: Stage | None) -> Setting | None:
    """The setting that turned it on, if it makes a parallel map run on one thread."""
    asked = stage is not None and stage.name == "Map" and any("Parallel" in d.cls for d in stage.datasets)
    return turned_on(view) if asked else None
