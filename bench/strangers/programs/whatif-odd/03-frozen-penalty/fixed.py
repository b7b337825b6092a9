"""Fine-tunes a sentence classifier head on top of a pretrained encoder, with soft orthogonality on the dense kernels."""
import json
import pathlib
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SEQ = 12
WIDTH = 384
HIDDEN = 1024
TOKENS = 4000
CLASSES = 5
BATCH = 16
WARMUP = 10
STEPS = 550


@keras.saving.register_keras_serializable("encoder")
class SoftOrthogonal(keras.regularizers.Regularizer):
    def __init__(self, weight=1e-4):
        self.weight = weight

    def __call__(self, kernel):
        gram = tf.matmul(kernel, kernel, transpose_b=True)
        eye = tf.eye(gram.shape[0])
        return self.weight * tf.reduce_sum(tf.square(gram - eye))

    def get_config(self):
        return {"weight": self.weight}


def mixer_block(x, i):
    h = layers.LayerNormalization(name=f"norm_{i}")(x)
    h = layers.DepthwiseConv1D(3, padding="same", name=f"mix_{i}")(h)
    h = layers.Dense(HIDDEN, activation="gelu", kernel_regularizer=SoftOrthogonal(), name=f"up_{i}")(h)
    h = layers.Dense(WIDTH, kernel_regularizer=SoftOrthogonal(), name=f"down_{i}")(h)
    return layers.Add()([x, h])


def pretrained_encoder(path):
    """The encoder of the language team, as they export it."""
    if not path.exists():
        ids = keras.Input((SEQ,), dtype="int32")
        x = layers.Embedding(TOKENS, WIDTH)(ids)
        for i in range(3):
            x = mixer_block(x, i)
        keras.Model(ids, layers.GlobalAveragePooling1D()(x), name="encoder").save(path)
    return keras.models.load_model(path)


def build_classifier(encoder):
    encoder.trainable = False
    ids = keras.Input((SEQ,), dtype="int32")
    x = encoder(ids, training=False)
    x = layers.Dense(64, activation="tanh", kernel_regularizer=SoftOrthogonal(1e-3))(x)
    return keras.Model(ids, layers.Dense(CLASSES)(x))


def make_sentences(n=4000, seed=19):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    ids = rng.integers(0, TOKENS, (n, SEQ))
    ids[:, :3] = y[:, None] * 40 + rng.integers(0, 40, (n, 3))
    return ids.astype("int32"), y.astype("int32")


def make_dataset(ids, y):
    ds = tf.data.Dataset.from_tensor_slices((ids, y))
    return ds.shuffle(4000, seed=1).repeat().batch(BATCH, drop_remainder=True).prefetch(2)


def weight_penalty(weights):
    terms = [w.regularizer(tf.convert_to_tensor(w)) for w in weights if getattr(w, "regularizer", None) is not None]
    return tf.add_n(terms)


class FineTuner:
    def __init__(self, model):
        self.model = model
        self.opt = keras.optimizers.Adam(1e-3)
        self.opt.build(model.trainable_variables)
        self.ce = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.acc = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def step(self, ids, y):
        with tf.GradientTape() as tape:
            logits = self.model(ids, training=True)
            penalty = weight_penalty(self.model.trainable_weights)
            loss = self.ce(y, logits) + penalty
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))
        self.acc.update_state(y, logits)
        return loss

    def run(self, batches, steps):
        loss = None
        for _ in range(steps):
            loss = self.step(*next(batches))
        return float(loss)


def main():
    keras.utils.set_random_seed(20)
    encoder = pretrained_encoder(pathlib.Path(tempfile.mkdtemp(prefix="enc-")) / "encoder.keras")
    tuner = FineTuner(build_classifier(encoder))
    batches = iter(make_dataset(*make_sentences()))
    tuner.run(batches, WARMUP)
    tuner.acc.reset_state()
    t0 = time.perf_counter()
    loss = tuner.run(batches, STEPS)
    seconds = time.perf_counter() - t0
    print("loss %.3f accuracy %.3f" % (loss, float(tuner.acc.result())))
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
