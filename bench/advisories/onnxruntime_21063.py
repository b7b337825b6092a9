"""onnxruntime-21063: its import under NumPy 2. PYTHONPATH=FOLDER_OF_ONNXRUNTIME python FILE, with NumPy 2 installed.

Seen with NumPy 2.4.6, Python 3.11: ONNX Runtime 1.18.1 cannot be imported ("_ARRAY_API not found"), 1.19.2 can.
"""

import numpy as np

try:
    import onnxruntime
except ImportError as error:
    print(f"NumPy {np.__version__}: ONNX Runtime cannot be imported: {error!r}; see above")
else:
    print(f"NumPy {np.__version__}: ONNX Runtime {onnxruntime.__version__} is imported")
