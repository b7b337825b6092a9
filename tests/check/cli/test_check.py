"""``stepscope check`` from the command line: formats, exit codes, settings, comments, baseline."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from stepscope.check.cli.check import check
from stepscope.tables.errors import CheckError

ROOT = Path(__file__).resolve().parents[3]
SLOW = """import tensorflow as tf
ds = tf.data.TFRecordDataset("x")
ds = ds.map(lambda x: tf.image.random_flip_up_down(x))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one slow file, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    (tmp_path / "train.py").write_text(SLOW)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["tensorflow>=2.12"]\n')
    return tmp_path


def call(*args: str | Path) -> Result:
    """Run the command; errors of ours are raised."""
    return CliRunner().invoke(check, [str(a) for a in args], standalone_mode=False, catch_exceptions=False)


def codes(result: Result) -> list[str]:
    """The codes of a report in JSON."""
    return [finding["code"] for finding in json.loads(result.stdout)["findings"]]


def test_text(project: Path) -> None:
    """One line a finding, file, line and column first; exit code 1."""
    done = call(project)
    assert done.stdout.startswith(f"{project.as_posix()}/train.py:3:6: TFD001 map runs its lambda")
    assert done.return_value == 1


def test_nothing_found(project: Path) -> None:
    """A clean project: exit code 0, and the summary says what was looked at and for which version."""
    (project / "train.py").write_text("import tensorflow as tf\n")
    done = call(project)
    assert done.return_value == 0
    assert "checked 1 file for TensorFlow 2.12 (pyproject.toml): nothing found" in done.stderr


TORCH = """import torch

def train(model, loader, optimizer):
    losses = []
    for batch, target in loader:
        loss = torch.nn.functional.mse_loss(model(batch), target)
        losses.append(loss.item())
"""


@pytest.mark.parametrize(
    "code",
    [
        TORCH,
        TORCH + "        print(model(batch).detach().numpy().mean())\n",
        "import jax\nimport jax.numpy as jnp\n\nstep = jax.jit(lambda w, x: jnp.dot(x, w))\n",
        "import onnxruntime\n\nsession = onnxruntime.InferenceSession('m.onnx')\n",
    ],
)
def test_a_file_that_no_rule_knows_is_not_clear(project: Path, code: str) -> None:
    """Nobody looked: the summary, the report and, if asked, the exit code say so; also from the cache."""
    (project / "train.py").write_text(code)
    for _ in range(2):
        done = call(project)
        assert done.return_value == 0
        assert "nothing found" not in done.stderr
        assert f"1 file not analysed: no rule knows it ({project.as_posix()}/train.py)" in done.stderr
        assert call(project, "--fail-unanalysed").return_value == 3
    report = json.loads(call(project, "--format", "json").stdout)
    assert report["not_analysed"] == [f"{project.as_posix()}/train.py"]
    jsonschema.validate(report, json.loads((ROOT / "docs/schemas/check-1.json").read_text()))


def test_files_beside_those_that_rules_know(project: Path) -> None:
    """What was found stays found; an empty file has nothing to analyse, and what a known file imports is analysed."""
    (project / "lone.py").write_text(TORCH)
    (project / "empty.py").write_text("\n")
    (project / "helper.py").write_text("def double(x):\n    return x + x\n")
    (project / "train.py").write_text("import helper\n" + SLOW)
    done = call(project, "--fail-unanalysed")
    assert done.return_value == 1
    assert "checked 3 files for TensorFlow 2.12 (pyproject.toml): 1 warning; 1 file not analysed" in done.stderr
    (project / "train.py").write_text("import helper\nimport tensorflow as tf\n")
    done = call(project)
    assert "checked 3 files for TensorFlow 2.12 (pyproject.toml): nothing found; 1 file not analysed" in done.stderr
    assert call(project / "train.py", "--fail-unanalysed").return_value == 0


def test_unanalysed_files_fail_a_check_that_found_little(project: Path) -> None:
    """What does not fail a check, an info or a warning below the chosen severity, hides no unanalysed file."""
    (project / "lone.py").write_text(TORCH)
    for least in ("error", "never"):
        assert call(project, "--fail-unanalysed", "--fail-on", least).return_value == 3
        assert call(project, "--fail-on", least).return_value == 0
    (project / "train.py").write_text(SLOW.replace("tf.image.random_flip_up_down(x)", "tf.random.uniform([])"))
    done = call(project, "--fail-unanalysed", "--show-info", "--format", "json")
    assert (codes(done), done.return_value) == (["TFD001"], 3)


def test_garbage_is_collected_again_after_a_check(project: Path) -> None:
    """Only the command itself goes without, whether it finds something or fails."""
    call(project)
    assert gc.isenabled()
    with pytest.raises(CheckError):
        call(project / "absent")
    assert gc.isenabled()


def test_json_is_valid(project: Path) -> None:
    """The report validates against the published schema and names rules, target and place."""
    done = call(project, "--format", "json")
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads((ROOT / "docs/schemas/check-1.json").read_text()))
    assert report["target"] == {"tensorflow": "2.12", "keras": 2, "source": "pyproject.toml"}
    (finding,) = report["findings"]
    assert finding["origin"] == "static"
    assert finding["where"][0] | {"file": ""} == {
        "file": "",
        "line": 3,
        "end_line": 3,
        "function": "",
        "column": 6,
        "end_column": 55,
        "cell": None,
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--select", "TFD"], ["TFD001"]),
        (["--select", "KER"], []),
        (["--ignore", "TFD001"], []),
        (["--select", "TFD", "--ignore", "TFD001"], []),
        (["--exclude", "train.py"], []),
    ],
)
def test_choosing(project: Path, arguments: list[str], expected: list[str]) -> None:
    """Rules by code or its beginning, files by pattern."""
    assert codes(call(project, "--format", "json", *arguments)) == expected


