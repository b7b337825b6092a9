"""keras-22874: does Keras' LSTM on PyTorch unpack cuDNN's result? Reads wheels: python FILE keras-*.whl.

Seen: 3.14.0 and 3.14.1 unpack a nested tuple, which the flat result is not; 3.15.0 unpacks a flat one. (3.13.2 takes
another way.)
"""

import re
import sys
import zipfile

for wheel in sys.argv[1:]:
    with zipfile.ZipFile(wheel) as files:
        source = files.read("keras/src/backend/torch/rnn.py").decode("utf-8")
    found = re.findall(r"(outputs, \(?h_n, c_n\)?) = torch\._VF\.lstm", source)
    print(f"{wheel}: {sorted(set(found)) or 'no call of torch._VF.lstm'}")
