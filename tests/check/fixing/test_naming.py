"""Names of libraries are spelled as the file spells them where they are going to stand."""

from __future__ import annotations

import pytest

from stepscope.check.fixing.edits import CannotFixError, apply
from stepscope.check.fixing.naming import Naming

AUTOTUNE = "tensorflow.data.AUTOTUNE"
CLEAR = "keras.backend.clear_session"


def spelled(text: str, name: str, at: str = "HERE", version: tuple[int, int] = (2, 21)) -> tuple[str, str]:
    """The spelling of a name where ``at`` stands, and the text with what has to be imported."""
    found, imports = Naming(text, version).spell(name, text.index(at))
    return found, apply(text, imports)


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        ("import tensorflow as tf", AUTOTUNE, "tf.data.AUTOTUNE"),
        ("import tensorflow", AUTOTUNE, "tensorflow.data.AUTOTUNE"),
        ("import tensorflow.compat.v1 as tf", AUTOTUNE, "tf.data.AUTOTUNE"),
        ("from tensorflow import data", AUTOTUNE, "data.AUTOTUNE"),
        ("from tensorflow.data import AUTOTUNE as AUTO", AUTOTUNE, "AUTO"),
        ("import tensorflow as tf\nAUTO = tf.data.experimental.AUTOTUNE", AUTOTUNE, "AUTO"),
        ("import tensorflow as tf\nimport keras", CLEAR, "keras.backend.clear_session"),
        ("import tensorflow as tf", CLEAR, "tf.keras.backend.clear_session"),
        ("from tensorflow.keras import backend as K", CLEAR, "K.clear_session"),
        ("import tensorflow.keras.backend as K", CLEAR, "K.clear_session"),
        ("try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf", AUTOTUNE,
         "tf.data.AUTOTUNE"),
        ("import numpy as np", "numpy.stack", "np.stack"),
    ],
)  # fmt: skip
def test_known(head: str, name: str, expected: str) -> None:
    """Through what the file has imported, and nothing is imported."""
    text = f"{head}\nHERE = 1\n"
    assert spelled(text, name) == (expected, text)


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ('"""Doc."""\nimport os\nHERE = 1\n', AUTOTUNE, '"""Doc."""\nimport os\nimport tensorflow as tf\nHERE = 1\n'),
        ("HERE = 1\n", AUTOTUNE, "import tensorflow as tf\nHERE = 1\n"),
        ("tf = 1\nHERE = 1\n", AUTOTUNE, "import tensorflow\ntf = 1\nHERE = 1\n"),
        ("from tensorflow.keras.models import Model\nHERE = 1\n", CLEAR,
         "from tensorflow.keras.models import Model\nimport tensorflow as tf\nHERE = 1\n"),
        ("from keras.models import Model\nHERE = 1\n", CLEAR,
         "from keras.models import Model\nimport keras\nHERE = 1\n"),
        ("from keras.models import Model\r\nHERE = 1\r\n", CLEAR,
         "from keras.models import Model\r\nimport keras\r\nHERE = 1\r\n"),
        ("import tensorflow as tf\ndef f(tf):\n    HERE = 1\n", AUTOTUNE,
         "import tensorflow as tf\nimport tensorflow\ndef f(tf):\n    HERE = 1\n"),
        ("import typing as t\nif t.TYPE_CHECKING:\n    import tensorflow as tf\nHERE = 1\n", AUTOTUNE,
         "import typing as t\nimport tensorflow\nif t.TYPE_CHECKING:\n    import tensorflow as tf\nHERE = 1\n"),
    ],
)  # fmt: skip
def test_imported(text: str, name: str, after: str) -> None:
    """What is not there is imported after the first imports, under a name that nothing else has."""
    assert spelled(text, name)[1] == after


def test_older_version() -> None:
    """AUTOTUNE has another place before TensorFlow 2.4."""
    text = "import tensorflow as tf\nHERE = 1\n"
    assert spelled(text, AUTOTUNE, version=(2, 3))[0] == "tf.data.experimental.AUTOTUNE"


def test_scopes() -> None:
    """What a function imports is known in it and in no other."""
    text = "def f():\n    import tensorflow as tf\n    HERE = 1\ndef g():\n    THERE = 1\n"
    assert spelled(text, AUTOTUNE)[0] == "tf.data.AUTOTUNE"
    assert spelled(text, AUTOTUNE, "THERE")[0] == "tensorflow.data.AUTOTUNE"


def test_late_import() -> None:
    """A module's own lines see only what was imported above them; functions see all of it."""
    text = "HERE = 1\nimport tensorflow as tf\ndef f():\n    THERE = 1\n"
    assert spelled(text, AUTOTUNE, "THERE")[0] == "tf.data.AUTOTUNE"
    assert spelled(text, AUTOTUNE) == ("tensorflow.data.AUTOTUNE", f"import tensorflow\n{text}")


def test_imported_again() -> None:
    """A second import of the same further down takes nothing away; another meaning further down does."""
    text = "import tensorflow as tf\nHERE = 1\nimport tensorflow as tf\n"
    assert spelled(text, AUTOTUNE) == ("tf.data.AUTOTUNE", text)
    assert spelled(text + "tf = None\n", AUTOTUNE)[0] == "tensorflow.data.AUTOTUNE"


def test_names_taken() -> None:
    """Where every name is taken the fix is not done."""
    with pytest.raises(CannotFixError, match="names are taken"):
        spelled("tf = tensorflow = 1\nHERE = 1\n", AUTOTUNE)
