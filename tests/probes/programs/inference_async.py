"""ONNX Runtime: runs that answer by a callback, one after the other, several at once, and refused."""

import threading
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "doubles", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
options = ort.SessionOptions()
options.intra_op_num_threads = 2
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
answers = []


def feed(rows):
    return {"x": np.ones((rows, 4), "float32")}


def take(results, event, error):
    answers.append((float(results[0].sum()), error))
    event.set()


for rows in range(1, 6):
    done = threading.Event()
    session.run_async(["y"], feed(rows), take, done)  # one
    done.wait()
print(answers)
events = [threading.Event() for _ in range(4)]
for event in events:
    session.run_async(None, feed(8), callback=take, user_data=event)  # several
for event in events:
    event.wait()
print(sorted(answers[5:]))
try:
    session.run_async(None, {"z": np.ones(4, "float32")}, take, None)  # refused
except ValueError as error:
    print(str(error))
try:
    session.run_async(None, feed(1), None, None)  # nothing
except TypeError as error:
    print(str(error).splitlines()[0])
print(ort.InferenceSession.run_async.__name__, ort.InferenceSession.run_async.__doc__[:40].strip())
time.sleep(0.5)  # a program that ends while a callback returns is aborted, without stepscope too (ONNX Runtime 1.31.1)
