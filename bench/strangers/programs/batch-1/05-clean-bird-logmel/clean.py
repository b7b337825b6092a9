"""Bird call tagger: log-mel patches are made once, a plain CNN is trained with fit and checked once an epoch."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

RATE = 16000
CLIP = RATE * 2
FRAMES = 1 + (CLIP - 1024) // 250
N_MELS = 64
SPECIES = 5
BATCH = 32
N_TRAIN, N_VAL = 192, 64
EPOCHS = 2


def synth_calls(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(CLIP, dtype=np.float32) / RATE
    present = (rng.uniform(size=(n, SPECIES)) < 0.35).astype(np.float32)
    audio = rng.normal(0, 0.05, size=(n, CLIP)).astype(np.float32)
    for i, s in zip(*np.nonzero(present)):
        centre = rng.uniform(0.3, 1.7)
        chirp = np.sin(2 * np.pi * (900 + 1100 * s) * t + 6 * np.sin(2 * np.pi * (3 + 2 * s) * t))
        audio[i] += 0.3 * chirp * np.exp(-20 * (t - centre) ** 2)
    return audio, present


@tf.function(input_signature=[tf.TensorSpec((None, CLIP), tf.float32), tf.TensorSpec((513, N_MELS), tf.float32)])
def log_mel(audio, mel):
    spec = tf.abs(tf.signal.stft(audio, 1024, 250, fft_length=1024))
    return tf.math.log(tf.matmul(spec, mel) + 1e-4)


def features(n, seed, mel):
    audio, y = synth_calls(n, seed)
    x = np.concatenate([log_mel(tf.constant(a), mel).numpy() for a in np.split(audio, n // BATCH)])
    return x[..., None], y


def spec_augment(x, y):
    """One time band and one frequency band a clip are silenced, for the whole batch at once."""
    shape = (BATCH, 1)
    t0 = tf.random.uniform(shape, 0, FRAMES - 16, tf.int32)
    f0 = tf.random.uniform(shape, 0, N_MELS - 8, tf.int32)
    t = tf.range(FRAMES)[None]
    f = tf.range(N_MELS)[None]
    keep_t = tf.cast((t < t0) | (t >= t0 + 16), x.dtype)[:, :, None, None]
    keep_f = tf.cast((f < f0) | (f >= f0 + 8), x.dtype)[:, None, :, None]
    return x * (keep_t * keep_f), y


def datasets(mel):
    x, y = features(N_TRAIN, 0, mel)
    xv, yv = features(N_VAL, 1, mel)
    mean, std = x.mean(), x.std()
    x, xv = (x - mean) / std, (xv - mean) / std
    train = (
        tf.data.Dataset.from_tensor_slices((x, y))
        .shuffle(N_TRAIN)
        .batch(BATCH, drop_remainder=True)
        .map(spec_augment, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    val = tf.data.Dataset.from_tensor_slices((xv, yv)).batch(BATCH).cache().prefetch(tf.data.AUTOTUNE)
    return train, val


def block(x, filters, strides):
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.8)(x)
    return layers.ReLU()(x)


def build_model():
    inp = keras.Input((FRAMES, N_MELS, 1))
    x = block(inp, 24, 2)
    x = block(x, 48, 2)
    x = block(x, 96, 1)
    x = block(x, 128, 2)
    x = block(x, 128, 1)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inp, layers.Dense(SPECIES, activation="sigmoid")(x))


def main():
    keras.utils.set_random_seed(9)
    mel = tf.signal.linear_to_mel_weight_matrix(N_MELS, 513, RATE, 100.0, 7800.0)
    train, val = datasets(mel)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="binary_crossentropy",
        metrics=[keras.metrics.BinaryAccuracy(), keras.metrics.AUC(multi_label=True, num_labels=SPECIES, name="auc")],
    )
    with tempfile.TemporaryDirectory() as out:
        callbacks = [
            keras.callbacks.ModelCheckpoint(f"{out}/best.weights.h5", monitor="val_auc", mode="max",
                                            save_best_only=True, save_weights_only=True),
            keras.callbacks.CSVLogger(f"{out}/log.csv"),
            keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=2),
        ]
        model.fit(train, validation_data=val, epochs=1, callbacks=callbacks, verbose=0)

        start = time.perf_counter()
        hist = model.fit(train, validation_data=val, epochs=EPOCHS, callbacks=callbacks, verbose=0)
        seconds = time.perf_counter() - start
    print({k: round(float(v[-1]), 4) for k, v in hist.history.items()})
    print(json.dumps({"samples": EPOCHS * N_TRAIN, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
