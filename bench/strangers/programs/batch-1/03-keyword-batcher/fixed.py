"""Keyword spotting service: device streams post 1 s clips, a batcher thread groups them for the model."""
import json
import os
import queue
import threading
import time
from concurrent.futures import Future

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

RATE = 16000
WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "_noise"]
STREAMS = 6
WARMUP_CLIPS = 20
CLIPS_PER_STREAM = 260

MAX_BATCH = 32


def build_model():
    inp = keras.Input((61, 40, 1))
    x = layers.Conv2D(24, (5, 5), strides=2, padding="same", activation="relu")(inp)
    for f in (32, 48):
        x = layers.SeparableConv2D(f, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, layers.Dense(len(WORDS), activation="softmax")(x))


class Spotter:
    """Front end and model in one graph, any batch size."""

    def __init__(self):
        self.model = build_model()
        self.mel = tf.signal.linear_to_mel_weight_matrix(40, 257, RATE, 60.0, 7600.0)

    @tf.function(input_signature=[tf.TensorSpec((None, RATE), tf.float32)])
    def __call__(self, audio):
        spec = tf.abs(tf.signal.stft(audio, 512, 256, fft_length=512))
        logmel = tf.math.log(tf.matmul(spec, self.mel) + 1e-5)
        return self.model(logmel[..., tf.newaxis], training=False)


class Batcher(threading.Thread):
    def __init__(self, spotter):
        super().__init__(daemon=True)
        self.spotter = spotter
        self.requests = queue.Queue()
        self.batch_sizes = []
        self._stopped = threading.Event()

    def submit(self, clip):
        fut = Future()
        self.requests.put((clip, fut))
        return fut

    def stop(self):
        self._stopped.set()
        self.requests.put(None)

    def _collect(self):
        first = self.requests.get()
        if first is None:
            return []
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                item = self.requests.get_nowait()
            except queue.Empty:
                break
            if item is None:
                break
            batch.append(item)
        return batch

    def run(self):
        while not self._stopped.is_set():
            batch = self._collect()
            if not batch:
                continue
            self.batch_sizes.append(len(batch))
            probs = self.spotter(np.stack([clip for clip, _ in batch])).numpy()
            for (_, fut), p in zip(batch, probs):
                k = int(p.argmax())
                fut.set_result((WORDS[k], float(p[k])))


def record(seed, n=12):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE, dtype=np.float32) / RATE
    clips = []
    for _ in range(n):
        f0 = rng.uniform(120, 1800)
        tone = np.sin(2 * np.pi * f0 * t) * np.exp(-8 * (t - rng.uniform(0.3, 0.7)) ** 2)
        clips.append((0.5 * tone + 0.02 * rng.normal(size=RATE)).astype(np.float32))
    return clips


def stream(batcher, clips, count, out, latencies):
    """One device: posts the next clip when the answer to the last one has come."""
    for i in range(count):
        t0 = time.perf_counter()
        word, score = batcher.submit(clips[i % len(clips)]).result(timeout=30)
        latencies.append(time.perf_counter() - t0)
        out.append((word, round(score, 3)))


def replay(batcher, recordings, count):
    outs = [[] for _ in recordings]
    latencies = []
    threads = [
        threading.Thread(target=stream, args=(batcher, clips, count, out, latencies))
        for clips, out in zip(recordings, outs)
    ]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    return outs, latencies


def main():
    keras.utils.set_random_seed(5)
    batcher = Batcher(Spotter())
    batcher.start()
    recordings = [record(seed) for seed in range(STREAMS)]
    replay(batcher, recordings, WARMUP_CLIPS)
    batcher.batch_sizes.clear()

    start = time.perf_counter()
    outs, latencies = replay(batcher, recordings, CLIPS_PER_STREAM)
    seconds = time.perf_counter() - start
    batcher.stop()

    print("mean batch", round(float(np.mean(batcher.batch_sizes)), 2),
          "p50 ms", round(1e3 * float(np.percentile(latencies, 50)), 1),
          "p99 ms", round(1e3 * float(np.percentile(latencies, 99)), 1))
    print("first answers", [o[0] for o in outs])
    print(json.dumps({"samples": STREAMS * CLIPS_PER_STREAM, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
