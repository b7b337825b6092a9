"""What is found in tests, or through a loop of a test, is an info; which files are tests depends on what was given."""

from stepscope.check.context import Engine
from stepscope.check.registry import ALL
from stepscope.check.run.run import check
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import target

READER = """
import tensorflow as tf

def batches(paths):
    return tf.data.TFRecordDataset(paths).map(lambda r: tf.image.random_hue(r, 0.1)).batch(8)
"""


def severities(path: str, root: str, text: str = READER) -> list[str]:
    """Severities of the findings in a project of one file."""
    project = Project({path: text.encode}, [root])
    return [
        hit.reported_severity
        for result in check(Engine(project, target((2, 21), "test")), [path], ALL)
        for hit in result.hits
    ]


def test_a_file_of_tests_is_info() -> None:
    """By a folder below what is checked, or by its name where it holds tests."""
    assert severities("reader.py", ".") == ["warning"]
    assert severities("tests/reader.py", ".") == ["info"]
    for test in (
        "def test_batches(): ...",
        "import unittest",
        "class Batches(tf.test.TestCase): ...",
        "assert batches([])",
    ):
        assert severities("reader_test.py", ".", f"{READER}\n{test}\n") == ["info"]
        assert severities("test_reader.py", ".", f"{READER}\n{test}\n") == ["info"]


def test_a_program_that_tests_a_model_is_a_program() -> None:
    """``test_images.py`` is what many call the program that people run on their images: it holds no test."""
    assert severities("test_reader.py", ".") == ["warning"]
    assert severities("reader_test.py", ".") == ["warning"]
    program = f"{READER}\ndef test_batch(): ...\n\nif __name__ == '__main__':\n    test_batch()\n"
    assert severities("test_batch.py", ".", program) == ["warning"]
    assert severities("test_batch.py", ".", f"import unittest\n{program}") == ["info"]


def test_where_the_project_lies_does_not_matter() -> None:
    """A folder called tests above what is checked makes no tests of it."""
    assert severities("/home/me/tests/project/reader.py", "/home/me/tests/project") == ["warning"]
    assert severities("/home/me/tests/project/tests/reader.py", "/home/me/tests/project") == ["info"]
    assert severities("/home/me/tests/reader.py", "/home/me/tests") == ["warning"]


def test_a_loop_of_a_test_is_no_hot_loop() -> None:
    """A function that only a test calls in a loop is not called in a loop of the program."""
    files = {
        "scores.py": "import keras\n\ndef score(path, image):\n    model = keras.models.load_model(path)\n"
        "    return model(image)\n",
        "scores_test.py": "from scores import score\n\nfor image in open('images'):\n    score('model.keras', image)\n"
        "def test_score(): ...\n",
    }
    engine = Engine(Project({path: text.encode for path, text in files.items()}, ["."]), target((2, 21), "test"))
    found = [(hit.code, hit.reported_severity) for result in check(engine, files, ALL) for hit in result.hits]
    assert found == []
