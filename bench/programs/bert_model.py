"""A model of BERT base's shape, without a model hub: ``bert_model.py FILE LAYERS`` writes it as ONNX.

Weights are normal, 0.02 wide; inputs ``input_ids`` and ``position_ids``, int64 [batch, length], both dynamic.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, PLACES, WIDTH, HEADS, INNER = 30_522, 512, 768, 12, 3_072


class Builder:
    """Collects nodes and weights."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, *shape, values=None):
        """The name of a new weight."""
        name = f"w{len(self.weights)}"
        array = self.rng.standard_normal(shape, np.float32) * np.float32(0.02) if values is None else values
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, *inputs, **attributes):
        """The name of what a new node puts out."""
        self.count += 1
        self.nodes.append(helper.make_node(kind, inputs, [f"t{self.count}"], **attributes))
        return f"t{self.count}"

    def scalar(self, value):
        """A weight of one number."""
        return self.weight(values=np.array(value, np.float32))

    def dense(self, x, width, out):
        """x W + b."""
        return self.node("Add", self.node("MatMul", x, self.weight(width, out)), self.weight(out))

    def norm(self, x):
        """Layer normalisation of the last axis."""
        ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        scale, shift = self.weight(values=ones), self.weight(values=zeros)
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)

    def heads(self, x, order):
        """Split into heads, axes in ``order``."""
        split = self.weight(values=np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        return self.node("Transpose", self.node("Reshape", self.dense(x, WIDTH, WIDTH), split), perm=order)

    def layer(self, x):
        """One layer of the encoder."""
        q, k, v = (self.heads(x, order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = self.node("Mul", self.node("MatMul", q, k), self.scalar(0.125))
        mixed = self.node("Transpose", self.node("MatMul", self.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", mixed, self.weight(values=np.array([0, 0, WIDTH], np.int64)))
        x = self.norm(self.node("Add", x, self.dense(joined, WIDTH, WIDTH)))
        wide = self.dense(x, WIDTH, INNER)
        bent = self.node("Erf", self.node("Div", wide, self.scalar(2.0**0.5)))
        gelu = self.node("Mul", self.node("Mul", wide, self.node("Add", bent, self.scalar(1.0))), self.scalar(0.5))
        return self.norm(self.node("Add", x, self.dense(gelu, INNER, WIDTH)))


def build(layers):
    """The model."""
    made = Builder()
    words = made.node("Gather", made.weight(WORDS, WIDTH), "input_ids")
    x = made.norm(made.node("Add", words, made.node("Gather", made.weight(PLACES, WIDTH), "position_ids")))
    for _ in range(layers):
        x = made.layer(x)
    made.nodes.append(helper.make_node("Identity", [x], ["hidden"]))
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("input_ids", "position_ids")
    ]
    output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "length", WIDTH])
    graph = helper.make_graph(made.nodes, "bert", inputs, [output], made.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


if __name__ == "__main__":
    onnx.save(build(int(sys.argv[2])), sys.argv[1])
