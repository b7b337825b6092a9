"""Notebooks in an enabled environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.always.conftest import PATIENCE_S, Environment, wait_for
from tests.always.listing import job_of

from stepscope.derive.view import SessionView
from stepscope.model.log.events import Name
from stepscope.sessions.bundle import open_session

pytestmark = pytest.mark.tf
IMPORTS = """
import tensorflow as tf
@tf.function
def train_step(x):
    return tf.reduce_sum(x * x)
"""
TRAINS = """
import os, time
while not os.path.exists("stop"):
    train_step(tf.ones([4])); time.sleep(0.004)
"""


def test_a_notebook_kernel(tensorflow: Environment, tmp_path: Path) -> None:
    """A kernel is a job from the first cell that imports TensorFlow on, with rates and tasks; cells print as ever.

    The report names them as the notebook in the kernel's folder does.
    """
    jupyter = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    code = [{"cell_type": "code", "source": text} for text in (IMPORTS, TRAINS)]
    book = {"cells": [{"cell_type": "markdown", "source": "# Training"}, *code]}
    (tensorflow.folder / "train.ipynb").write_text(json.dumps(book))
    connection, _ = jupyter.write_connection_file(str(tmp_path / "kernel.json"))
    kernel = tensorflow.start(Path(connection), "-m", "ipykernel_launcher", "-f")
    client = jupyter.BlockingKernelClient(connection_file=connection)
    client.load_connection_file()
    client.start_channels()
    try:
        wait_for(lambda: _ready(client.wait_for_ready), "the kernel")
        reply = client.execute_interactive(IMPORTS, timeout=PATIENCE_S)
        assert reply["content"]["status"] == "ok", reply
        client.execute(TRAINS)
        job = wait_for(
            lambda: (job := job_of(kernel.pid)) and job["steps_per_s"] and job["tasks"] and job, "the kernel in ps"
        )
        assert job["step_title"] == "tf.function train_step"
        assert job["framework"].startswith("tensorflow ")
        (tensorflow.folder / "stop").write_text("")
        printed: list[str] = []
        client.execute_interactive("print('after')", timeout=PATIENCE_S, output_hook=lambda m: printed.append(_text(m)))
        assert "after" in "".join(printed)
        client.shutdown()
    finally:
        client.stop_channels()
    kernel.communicate(timeout=PATIENCE_S)
    (session,) = wait_for(tensorflow.finished, "the session's end")
    wait_for((session / "report.html").exists, "its report")
    view = SessionView(open_session(session))
    (worker,) = view.workers
    steps = [name for name in worker.all(Name) if name.text == "train_step" and name.file]
    places = {view.place(step.file, step.line) for step in steps}
    assert {place.file for place in places} == {"train.ipynb cell 2"}
    lines = {IMPORTS.split("\n")[place.line - 1] for place in places}
    assert lines <= {"@tf.function", "def train_step(x):"}


def _ready(wait: Callable[..., None]) -> bool:
    """Whether the kernel answers: on a busy machine one that starts is taken for dead."""
    try:
        wait(timeout=PATIENCE_S)
    except RuntimeError:
        return False
    return True


def _text(message: Mapping[str, Mapping[str, object]]) -> str:
    return str(message["content"].get("text", ""))
