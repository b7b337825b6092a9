"""Scores a folder of machine logs with an exported model: one file of vibration windows at a time."""
import argparse
import json
import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf

WINDOW = 128


class Detector(tf.Module):
    """An autoencoder; its reconstruction error is the score."""

    def __init__(self, widths=(WINDOW, 96, 64, 32, 64, 96, WINDOW), heads=6):
        super().__init__()
        rng = np.random.default_rng(21)
        self.heads = [
            [(tf.Variable(rng.normal(0, a ** -0.5, (a, b)).astype("float32")), tf.Variable(tf.zeros(b)))
             for a, b in zip(widths, widths[1:])]
            for _ in range(heads)
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, WINDOW], tf.float32)])
    def score(self, windows):
        errors = []
        for layers in self.heads:
            h = windows
            for kernel, bias in layers[:-1]:
                h = tf.nn.elu(h @ kernel + bias)
            kernel, bias = layers[-1]
            errors.append(tf.reduce_mean(tf.square(h @ kernel + bias - windows), 1))
        return {"score": tf.add_n(errors) / len(errors)}


def machine_logs(folder, files, windows):
    rng = np.random.default_rng(3)
    t = np.arange(WINDOW) / WINDOW
    for number in range(files):
        phase = rng.uniform(0, 6, (windows, 1))
        data = np.sin(2 * np.pi * rng.integers(2, 9, (windows, 1)) * t + phase) + rng.normal(0, 0.1, (windows, WINDOW))
        np.save(folder / f"machine{number:04d}.npy", data.astype("float32"))
    return sorted(folder.glob("*.npy"))


def score_file(model, path):
    windows = np.load(path)
    scores = model.score(windows)["score"].numpy()
    return len(windows), float(np.quantile(scores, 0.99))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--windows", type=int, default=256)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        exported = root / "detector"
        module = Detector()
        tf.saved_model.save(module, str(exported))
        paths = machine_logs(root, 40, args.windows)
        model = tf.saved_model.load(str(exported))
        score_file(model, paths[0])
        rows, worst = 0, 0.0
        start = time.perf_counter()
        for number in range(args.files):
            count, high = score_file(model, paths[number % len(paths)])
            rows, worst = rows + count, max(worst, high)
        seconds = time.perf_counter() - start
        print(f"highest score {worst:.3f}")
    print(json.dumps({"samples": rows, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
