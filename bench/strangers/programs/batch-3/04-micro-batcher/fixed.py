"""In-process scoring service: worker threads submit sensor windows, one batcher runs the model."""
import json
import queue
import threading
import time
from concurrent.futures import Future

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

WINDOW = 128
CHANNELS = 6
N_STATES = 8
N_WORKERS = 8
REQUESTS_PER_WORKER = 500
MAX_BATCH = N_WORKERS
BATCH_TIMEOUT = 0.025


def build_scorer():
    inputs = keras.Input((WINDOW, CHANNELS))
    x = layers.Conv1D(48, 7, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling1D(2)(x)
    x = layers.Conv1D(96, 5, padding="same", activation="relu")(x)
    x = layers.Conv1D(96, 5, padding="same", activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dense(128, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(N_STATES, activation="softmax")(x))


class ScoringService:
    """Collects single requests into batches and answers them through futures."""

    def __init__(self, model, max_batch, timeout):
        self.max_batch = max_batch
        self.timeout = timeout
        self.requests = queue.Queue()
        self.batch_sizes = []
        spec = tf.TensorSpec((None, WINDOW, CHANNELS), tf.float32)
        self.infer = tf.function(lambda x: model(x, training=False), input_signature=[spec])
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def submit(self, window):
        future = Future()
        self.requests.put((window, future))
        return future

    def collect(self):
        first = self.requests.get()
        if first is None:
            return None
        batch = [first]
        deadline = time.monotonic() + self.timeout
        while len(batch) < self.max_batch:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            try:
                item = self.requests.get(timeout=remaining)
            except queue.Empty:
                break
            if item is None:
                self.requests.put(None)
                break
            batch.append(item)
        return batch

    def run(self):
        while True:
            batch = self.collect()
            if batch is None:
                return
            windows = np.stack([window for window, _ in batch])
            scores = self.infer(windows).numpy()
            self.batch_sizes.append(len(batch))
            for (_, future), row in zip(batch, scores):
                future.set_result(row)

    def close(self):
        self.requests.put(None)
        self.thread.join()


class MachineWorker(threading.Thread):
    """One production machine: reads a window, asks for its state, reacts, reads the next."""

    def __init__(self, service, seed, n_requests):
        super().__init__()
        self.service = service
        self.rng = np.random.default_rng(seed)
        self.n_requests = n_requests
        self.level = np.zeros(CHANNELS)
        self.states = np.zeros(N_STATES, np.int64)

    def read_window(self):
        steps = self.rng.normal(0.0, 0.2, (WINDOW, CHANNELS))
        window = self.level + np.cumsum(steps, axis=0)
        self.level = 0.5 * window[-1]
        return window.astype(np.float32)

    def run(self):
        for _ in range(self.n_requests):
            scores = self.service.submit(self.read_window()).result()
            state = int(scores.argmax())
            self.states[state] += 1
            if state == 0:
                self.level[:] = 0.0


def run_shift(service, n_requests, seed):
    workers = [MachineWorker(service, seed + k, n_requests) for k in range(N_WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(worker.states for worker in workers)


def main():
    keras.utils.set_random_seed(3)
    service = ScoringService(build_scorer(), MAX_BATCH, BATCH_TIMEOUT)
    run_shift(service, 5, seed=1000)
    service.batch_sizes.clear()

    start = time.perf_counter()
    states = run_shift(service, REQUESTS_PER_WORKER, seed=0)
    seconds = time.perf_counter() - start
    service.close()
    print("states", states.tolist(), "mean batch", round(float(np.mean(service.batch_sizes)), 2))
    print(json.dumps({"samples": N_WORKERS * REQUESTS_PER_WORKER, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
