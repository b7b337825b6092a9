"""Names: every form of import, aliases, re-exports, and one spelling for each thing."""

from __future__ import annotations

import pytest
from tests.check.asking import Asked

from stepscope.check.source.canonical import canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import tensorflow\nask(tensorflow.data.Dataset)", "tensorflow.data.Dataset"),
        ("import tensorflow as tf\nask(tf.keras.layers.Dense)", "keras.layers.Dense"),
        ("import tensorflow.compat.v1 as tf1\nask(tf1.Session)", "tensorflow.Session"),
        ("from tensorflow.compat import v1 as tf\nask(tf.placeholder)", "tensorflow.placeholder"),
        ("import tensorflow as tf\ntf = tf.compat.v1\nask(tf.Session)", "tensorflow.Session"),
        ("import tensorflow.keras.backend as K\nask(K.get_value)", "keras.backend.get_value"),
        ("from tensorflow import keras\nlayers = keras.layers\nask(layers.LSTM)", "keras.layers.LSTM"),
        ("from tensorflow.python.keras.models import Model as M\nask(M)", "keras.Model"),
        ("from keras.models import *\nask(Sequential)", "keras.Sequential"),
        ("from tensorflow.keras.layers import *\nask(len)", ""),
        ("import numpy as np\nask(np.random.rand)", "numpy.random.rand"),
        ("def f():\n    import tensorflow as tf\n    ask(tf.zeros)", "tensorflow.zeros"),
        ("class A:\n    import tensorflow as tf\n    def f(self):\n        ask(tf)", ""),
        ("import a.b\nask(a.b.c)", "a.b.c"),
        ("import tf_keras\nask(tf_keras.Model)", "keras.Model"),
        ("def f(tf):\n    ask(tf.zeros)", ""),
        ("import tensorflow as tf\ndef f():\n    tf = 1\n    ask(tf.zeros)", ""),
        ("ask(undefined.name)", ""),
    ],
)
def test_library_names(text: str, expected: str) -> None:
    """A library's thing has its canonical name; what is hidden by another binding has none."""
    assert Asked(text).names == [expected]


def test_try_except_imports_give_both() -> None:
    """Either arm may have run."""
    asked = Asked(
        """
        try:
            import tensorflow.compat.v1 as tf
        except ImportError:
            tf = None
        try:
            from keras.models import Model
        except ImportError:
            from other import Model
        ask(tf.Session)
        ask(Model)
        """
    )
    first, second = asked.expressions
    assert asked.context.things(first) == ("tensorflow.Session",)
    assert set(asked.context.things(second)) == {"keras.Model", "other.Model"}


def test_through_the_project() -> None:
    """Packages, relative imports, re-exports, stars and aliases lead to the definition, or out to the library."""
    asked = Asked(
        {
            "main.py": """
            import lib
            from lib import make, tf as flow, K
            from lib.parts import *
            from lib import parts as p
            ask(lib.make)
            ask(make)
            ask(flow.zeros)
            ask(K.eval)
            ask(build)
            ask(p.Trainer.step)
            ask(lib.parts.Trainer)
            """,
            "lib/__init__.py": "from .parts import build as make\nfrom .base import tf, K\n",
            "lib/parts.py": """
            from ..lib.base import tf
            def build(): ...
            class Base:
                def step(self): ...
            class Trainer(Base): ...
            """,
            "lib/base.py": "import tensorflow as tf\nfrom tensorflow.keras import backend as K\n",
        }
    )
    assert asked.names == [
        "lib.parts.build",
        "lib.parts.build",
        "tensorflow.zeros",
        "keras.backend.eval",
        "lib.parts.build",
        "lib.parts.Base.step",
        "lib.parts.Trainer",
    ]


def test_imports_in_circles_end() -> None:
    """Modules that import everything of each other."""
    files = {
        "main.py": "from a import *\nask(x)\nask(y)\n",
        "a.py": "from b import *\nfrom b import y\nx = z\n",
        "b.py": "from a import *\nfrom a import y, x\nz = x\n",
    }
    assert Asked(files).names == ["", ""]


def test_a_folder_called_like_a_framework() -> None:
    """``examples/tensorflow/`` of a project is not TensorFlow."""
    files = {"main.py": "import tensorflow as tf\nask(tf.zeros)\n", "tensorflow/__init__.py": "zeros = 1\n"}
    assert Asked(files).names == ["tensorflow.zeros"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ds.map", "tensorflow.data.Dataset.map"),
        ("model.predict", "keras.Model.predict"),
        ("net.fit", "keras.Model.fit"),
        ("saver.save", "tensorflow.train.Saver.save"),
        ("forest.predict", "sklearn.ensemble.RandomForestClassifier.predict"),
        ("session.run", "tensorflow.Session.run"),
        ("tf.zeros([]).numpy", "tensorflow.Tensor.numpy"),
        ("anything.predict", ""),
    ],
)
def test_methods_by_their_object(text: str, expected: str) -> None:
    """A method is called by the tag or class of its object."""
    head = """
import tensorflow as tf
from sklearn.ensemble import RandomForestClassifier
class Net(tf.keras.Model): ...
ds = tf.data.TextLineDataset("x")
model = tf.keras.applications.ResNet50()
net = Net()
saver = tf.compat.v1.train.Saver()
forest = RandomForestClassifier()
session = tf.compat.v1.Session()
"""
    assert Asked(f"{head}ask({text})").names == [expected]


@pytest.mark.parametrize(
    "name", ["tensorflow", "keras", "tensorflow.compat.v1.keras", "keras.layers.core.Dense", "numpy.x", "tf_keras"]
)
def test_canonical_is_stable(name: str) -> None:
    """The canonical spelling of a canonical name is itself."""
    assert canonical(canonical(name)) == canonical(name)
