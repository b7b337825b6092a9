"""ONNX Runtime, and Python: children, threads that die, collections, growing memory."""

import gc
import multiprocessing
import os
import queue
import random
import subprocess
import sys
import threading

import fault
import numpy as np

fault.begin()
import onnxruntime as ort

MODEL = os.environ["FAULT_MODEL"]


def dies():
    raise ValueError("a thread of the user's")


def square(number):
    return number * number


def compute(session, turns):
    total = 0.0
    for _ in range(turns):
        x = np.random.rand(4, 16).astype("float32")
        total += float(session.run(None, {"x": x, "scale": np.array(random.random(), "float32")})[0].sum())
    return total


def ask(turns):
    """Runs that answer on a thread of ONNX Runtime's, each before the next."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    total = 0.0
    for turn in range(turns):
        answers = queue.SimpleQueue()
        feed = {"x": np.full((4, 16), turn, "float32"), "scale": np.array(0.5, "float32")}
        session.run_async(None, feed, lambda *answer: answers.put(answer), turn)
        values, told, error = answers.get(timeout=60)
        total += float(values[0].sum()) + told + len(error)
    return total


def main():
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    print("%.6f" % compute(session, 300))
    if not os.environ.get("FAULT_ALONE"):
        child = subprocess.run([sys.executable, "-c", "print(6 * 7)"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        print("child", child.returncode, child.stdout)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(square, range(5)))
        print("%.3f" % ask(50))
        if fault.INSIDE != "raising-hooks":
            thread = threading.Thread(target=dies)
            thread.start()
            thread.join()
    cycles = [[i] for i in range(2000)]
    for cycle in cycles:
        cycle.append(cycle)
    del cycles
    print("collected", gc.collect() >= 1900)
    fault.moment()
    grown = [bytearray(1 << 20) for _ in range(120)]
    print("%.6f" % compute(session, 300), len(grown))
    fault.save("last.bin", np.random.rand(100).tobytes())
    fault.end()


if __name__ == "__main__":
    main()
