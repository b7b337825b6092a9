"""Image denoiser in the manner of DnCNN: predicts the noise of greyscale patches held in memory."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

PATCH = 64
TRAIN_PATCHES = 320
VAL_PATCHES = 32
BATCH = 16
FILTERS = 32
DEPTH = 6
SIGMA = 0.1
EPOCHS = 3


def make_patches(count, seed):
    """Smooth random scenes with a few hard edges, and the same with sensor noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(0.2, 0.8, (count, 8, 8)).astype(np.float32)
    clean = coarse.repeat(PATCH // 8, axis=1).repeat(PATCH // 8, axis=2)
    ramp = np.linspace(-0.15, 0.15, PATCH, dtype=np.float32)
    clean += rng.normal(0, 1, (count, 1, 1)).astype(np.float32) * ramp[None, :, None]
    noise = SIGMA * rng.standard_normal((count, PATCH, PATCH), dtype=np.float32)
    return (clean + noise)[..., None], noise[..., None]


def build_model():
    noisy = keras.Input((PATCH, PATCH, 1))
    x = keras.layers.Conv2D(FILTERS, 3, padding="same", activation="relu")(noisy)
    for _ in range(DEPTH):
        x = keras.layers.Conv2D(FILTERS, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
    noise = keras.layers.Conv2D(1, 3, padding="same")(x)
    return keras.Model(noisy, noise, name="denoiser")


def compile_model(model):
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", jit_compile=False)
    return model


def make_callbacks(work):
    return [
        keras.callbacks.ModelCheckpoint(os.path.join(work, "best.weights.h5"), save_best_only=True,
                                        save_weights_only=True, monitor="val_loss"),
        keras.callbacks.CSVLogger(os.path.join(work, "history.csv")),
        keras.callbacks.TerminateOnNaN(),
    ]


def psnr_gain(mse):
    return 10.0 * np.log10(SIGMA ** 2 / mse)


def main():
    keras.utils.set_random_seed(12)
    x_train, y_train = make_patches(TRAIN_PATCHES, seed=1)
    x_val, y_val = make_patches(VAL_PATCHES, seed=2)
    model = compile_model(build_model())
    model.fit(x_train[:2 * BATCH], y_train[:2 * BATCH], batch_size=BATCH, verbose=0,
              validation_data=(x_val[:BATCH], y_val[:BATCH]), validation_batch_size=BATCH)

    with tempfile.TemporaryDirectory() as work:
        begin = time.perf_counter()
        history = model.fit(x_train, y_train, batch_size=BATCH, epochs=EPOCHS, verbose=0,
                            validation_data=(x_val, y_val), validation_batch_size=BATCH,
                            callbacks=make_callbacks(work))
        seconds = time.perf_counter() - begin
    print(f"validation PSNR gain {psnr_gain(history.history['val_loss'][-1]):.2f} dB")
    print(json.dumps({"samples": EPOCHS * TRAIN_PATCHES, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
