"""ONNX Runtime: a session of a file and one of bytes, each way to run one, threads, an error, sessions in a loop."""

import os
import sys
import threading

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

FOLDER = sys.argv[1]
WIDTH = 16
rng = np.random.default_rng(0)


def model():
    weight = helper.make_tensor(
        "w", TensorProto.FLOAT, [WIDTH, WIDTH], rng.standard_normal((WIDTH, WIDTH)).astype("float32").tobytes(), raw=True
    )
    scale = helper.make_tensor_value_info("scale", TensorProto.FLOAT, [])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", WIDTH])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "scale"], ["y"])]
    graph = helper.make_graph(nodes, "tower", [scale, x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


path = os.path.join(FOLDER, "tower.onnx")
onnx.save(model(), path)
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.enable_cpu_mem_arena = False
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
of_file = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])  # file
of_bytes = ort.InferenceSession(model().SerializeToString())  # bytes
one = np.array(1.0, "float32")


def feed(rows):
    return {"scale": one, "x": np.ones((rows, WIDTH), "float32")}


total = 0.0
for number in range(20):
    (out,) = of_file.run(["y"], feed(4 + number % 3))  # run
    total += float(out.sum())
(out,) = of_bytes.run(output_names=None, input_feed=feed(3))  # named
total += float(out.sum())
values = {name: ort.OrtValue.ortvalue_from_numpy(np.asarray(value)) for name, value in feed(6).items()}
total += float(of_bytes.run_with_ort_values(["y"], values)[0].numpy().sum())  # ort-values
binding = of_file.io_binding()
for name, value in feed(5).items():
    binding.bind_cpu_input(name, np.asarray(value))
binding.bind_output("y")
of_file.run_with_iobinding(binding)  # binding
binding.bind_cpu_input("x", np.ones((7, WIDTH), "float32"))
binding.bind_output("y")
of_file.run_with_iobinding(iobinding=binding)  # bound-again
total += float(binding.copy_outputs_to_cpu()[0].sum())


def client():
    for _ in range(5):
        of_file.run(["y"], feed(2))  # client


threads = [threading.Thread(target=client) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
try:
    of_file.run(["y"], {"x": np.ones((2, WIDTH), "float32")})  # raises
except ValueError as error:
    print(str(error))
try:
    ort.InferenceSession(os.path.join(FOLDER, "gone.onnx"))  # gone
except Exception as error:
    print(type(error).__name__)
for _ in range(3):
    ort.InferenceSession(path, options).run(None, feed(2))  # again
print(round(total, 3), ort.InferenceSession.run.__name__, ort.InferenceSession.__init__.__name__)
