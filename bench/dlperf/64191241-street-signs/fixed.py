"""Street-sign recogniser on 220x220 colour pictures."""
import json
import time

import numpy as np
import keras
from keras.layers import Conv2D, Dense, Dropout, Flatten, Input, MaxPooling2D

keras.utils.set_random_seed(12)
HW = 220
CLASSES = 20
BATCH = 8
STEPS = 3

rng = np.random.default_rng(12)
labels = rng.integers(0, CLASSES, size=BATCH * STEPS)
pictures = rng.random((BATCH * STEPS, HW, HW, 3), dtype="float32")
for picture, c in zip(pictures, labels):
    picture[c * 8:c * 8 + 30, c * 8:c * 8 + 30] = 1.0

model = keras.Sequential()
model.add(Input((HW, HW, 3)))
model.add(Conv2D(16, (3, 3), activation="relu"))
model.add(MaxPooling2D(3))
model.add(Conv2D(16, (3, 3), activation="relu"))
model.add(MaxPooling2D(3))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(128, activation="relu"))
model.add(Dense(CLASSES, activation="softmax"))
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
print("parameters", model.count_params())

model.fit(pictures[:BATCH], labels[:BATCH], batch_size=BATCH, verbose=0)

t0 = time.perf_counter()
history = model.fit(pictures, labels, batch_size=BATCH, epochs=1, verbose=0)
seconds = time.perf_counter() - t0

print("loss", history.history["loss"][-1])
print(json.dumps({"samples": BATCH * STEPS, "seconds": seconds}))
