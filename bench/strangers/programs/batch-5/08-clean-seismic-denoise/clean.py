"""Denoising autoencoder for three-component seismograms (graph mode, one Session)."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

LENGTH, BATCH = 1024, 24


def ricker(t, f):
    a = (np.pi * f * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


def synth_events(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH)[None, :] / 100.0
    clean = np.zeros((n, LENGTH, 3), np.float32)
    for delay, low, high in ((2.0, 2.0, 6.0), (5.0, 0.8, 3.0)):
        onset = delay + rng.uniform(-0.5, 1.5, (n, 1))
        freq = rng.uniform(low, high, (n, 1))
        wavelet = ricker(t - onset, freq)
        clean += wavelet[:, :, None] * rng.normal(size=(n, 1, 3))
    noise = np.cumsum(rng.normal(size=clean.shape), axis=1)
    noise -= np.linspace(0, 1, LENGTH)[None, :, None] * noise[:, -1:, :]
    noise *= rng.uniform(0.2, 0.8, (n, 1, 1)) / noise.std(axis=1, keepdims=True)
    return (clean + noise).astype(np.float32), clean.astype(np.float32)


def make_iterator(noisy, clean, training):
    ds = tf.data.Dataset.from_tensor_slices((noisy, clean))
    if training:
        ds = ds.shuffle(len(noisy), seed=5).repeat()
    ds = ds.batch(BATCH, drop_remainder=True).prefetch(2)
    return tf.data.make_initializable_iterator(ds)


def conv(x, filters, width, name, stride=1, activation=tf.nn.relu):
    return tf.layers.conv1d(x, filters, width, strides=stride, padding="same",
                            activation=activation, name=name)


def upsample(x):
    batch, length, channels = x.shape.as_list()
    x = tf.tile(x[:, :, None, :], [1, 1, 2, 1])
    return tf.reshape(x, [batch, 2 * length, channels])


def denoiser(noisy):
    with tf.variable_scope("denoiser", reuse=tf.AUTO_REUSE):
        e1 = conv(noisy, 32, 9, "e1")
        e2 = conv(conv(e1, 64, 9, "e2a", stride=2), 64, 9, "e2b")
        e3 = conv(conv(e2, 96, 9, "e3a", stride=2), 96, 9, "e3b")
        d2 = conv(tf.concat([upsample(e3), e2], -1), 64, 9, "d2")
        d1 = conv(tf.concat([upsample(d2), e1], -1), 32, 9, "d1")
        return conv(d1, 3, 9, "out", activation=None)


def signal_loss(clean, estimate):
    return tf.reduce_mean(tf.squared_difference(clean, estimate))


def evaluate(sess, iterator, loss, batches):
    sess.run(iterator.initializer)
    return float(np.mean([sess.run(loss) for _ in range(batches)]))


def main(epochs=2, steps_per_epoch=16):
    tf.set_random_seed(1)
    train_it = make_iterator(*synth_events(384, 1), training=True)
    val_it = make_iterator(*synth_events(2 * BATCH, 2), training=False)

    noisy, clean = train_it.get_next()
    loss = signal_loss(clean, denoiser(noisy))
    train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
    val_noisy, val_clean = val_it.get_next()
    val_loss = signal_loss(val_clean, denoiser(val_noisy))
    saver = tf.train.Saver(max_to_keep=2)

    with tempfile.TemporaryDirectory() as tmp, tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), train_it.initializer])
        for _ in range(3):
            sess.run(train_op)
        evaluate(sess, val_it, val_loss, 1)

        t0 = time.perf_counter()
        for epoch in range(epochs):
            losses = []
            for _ in range(steps_per_epoch):
                _, value = sess.run([train_op, loss])
                losses.append(value)
            score = evaluate(sess, val_it, val_loss, 2)
            saver.save(sess, os.path.join(tmp, "denoiser"), global_step=epoch,
                       write_meta_graph=False)
            print(f"epoch {epoch}  train {np.mean(losses):.4f}  validation {score:.4f}")
        seconds = time.perf_counter() - t0
    print(json.dumps({"samples": epochs * steps_per_epoch * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
