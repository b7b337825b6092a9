"""Values that an eager training step prints or keeps: what can be read after it, and what it depends on."""

from __future__ import annotations

import pytest
from tests.check.checking import codes, hits

HEAD = """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
"""
LOOKS = {
    "kept": ("log.append(loss.numpy())", True),
    "printed": ("print('loss', float(loss))", True),
    "formatted": ("print(f'loss {loss:.3f}')", True),
    "summed": ("total += loss.numpy()", True),
    "in two steps": ("value = loss.numpy()\n        log.append(value)\n        logging.info('%s', value)", True),
    "sometimes": ("if count % 10 == 0:\n            print(loss.numpy())", True),
    "the best": ("if loss.numpy() < best:\n            best = loss.numpy()", True),
    "one by one": ("for name, part in zip(names, parts):\n            writer.add_scalar(name, part.numpy())", True),
    "an attribute": ("self.losses[count] = np.mean(loss)", True),
    "in the loss": ("loss = loss * np.sign(loss.numpy())", False),
    "a branch of the step": ("if loss.numpy() > 3:\n            loss = loss * 0.1", False),
    "an end": ("if np.isnan(loss.numpy()):\n            break", False),
    "an error": (
        "try:\n            loss += model(next(more))\n        except StopIteration:\n            print(1)",
        False,
    ),
    "a baseline": ("baseline = 0.9 * baseline + 0.1 * loss.numpy()", False),
    "an environment": ("state = env.act(loss.numpy())\n        loss += model(state)", False),
    "a simulation that is read": ("sim.move(loss.numpy())\n        loss += model(sim.state)", False),
    "a variable": ("weight.assign(loss.numpy())", False),
    "two, one of them used": ("log.append(loss.numpy())\n        loss = loss * float(loss)", False),
    "asked": ("answer = input(loss.numpy())", False),
    "unknown": ("show(loss.numpy())", False),
}


@pytest.mark.parametrize(("statement", "reported"), LOOKS.values(), ids=LOOKS)
def test_a_value_that_is_only_looked_at_keeps_no_step_eager(statement: str, *, reported: bool) -> None:
    """It can be read after the step; what the step, or the way of the loop, depends on cannot."""
    found = hits(
        HEAD
        + "import logging\nimport numpy as np\nweight = tf.Variable(1.0)\nlog, best, baseline, total = [], 9.0, 0.0, 0.0\n"
        + "for count, x in enumerate(data):\n    with tf.GradientTape() as tape:\n"
        + "        loss = tf.reduce_mean(model(x)) * weight - baseline\n        parts = [loss, loss]\n"
        + f"        {statement}\n"
        + "    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))\n"
    )
    mine = [hit for hit in found if hit.code == "TFF005"]
    assert [hit.severity for hit in mine] == (["warning"] if reported else [])
    assert all("can move behind the step" in hit.message and hit.fix is None for hit in mine)


def test_looks_in_functions_that_the_block_calls() -> None:
    """The same holds there: what only prints can move out, what returns a number cannot."""
    text = (
        HEAD
        + "def losses(x):\n    loss = tf.reduce_mean(model(x))\n    {}\n    return {}\n"
        + "for x in data:\n    with tf.GradientTape() as tape:\n        loss = losses(x)\n"
        + "    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))\n"
    )
    assert "TFF005" in codes(text.format("print(loss.numpy())", "loss"))
    assert "TFF005" not in codes(text.format("print(1)", "loss.numpy() + loss"))
