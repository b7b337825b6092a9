"""onnxruntime-28466: memory of a Conv3D over a batch. PYTHONPATH=FOLDER_OF_ONNXRUNTIME python FILE; needs onnx.

Seen (what one run added to the peaks, four threads, Linux x86-64, Python 3.11), virtual and resident: ONNX Runtime
1.23.1 0 to 33 (two runs) and 14 MiB, 1.23.2 281 and 21 MiB, 1.26.0 281 and 21 MiB, 1.27.0 33 and 14 MiB.
"""

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SHAPE = (8, 16, 24, 32, 32)


def peak(of: str) -> float:
    """A peak of the process, VmPeak (virtual) or VmHWM (resident), in MiB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(of)) / 1024


weights = numpy_helper.from_array(np.ones((16, 16, 3, 3, 3), np.float32), "w")
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 6)],
    "conv3d",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    [weights],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 4
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
values = np.ones(SHAPE, np.float32)
before = peak("VmPeak"), peak("VmHWM")
session.run(None, {"x": values})
virtual, resident = peak("VmPeak") - before[0], peak("VmHWM") - before[1]
print(f"ONNX Runtime {onnxruntime.__version__}: virtual {virtual:.0f} MiB more, resident {resident:.0f} MiB more")
