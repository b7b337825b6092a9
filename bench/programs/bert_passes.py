"""Forward passes of BERT base: ``bert_passes.py ENGINE FOLDER THREADS PLAN``, engine onnxruntime or pytorch.

FOLDER is what ``bert_shards.py`` made. PLAN is JSON: a list of [batch, length, passes before, passes that count]. After
each it prints a line of JSON with the figures of the passes that count, and waits for a line of input: whoever started
it may look at its memory meanwhile.
"""

import json
import os
import resource
import sys
import time

import numpy as np

ENGINE, FOLDER, THREADS, PLAN = sys.argv[1:]
WORDS = 30_522


def pytorch_model():
    """The shards, loaded; the weights are copied to memory of their own, which the shards' pages are not."""
    import torch
    from transformers import BertModel

    torch.set_num_threads(int(THREADS))
    bert = BertModel.from_pretrained(FOLDER, add_pooling_layer=False).eval()
    for weight in bert.parameters():
        weight.data = weight.data.clone()

    def run(words):
        with torch.inference_mode():
            return bert(torch.from_numpy(words)).last_hidden_state.numpy()

    return run


def onnx_model():
    """A session of ONNX Runtime, as it comes but for its threads, which do not spin while they wait."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = int(THREADS)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(f"{FOLDER}/bert.onnx", options, providers=["CPUExecutionProvider"])
    return lambda words: session.run(None, {"input_ids": words})[0]


def counted():
    """Wall clock, user time, system time in seconds, and minor faults of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), used.ru_utime, used.ru_stime, used.ru_minflt


model = onnx_model() if ENGINE == "onnxruntime" else pytorch_model()
rng = np.random.default_rng(1)
model(rng.integers(0, WORDS, (8, 64)))
for batch, length, before, passes in json.loads(PLAN):
    words = rng.integers(0, WORDS, (batch, length))
    for _ in range(before):
        model(words)
    began = counted()
    for _ in range(passes):
        hidden = model(words)
    wall, user, system, faults = ((now - then) / passes for now, then in zip(counted(), began))
    said = {"batch": batch, "length": length, "wall_s": wall, "user_s": user, "system_s": system, "faults": faults}
    print(json.dumps({**said, "sum": float(np.abs(hidden).sum(dtype=np.float64))}), flush=True)
    sys.stdin.readline()
os._exit(0)
