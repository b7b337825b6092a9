"""Graph-mode Keras segmentation: IoU of the validation pictures computed after each epoch."""
import json
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
keras = tf.keras
K = keras.backend
SIDE = 32
VAL = 40
EPOCHS = 5


def pictures(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.random((n, SIDE, SIDE, 1)).astype("float32")
    y = np.zeros_like(x)
    for img, msk in zip(x, y):
        r, c = rng.integers(0, 20, size=2)
        img[r:r + 10, c:c + 10] += 0.6
        msk[r:r + 10, c:c + 10] = 1.0
    return x, y


def iou(y_true, y_pred):
    y_pred = K.cast(K.greater(y_pred, 0.5), "float32")
    both = K.sum(y_true * y_pred, axis=[1, 2, 3])
    either = K.sum(K.cast(K.greater(y_true + y_pred, 0.5), "float32"), axis=[1, 2, 3])
    return K.mean((both + 1.0) / (either + 1.0))


class ValidationIoU(keras.callbacks.Callback):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y
        self.marks = []

    def on_epoch_end(self, epoch, logs=None):
        t = time.perf_counter()
        pred = self.model.predict(self.x, batch_size=VAL)
        each = []
        for k in range(len(pred)):
            each.append(K.eval(iou(K.constant(self.y[k:k + 1]), K.constant(pred[k:k + 1]))))
        self.value = float(np.mean(each))
        self.marks.append(round(time.perf_counter() - t, 3))


def main():
    x, y = pictures(64, 0)
    xv, yv = pictures(VAL, 1)
    inp = keras.Input((SIDE, SIDE, 1))
    h = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(inp)
    out = keras.layers.Conv2D(1, 1, activation="sigmoid")(h)
    model = keras.Model(inp, out)
    model.compile("adam", "binary_crossentropy")
    watch = ValidationIoU(xv, yv)
    model.fit(x, y, batch_size=32, epochs=1, callbacks=[watch], verbose=0)
    t0 = time.perf_counter()
    model.fit(x, y, batch_size=32, epochs=EPOCHS, callbacks=[watch], verbose=0)
    seconds = time.perf_counter() - t0
    print("iou", watch.value, "seconds in the callback per epoch", watch.marks)
    print(json.dumps({"samples": EPOCHS * VAL, "seconds": seconds}))


main()
