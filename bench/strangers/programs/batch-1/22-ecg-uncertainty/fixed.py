"""Scores 12-lead ECG recordings with Monte-Carlo dropout and flags the uncertain ones for a cardiologist."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

LEADS = 12
LENGTH = 1000
CLASSES = 5
MC_PASSES = 16
BATCH = 64
N_TRAIN = 192
N_SCORE = 384
WARMUP_BATCHES = 1


class MCDropout(keras.layers.Dropout):
    """Dropout that stays active at inference time."""

    def call(self, inputs, training=None):
        return super().call(inputs, training=True)


def synth_recordings(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH, dtype=np.float32) / 100.0
    labels = rng.integers(0, CLASSES, n)
    rate = (0.8 + 0.25 * labels + rng.normal(0, 0.05, n)).astype(np.float32)
    phase = (t[None, :] * rate[:, None]) % 1.0
    beat = np.exp(-((phase - 0.4) ** 2) / 0.0012) - 0.25 * np.exp(-((phase - 0.46) ** 2) / 0.002)
    beat += 0.2 * np.exp(-((phase - 0.7) ** 2) / 0.01) * (1 - 0.3 * (labels[:, None] % 2))
    gain = rng.normal(1.0, 0.2, (n, 1, LEADS))
    x = beat[:, :, None] * gain + rng.normal(0, 0.08, (n, LENGTH, LEADS))
    return x.astype(np.float32), labels.astype(np.int32)


def res_block(x, filters, stride):
    shortcut = keras.layers.Conv1D(filters, 1, strides=stride, padding="same")(x)
    y = keras.layers.Conv1D(filters, 7, strides=stride, padding="same", activation="relu")(x)
    y = keras.layers.Conv1D(filters, 7, padding="same")(y)
    return keras.layers.ReLU()(keras.layers.Add()([shortcut, y]))


def build_encoder():
    inputs = keras.Input((LENGTH, LEADS))
    x = keras.layers.Conv1D(48, 11, strides=2, padding="same", activation="relu")(inputs)
    x = res_block(x, 48, 1)
    x = res_block(x, 64, 2)
    x = res_block(x, 96, 2)
    return keras.Model(inputs, x, name="encoder")


def build_classifier(feature_shape):
    inputs = keras.Input(feature_shape)
    x = MCDropout(0.2)(inputs)
    x = res_block(x, 64, 4)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = MCDropout(0.4)(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    x = MCDropout(0.4)(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax")(x), name="classifier")


def build_model():
    encoder = build_encoder()
    classifier = build_classifier(encoder.output_shape[1:])
    inputs = keras.Input((LENGTH, LEADS))
    return keras.Model(inputs, classifier(encoder(inputs)), name="ecg_net")


def train(model, x, y, epochs=1):
    optimizer = keras.optimizers.Adam(1e-3)
    loss_fn = keras.losses.SparseCategoricalCrossentropy()

    @tf.function
    def step(xb, yb):
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, model(xb, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=0).batch(BATCH, drop_remainder=True)
    for _ in range(epochs):
        for xb, yb in ds:
            loss = step(xb, yb)
    return float(loss)


def mc_predict(model, xb, passes=MC_PASSES):
    features = model.get_layer("encoder")(xb, training=False)
    classifier = model.get_layer("classifier")
    probs = tf.stack([classifier(features, training=False) for _ in range(passes)])
    mean = tf.reduce_mean(probs, axis=0)
    entropy = -tf.reduce_sum(mean * tf.math.log(mean + 1e-8), axis=-1)
    expected = -tf.reduce_mean(tf.reduce_sum(probs * tf.math.log(probs + 1e-8), axis=-1), axis=0)
    return mean.numpy(), (entropy - expected).numpy()


def score(model, x, report):
    flagged = 0
    done = 0
    with open(report, "w") as out:
        for i, lo in enumerate(range(0, len(x), BATCH)):
            if i == WARMUP_BATCHES:
                start = time.perf_counter()
                done = 0
            xb = tf.convert_to_tensor(x[lo:lo + BATCH])
            mean, mutual_info = mc_predict(model, xb)
            for k in range(len(mean)):
                uncertain = mutual_info[k] > 0.05
                flagged += int(uncertain)
                out.write("%d,%d,%.4f,%.5f,%d\n" % (lo + k, mean[k].argmax(), mean[k].max(), mutual_info[k], uncertain))
            done += len(mean)
    return flagged, done, time.perf_counter() - start


def main():
    keras.utils.set_random_seed(5)
    model = build_model()
    x, y = synth_recordings(N_TRAIN, seed=1)
    print("training loss %.4f" % train(model, x, y, epochs=3))
    x_new, _ = synth_recordings(N_SCORE, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        flagged, samples, seconds = score(model, x_new, os.path.join(folder, "report.csv"))
    print("flagged %d of %d" % (flagged, N_SCORE))
    print(json.dumps({"samples": samples, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
