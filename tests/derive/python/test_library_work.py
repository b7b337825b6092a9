"""Which kind of work a stack is in."""

from __future__ import annotations

import pytest

from stepscope.derive.python import library_work
from stepscope.derive.python.stack_samples import Sample, Spot

FILE = "/job/train.py"
LIBRARY = "/usr/lib/python3.11/"
SOURCE = """\
first = pickle.loads(blob)
index = np.argsort(scores)[-32:]
rows = np.concatenate([rows, more])
drawn = np.random.choice(9, 4, p=weights)
drawn = np.random.choice(9, 4)
text = " ".join("%.3f" % one for one in values)
both = hashlib.md5(pickle.dumps(sorted(values)))
row = base.execute(
    query).fetchone()
total = one + two
seen.append(one)
time.sleep(0.01)
image = cv2.imread(f"{folder}/{name}.jpg")
order = np.argsort(model(rows))
import sqlite3
pixels = [[float(one) / 255 for one in row] for row in image]
batch = torch.tensor(pixels).reshape(1, 96, 96).permute(0, 2, 1)
given = np.array([model(one) for one in rows])
values = image.ravel().tolist()
batch = torch.tensor(values)
batch = torch.tensor(image)
def other(values):
    return torch.tensor(values)
"""


def sample(line: int, *below: tuple[str, str]) -> Sample:
    """A stack whose user's line calls functions of libraries, the outermost first."""
    mine = Spot(file=FILE, function="<module>", line=line, own=True)
    frames = (Spot(file=file, function=function, line=9, own=False) for file, function in below)
    return Sample(at=1, weight_ns=1, component="other-python", frames=(mine, *frames))


def test_an_execute_is_a_query_where_the_file_has_a_database() -> None:
    """Engines of inference have a method of that name."""
    assert library_work.of(sample(8), lambda _: SOURCE) == "sql"
    assert library_work.of(sample(8), lambda _: SOURCE.replace("import sqlite3", "import tensorrt")) == ""


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (1, "pickle"),
        (2, "sort"),
        (3, "concatenate"),
        (4, "choice"),
        (5, ""),
        (6, "format"),
        (7, ""),
        (8, "sql"),
        (9, "sql"),
        (10, ""),
        (11, ""),
        (12, "sleep"),
        (13, ""),
        (14, ""),
        (17, "lists"),
        (18, ""),
        (19, ""),
        (20, "lists"),
        (21, ""),
        (23, ""),
        (99, ""),
    ],
)
def test_c_code_is_of_the_kind_that_its_lines_calls_have(line: int, kind: str) -> None:
    """A line whose calls are of several kinds, or of none, has none."""
    assert library_work.of(sample(line), lambda _: SOURCE) == kind
    assert library_work.of(sample(line), lambda _: None) == ""


@pytest.mark.parametrize(
    ("below", "kind"),
    [
        (
            [("/x/site-packages/numpy/lib/_npyio_impl.py", "NpzFile.__getitem__"), (f"{LIBRARY}zipfile.py", "_read1")],
            "unzip",
        ),
        ([("/x/site-packages/numpy/lib/_npyio_impl.py", "load")], "npy"),
        ([(f"{LIBRARY}json/__init__.py", "load"), (f"{LIBRARY}gzip.py", "GzipFile.read")], "inflate"),
        ([(f"{LIBRARY}gzip.py", "GzipFile.write")], "deflate"),
        (
            [
                ("/x/site-packages/numpy/lib/_npyio_impl.py", "savez_compressed"),
                (f"{LIBRARY}zipfile.py", "_ZipWriteFile.write"),
            ],
            "deflate",
        ),
        ([("/x/site-packages/numpy/lib/_npyio_impl.py", "save")], ""),
        ([("/x/site-packages/h5py/_hl/dataset.py", "Dataset.__getitem__")], "hdf5"),
        ([("/x/site-packages/h5py/_hl/dataset.py", "Dataset.__setitem__")], ""),
        ([("/x/site-packages/PIL/Image.py", "Image.save"), ("/x/site-packages/PIL/ImageFile.py", "_save")], ""),
        ([("/x/site-packages/jax/_src/numpy/array_constructors.py", "asarray")], ""),
        ([("/x/site-packages/optax/_src/transform.py", "scale_by_adam.<locals>.update_fn")], "eager"),
        ([("/x/site-packages/jax/_src/numpy/ufunc_api.py", "ufunc.__call__")], "eager"),
        (
            [
                ("/x/site-packages/jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr_dynamic"),
                ("/x/site-packages/jax/_src/numpy/ufunc_api.py", "ufunc.__call__"),
            ],
            "",
        ),
        (
            [
                ("/x/site-packages/torch/nn/utils/parametrize.py", "ParametrizationList.forward"),
                ("/x/site-packages/torch/nn/modules/module.py", "Module._call_impl"),
            ],
            "parametrize",
        ),
        ([("/x/site-packages/transformers/models/bert/modeling_bert.py", "eager_attention_forward")], "attention"),
        ([("/x/site-packages/other/modeling.py", "eager_attention_forward")], ""),
        ([(f"{LIBRARY}json/__init__.py", "dumps")], ""),
        ([("/x/site-packages/pandas/core/generic.py", "NDFrame.to_csv"), ("/x/site-packages/pandas/io/a.py", "f")], ""),
        ([("/x/site-packages/PIL/Image.py", "Image.resize")], "image"),
        ([("/x/site-packages/pandas/core/indexing.py", "_iLocIndexer.__getitem__")], "pandas"),
        ([("/x/site-packages/numpy/_core/fromnumeric.py", "argsort")], "sort"),
        ([("/x/site-packages/other/thing.py", "work")], ""),
        ([("/x/site-packages/other/csv.py", "read")], ""),
        ([("/x/site-packages/tensorflow/python/ops/sort_ops.py", "argsort")], ""),
        ([("/run/stepscope/agent/core/patches.py", "wrapper")], "pickle"),
    ],
)
def test_the_innermost_known_library_says_the_kind(below: list[tuple[str, str]], kind: str) -> None:
    """What the line's source calls matters only where no library has a frame; a wrapper of ours is no library."""
    assert library_work.of(sample(1, *below), lambda _: SOURCE) == kind
