"""Chest X-ray triage service.

The modality gateway puts one message per study on a work queue; the worker groups waiting messages,
scores them with a CNN and answers with the findings that pass their thresholds.
"""
import base64
import json
import queue
import threading
import time
from concurrent.futures import Future

import numpy as np
import tensorflow as tf
from tensorflow import keras

SIZE = 192
FINDINGS = ["effusion", "pneumothorax", "consolidation", "cardiomegaly", "nodule", "fracture"]
MAX_BATCH = 8
MAX_WAIT_S = 1.0
STUDIES = 320
WARMUP = 24


def synth_study(rng, number):
    """Detector counts of a radiograph: two dark lung fields, ribs, noise; 8 bits after windowing."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
    img = 170.0 + 30.0 * np.sin(xx * np.pi)
    for cx in (0.3, 0.7):
        cx = cx + rng.normal(0, 0.02)
        img -= 90.0 * np.exp(-(((xx - cx) / 0.13) ** 2 + ((yy - 0.5) / 0.3) ** 2))
    img += 12.0 * np.sin(yy * 60.0 + rng.uniform(0, 6)) + rng.normal(0, 5.0, img.shape)
    return {"study": f"CXR-{number:06d}", "view": "PA",
            "pixels": np.clip(img, 0, 255).astype(np.uint8)}


def build_classifier():
    inp = keras.Input((SIZE, SIZE, 1), name="image")
    x = keras.layers.Conv2D(32, 5, strides=2, padding="same", activation="relu")(inp)
    for filters in (64, 128, 192):
        skip = keras.layers.Conv2D(filters, 1, strides=2, padding="same")(x)
        x = keras.layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = keras.layers.Conv2D(filters, 3, padding="same")(x)
        x = keras.layers.ReLU()(keras.layers.Add()([x, skip]))
    x = keras.layers.GlobalAveragePooling2D()(x)
    out = keras.layers.Dense(len(FINDINGS), activation="sigmoid", name="findings")(x)
    return keras.Model(inp, out)


def pack_study(study):
    pixels = study["pixels"]
    message = {
        "study": study["study"],
        "view": study["view"],
        "shape": list(pixels.shape),
        "image": base64.b64encode(pixels.tobytes()).decode("ascii"),
    }
    return json.dumps(message).encode("utf-8")


def unpack_study(body):
    message = json.loads(body)
    pixels = np.frombuffer(base64.b64decode(message["image"]), dtype=np.uint8)
    if pixels.size != np.prod(message["shape"]):
        raise ValueError(f"{message['study']}: truncated image")
    image = pixels.reshape(message["shape"]).astype(np.float32) / 255.0
    return message["study"], image[..., None]


class TriageWorker(threading.Thread):
    def __init__(self, model, inbox):
        super().__init__(daemon=True)
        self.model = model
        self.inbox = inbox
        self.thresholds = np.linspace(0.45, 0.55, len(FINDINGS))
        self.batches = 0

        @tf.function(input_signature=[tf.TensorSpec([MAX_BATCH, SIZE, SIZE, 1], tf.float32)])
        def score(images):
            return self.model(images, training=False)

        self.score = score

    def take_batch(self):
        """Waits for one message, then takes what else is waiting."""
        items = [self.inbox.get()]
        while len(items) < MAX_BATCH and items[-1] is not None:
            try:
                items.append(self.inbox.get(timeout=MAX_WAIT_S))
            except queue.Empty:
                break
        return items

    def answer(self, items):
        images = np.zeros((MAX_BATCH, SIZE, SIZE, 1), np.float32)
        names = []
        for row, (body, _) in enumerate(items):
            name, images[row] = unpack_study(body)
            names.append(name)
        probs = self.score(tf.constant(images)).numpy()
        for (_, future), name, p in zip(items, names, probs):
            hits = [f for f, v, t in zip(FINDINGS, p, self.thresholds) if v > t]
            future.set_result({"study": name, "findings": hits, "urgent": float(p.max())})
        self.batches += 1

    def run(self):
        while True:
            items = self.take_batch()
            work = [i for i in items if i is not None]
            if work:
                self.answer(work)
            if len(work) < len(items):
                return


class Gateway:
    def __init__(self, inbox):
        self.inbox = inbox
        self.sent_bytes = 0

    def submit(self, study):
        body = pack_study(study)
        self.sent_bytes += len(body)
        future = Future()
        self.inbox.put((body, future))
        return future


def replay(gateway, studies):
    futures = [gateway.submit(s) for s in studies]
    return [f.result(timeout=300) for f in futures]


def main():
    keras.utils.set_random_seed(21)
    rng = np.random.default_rng(21)
    day = [synth_study(rng, n) for n in range(STUDIES)]
    inbox = queue.Queue(maxsize=4 * MAX_BATCH)
    worker = TriageWorker(build_classifier(), inbox)
    worker.start()
    gateway = Gateway(inbox)

    replay(gateway, day[:WARMUP])
    gateway.sent_bytes = 0

    start = time.perf_counter()
    reports = replay(gateway, day)
    seconds = time.perf_counter() - start
    inbox.put(None)
    worker.join()

    urgent = sorted(reports, key=lambda r: -r["urgent"])[:3]
    print("batches", worker.batches, "MB received", round(gateway.sent_bytes / 1e6, 1))
    print("first on the worklist", [(r["study"], round(r["urgent"], 4)) for r in urgent])
    print(json.dumps({"samples": len(reports), "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
