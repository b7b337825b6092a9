"""GRU encoder-decoder with additive attention, trained with teacher forcing on a toy translation pair."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras

SRC_VOCAB, TGT_VOCAB = 3000, 3000
SRC_LEN, TGT_LEN = 40, 24
UNITS, EMB = 160, 96
BATCH = 32
WARMUP, STEPS = 3, 24


def parallel_corpus(n, seed=0):
    rng = np.random.default_rng(seed)
    lexicon = rng.permutation(TGT_VOCAB - 3) + 3
    src = rng.zipf(1.3, size=(n, SRC_LEN)) % (SRC_VOCAB - 3) + 3
    tgt = np.concatenate([np.ones((n, 1), int), lexicon[src[:, :TGT_LEN] - 3]], axis=1)
    lengths = rng.integers(TGT_LEN // 2, TGT_LEN + 1, size=n)
    tgt[np.arange(TGT_LEN + 1)[None] > lengths[:, None]] = 0
    return src.astype(np.int32), tgt.astype(np.int32)


class Encoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(SRC_VOCAB, EMB)
        self.gru = keras.layers.GRU(UNITS, return_sequences=True, return_state=True)

    def call(self, tokens):
        return self.gru(self.embedding(tokens))


class AdditiveAttention(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W_query = keras.layers.Dense(units, use_bias=False)
        self.W_memory = keras.layers.Dense(units, use_bias=False)
        self.v = keras.layers.Dense(1, use_bias=False)

    def keys(self, memory):
        return self.W_memory(memory)

    def call(self, query, memory, keys):
        hidden = tf.nn.tanh(self.W_query(query)[:, None, :] + keys)
        weights = tf.nn.softmax(self.v(hidden), axis=1)
        return tf.reduce_sum(weights * memory, axis=1)


class Decoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(TGT_VOCAB, EMB)
        self.attention = AdditiveAttention(UNITS)
        self.cell = keras.layers.GRUCell(UNITS)
        self.to_vocab = keras.layers.Dense(TGT_VOCAB)

    def call(self, token, state, memory, keys):
        context = self.attention(state, memory, keys)
        x = tf.concat([self.embedding(token), context], axis=-1)
        out, _ = self.cell(x, [state])
        return out


def token_loss(labels, logits):
    ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(tf.where(labels > 0, ce, 0.0))


class Trainer:
    def __init__(self):
        self.encoder, self.decoder = Encoder(), Decoder()
        self.optimizer = keras.optimizers.Adam(1e-3)

    def build(self, src, tgt):
        memory, state = self.encoder(src)
        keys = self.decoder.attention.keys(memory)
        self.decoder.to_vocab(self.decoder(tgt[:, 0], state, memory, keys))
        self.weights = self.encoder.trainable_variables + self.decoder.trainable_variables
        self.optimizer.build(self.weights)

    @tf.function(reduce_retracing=True)
    def step(self, src, tgt):
        labels = tf.transpose(tgt[:, 1:])
        inputs = tf.transpose(tgt[:, :-1])
        with tf.GradientTape() as tape:
            memory, state = self.encoder(src)
            keys = self.decoder.attention.keys(memory)
            steps = tf.shape(inputs)[0]
            outs = tf.TensorArray(tf.float32, size=steps, element_shape=[None, UNITS])
            for t in tf.range(steps):
                state = self.decoder(inputs[t], state, memory, keys)
                outs = outs.write(t, state)
            total = token_loss(labels, self.decoder.to_vocab(outs.stack()))
            loss = total / tf.reduce_sum(tf.cast(labels > 0, tf.float32))
        grads = tape.gradient(loss, self.weights)
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        self.optimizer.apply_gradients(zip(grads, self.weights))
        return loss


def run(trainer, dataset):
    losses = []
    for src, tgt in dataset:
        losses.append(trainer.step(src, tgt))
    return [float(v) for v in losses]


def main():
    keras.utils.set_random_seed(7)
    src, tgt = parallel_corpus(BATCH * (WARMUP + STEPS))
    data = tf.data.Dataset.from_tensor_slices((src, tgt)).batch(BATCH, drop_remainder=True)
    trainer = Trainer()
    trainer.build(tf.constant(src[:BATCH]), tf.constant(tgt[:BATCH]))
    run(trainer, data.take(WARMUP))
    timed = data.skip(WARMUP).prefetch(tf.data.AUTOTUNE)
    start = time.perf_counter()
    losses = run(trainer, timed)
    seconds = time.perf_counter() - start
    print("loss first %.5f last %.5f" % (losses[0], losses[-1]))
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