def test_settings(project: Path) -> None:
    """The table in pyproject.toml: target version, codes of single files; the command line goes before it."""
    settings = project / "pyproject.toml"
    settings.write_text('[tool.stepscope.check]\ntarget-version = "2.4"\nper-file-ignores = {"*.py" = ["TFD"]}\n')
    done = json.loads(call(project, "--format", "json").stdout)
    assert (done["findings"], done["ignored"], done["target"]["source"]) == ([], 1, "pyproject.toml")
    assert (
        json.loads(call(project, "--format", "json", "--target-version", "2.9").stdout)["target"]["tensorflow"] == "2.9"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.stepscope.check]\nselekt = []", "selekt.*settings are select, ignore"),
        ('[tool.stepscope.check]\nselect = "TFD"', "Expected `array`"),
        ('[tool.stepscope.check]\nselect = ["XYZ"]', "no rule's code starts with 'XYZ'"),
        ('[tool.stepscope.check]\ntarget-version = "new"', "is not a TensorFlow version"),
        ("[tool", "cannot be read"),
    ],
)
def test_bad_settings(project: Path, text: str, says: str) -> None:
    """What makes no sense is an error that names the file or the setting and what is expected; exit code 2."""
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(CheckError, match=says) as error:
        call(project)
    assert error.value.exit_code == 2


def test_missing_path(tmp_path: Path) -> None:
    """A path that is not there is an error, not a clean result."""
    with pytest.raises(CheckError, match="does not exist"):
        call(tmp_path / "nowhere")


def test_broken_files_do_not_stop_a_check(project: Path) -> None:
    """Python 2, binary and broken files are skipped with a reason; the others are checked."""
    (project / "old.py").write_text("print 'hello'\n")
    (project / "half.py").write_text("def f(:\n")
    (project / "data.py").write_bytes(b"x = 1\0\n")
    (project / "latin.py").write_bytes(b"# -*- coding: nonsense -*-\n")
    (project / "bad.ipynb").write_text("{}")
    done = call(project, "--format", "json")
    assert codes(done) == ["TFD001"]
    notes = {Path(d["text"].split(":")[0]).name: d["text"] for d in json.loads(done.stdout)["diagnostics"]}
    assert sorted(notes) == ["bad.ipynb", "data.py", "half.py", "latin.py", "old.py"]
    assert "Python 2" in notes["old.py"]
    assert "not valid Python 3" in notes["half.py"]


def test_comments(project: Path) -> None:
    """A comment silences its line or file, for all codes or those that it names; one without use is told."""
    line = "ds.map(lambda x: tf.image.random_flip_up_down(x))"
    (project / "train.py").write_text(
        "import tensorflow as tf\n"
        'ds = tf.data.TFRecordDataset("x")\n'
        f"a = {line}  # stepscope: ignore[TFD001]\n"
        f"b = {line}  # stepscope: ignore\n"
        f"c = {line}  # stepscope: ignore[KER001]\n"
        'text = "# stepscope: ignore"\n'
    )
    report = json.loads(call(project, "--format", "json").stdout)
    assert [f["where"][0]["line"] for f in report["findings"]] == [5]
    assert report["ignored"] == 2
    assert [d["text"].rpartition("train.py:")[2] for d in report["diagnostics"]] == [
        "5: stepscope: ignore[KER001] has no effect; remove it"
    ]
    with (project / "train.py").open("a") as stream:
        stream.write("# stepscope: ignore-file[TFD001]\n")
    assert codes(call(project, "--format", "json")) == []


def test_baseline(project: Path) -> None:
    """What a baseline knows is left out, wherever its lines have moved; what is new is reported."""
    known = project / "known.json"
    assert call(project, "--write-baseline", known).return_value == 0
    train = project / "train.py"
    train.write_text("\n\n" + train.read_text() + "other = ds.map(lambda x: tf.image.random_flip_up_down(x))\n")
    done = call(project, "--baseline", known, "--format", "json")
    assert [f["where"][0]["line"] for f in json.loads(done.stdout)["findings"]] == [6]
    assert json.loads(done.stdout)["known"] == 1


def test_a_baseline_is_written_again(project: Path) -> None:
    """The new one has all findings, also those that the old one knows; the first is made where settings name it."""
    with (project / "pyproject.toml").open("a") as stream:
        stream.write('[tool.stepscope.check]\nbaseline = "known.json"\n')
    known = project / "known.json"
    for old in (project / "absent.json", known, known):
        assert "1 findings recorded" in call(project, "--write-baseline", known).stderr
        assert "1 findings recorded" in call(project, "--write-baseline", known, "--baseline", old).stderr
        assert len(json.loads(known.read_text())["known"]) == 1
    assert codes(call(project, "--format", "json")) == []


@pytest.mark.parametrize("text", [None, "[]", "{}", '{"schema": "other/1", "known": []}'])
def test_bad_baseline(project: Path, text: str | None) -> None:
    """A baseline that is missing or none is an error, never an empty one."""
    known = project / "known.json"
    if text is not None:
        known.write_text(text)
    with pytest.raises(CheckError, match="baseline"):
        call(project, "--baseline", known)


def test_notebook(project: Path) -> None:
    """In a notebook a finding names the cell and the line in it; magics do not shift lines."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install x\n", "import tensorflow as tf"]},
        {"cell_type": "code", "source": "%%bash\nfor f in *; do echo $f; done"},
        {"cell_type": "code", "source": SLOW.partition("\n")[2]},
    ]
    (project / "train.py").unlink()
    (project / "book.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    (finding,) = json.loads(call(project, "--format", "json").stdout)["findings"]
    assert (finding["where"][0]["cell"], finding["where"][0]["line"]) == (4, 2)
