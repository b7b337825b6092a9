"""The pre-commit hook that other repositories use."""

from __future__ import annotations

import shlex
from pathlib import Path

import yaml
from click.testing import CliRunner

from stepscope.cli.main import cli

HOOKS = Path(__file__).resolve().parents[2] / ".pre-commit-hooks.yaml"


def test_hook_runs(tmp_path: Path) -> None:
    """The hook's entry is a command that takes file names, and fails where something is found."""
    (hook,) = yaml.safe_load(HOOKS.read_text())
    assert hook["id"] == "stepscope-check"
    assert hook["language"] == "python"
    assert set(hook["types_or"]) == {"python", "jupyter"}
    program, *arguments = shlex.split(hook["entry"])
    assert program == "stepscope"
    slow, fine = tmp_path / "slow.py", tmp_path / "fine.py"
    fine.write_text("import tensorflow as tf\n")
    slow.write_text("import tensorflow as tf\nd = tf.data.Dataset.list_files('*').interleave(tf.data.Dataset.range)\n")
    codes = [
        CliRunner().invoke(cli, [*arguments, *map(str, files)], standalone_mode=False).return_value
        for files in ([fine], [fine, slow])
    ]
    assert codes == [0, 1]
