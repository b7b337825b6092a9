"""JPEG files are opened and resized by PIL in a generator."""

import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
from PIL import Image

COUNT, SIZE = 200, 512
folder = tempfile.mkdtemp()
rng = np.random.default_rng(0)
for index in range(COUNT):
    small = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
    image = Image.fromarray(small).resize((SIZE, SIZE))
    image.save(os.path.join(folder, f"{index:03d}.jpg"), quality=90)
paths = sorted(tf.io.gfile.glob(os.path.join(folder, "*.jpg")))


def images(paths):
    for path in paths:
        image = Image.open(path).convert("RGB").resize((224, 224))
        yield np.asarray(image, "float32") / 255.0


dataset = tf.data.Dataset.from_generator(
    lambda: images(paths), output_signature=tf.TensorSpec([224, 224, 3], tf.float32)
)
rows = 0
begin = time.perf_counter()
for _ in range(3):
    for batch in dataset.batch(20).prefetch(2):
        rows += int(batch.shape[0])
print(json.dumps({"seconds": time.perf_counter() - begin, "result": rows}))
