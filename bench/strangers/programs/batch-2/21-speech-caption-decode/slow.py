"""Batch transcription of call-centre recordings with a small encoder/decoder transformer.

Greedy decoding, one token per step, self-attention history kept in a ring of keys and values.
"""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

SAMPLE_RATE = 8000
CLIP_SECONDS = 6
VOCAB = 1200
BOS, EOS, PAD = 1, 2, 0


class HParams:
    d_model = 192
    num_heads = 4
    d_ff = 768
    enc_layers = 6
    dec_layers = 3
    max_tokens = 32
    batch = 4


def synth_call(rng):
    """A few drifting formants with pauses, roughly the energy profile of speech."""
    n = SAMPLE_RATE * CLIP_SECONDS
    t = np.arange(n, dtype=np.float32) / SAMPLE_RATE
    wave = np.zeros(n, np.float32)
    for f0 in rng.uniform(120, 1800, size=4):
        drift = 1.0 + 0.05 * np.sin(2 * np.pi * rng.uniform(0.3, 2.0) * t)
        wave += rng.uniform(0.1, 0.4) * np.sin(2 * np.pi * f0 * drift * t)
    gate = np.repeat(rng.random(n // 800) > 0.25, 800).astype(np.float32)
    wave = wave * gate + rng.normal(0, 0.01, n).astype(np.float32)
    return (wave * 12000).astype(np.int16)


def log_mel(pcm, mel_matrix):
    x = tf.cast(pcm, tf.float32) / 32768.0
    spec = tf.abs(tf.signal.stft(x, frame_length=200, frame_step=80, fft_length=256))
    return tf.math.log(tf.matmul(spec, mel_matrix) + 1e-5)


def build_dataset(calls, hp):
    mel = tf.signal.linear_to_mel_weight_matrix(64, 129, SAMPLE_RATE, 80.0, 3800.0)
    ds = tf.data.Dataset.from_tensor_slices(calls)
    ds = ds.batch(hp.batch, drop_remainder=True)
    ds = ds.map(lambda pcm: log_mel(pcm, mel), num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


def sinusoids(length, depth):
    pos = np.arange(length)[:, None]
    rates = 1.0 / np.power(10000.0, np.arange(0, depth, 2) / depth)
    return np.concatenate([np.sin(pos * rates), np.cos(pos * rates)], axis=1).astype(np.float32)


class Attention(tf.Module):
    def __init__(self, hp, name):
        super().__init__(name=name)
        self.heads = hp.num_heads
        self.depth = hp.d_model // hp.num_heads
        init = tf.keras.initializers.GlorotUniform(seed=len(name))
        shape = (hp.d_model, hp.d_model)
        self.wq, self.wk, self.wv, self.wo = [tf.Variable(init(shape)) for _ in range(4)]

    def split(self, x):
        b, t = tf.shape(x)[0], tf.shape(x)[1]
        return tf.transpose(tf.reshape(x, [b, t, self.heads, self.depth]), [0, 2, 1, 3])

    def project(self, x):
        return self.split(tf.matmul(x, self.wk)), self.split(tf.matmul(x, self.wv))

    def attend(self, x, keys, values, bias=None):
        q = self.split(tf.matmul(x, self.wq)) * self.depth ** -0.5
        scores = tf.matmul(q, keys, transpose_b=True)
        if bias is not None:
            scores += bias
        ctx = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
        b, t = tf.shape(x)[0], tf.shape(x)[1]
        return tf.matmul(tf.reshape(ctx, [b, t, self.heads * self.depth]), self.wo)


class FeedForward(tf.Module):
    def __init__(self, hp, name):
        super().__init__(name=name)
        init = tf.keras.initializers.GlorotUniform(seed=11)
        self.w1 = tf.Variable(init((hp.d_model, hp.d_ff)))
        self.w2 = tf.Variable(init((hp.d_ff, hp.d_model)))

    def __call__(self, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.w1)), self.w2)


def norm(x):
    mean, var = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(var + 1e-6)


class Encoder(tf.Module):
    def __init__(self, hp):
        super().__init__()
        self.front = tf.keras.Sequential([
            tf.keras.layers.Conv1D(hp.d_model, 3, strides=2, padding="same", activation="relu"),
            tf.keras.layers.Conv1D(hp.d_model, 3, strides=2, padding="same", activation="relu")])
        self.attn = [Attention(hp, f"enc{i}") for i in range(hp.enc_layers)]
        self.ffn = [FeedForward(hp, f"encff{i}") for i in range(hp.enc_layers)]
        self.pos = tf.constant(sinusoids(400, hp.d_model))

    def __call__(self, mel):
        x = self.front(mel)
        x += self.pos[: tf.shape(x)[1]]
        for attn, ffn in zip(self.attn, self.ffn):
            h = norm(x)
            x += attn.attend(h, *attn.project(h))
            x += ffn(norm(x))
        return norm(x)


class Decoder(tf.Module):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.embed = tf.Variable(tf.random.stateless_normal((VOCAB, hp.d_model), [3, 4]) * 0.3)
        self.pos = tf.constant(sinusoids(hp.max_tokens + 1, hp.d_model))
        self.self_attn = [Attention(hp, f"dec{i}") for i in range(hp.dec_layers)]
        self.cross_attn = [Attention(hp, f"cross{i}") for i in range(hp.dec_layers)]
        self.ffn = [FeedForward(hp, f"decff{i}") for i in range(hp.dec_layers)]

    def step(self, token, t, memory, cache_k, cache_v):
        hp = self.hp
        x = tf.gather(self.embed, token)[:, None, :] + self.pos[t]
        future = tf.cast(tf.range(hp.max_tokens) > t, tf.float32) * -1e9
        slot = tf.one_hot(t, hp.max_tokens)[None, None, :, None]
        new_k, new_v = [], []
        for i in range(hp.dec_layers):
            h = norm(x)
            k, v = self.self_attn[i].project(h)
            keys = cache_k[i] + slot * k
            values = cache_v[i] + slot * v
            x += self.self_attn[i].attend(h, keys, values, future)
            mem_k, mem_v = self.cross_attn[i].project(memory)
            x += self.cross_attn[i].attend(norm(x), mem_k, mem_v)
            x += self.ffn[i](norm(x))
            new_k.append(keys)
            new_v.append(values)
        logits = tf.matmul(norm(x)[:, 0], self.embed, transpose_b=True)
        return logits, tuple(new_k), tuple(new_v)


class Transcriber(tf.Module):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.encoder = Encoder(hp)
        self.decoder = Decoder(hp)

    @tf.function(reduce_retracing=True)
    def transcribe(self, mel):
        hp = self.hp
        memory = self.encoder(mel)
        b = tf.shape(mel)[0]
        empty = tf.zeros([b, hp.num_heads, hp.max_tokens, hp.d_model // hp.num_heads])
        cache_k = tuple(empty for _ in range(hp.dec_layers))
        cache_v = tuple(empty for _ in range(hp.dec_layers))
        token = tf.fill([b], BOS)
        done = tf.zeros([b], tf.bool)
        out = tf.TensorArray(tf.int32, size=hp.max_tokens)
        t = tf.constant(0)
        while t < hp.max_tokens and not tf.reduce_all(done):
            logits, cache_k, cache_v = self.decoder.step(token, t, memory, cache_k, cache_v)
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
            token = tf.where(done, PAD, token)
            done = tf.logical_or(done, tf.equal(token, EOS))
            out = out.write(t, token)
            t += 1
        return tf.transpose(out.stack())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--calls", type=int, default=200)
    args = ap.parse_args()
    tf.keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    hp = HParams()
    calls = np.stack([synth_call(rng) for _ in range(args.calls)])
    model = Transcriber(hp)

    for mel in build_dataset(calls[: 2 * hp.batch], hp):
        model.transcribe(mel)

    transcripts = []
    start = time.perf_counter()
    for mel in build_dataset(calls, hp):
        transcripts.append(model.transcribe(mel).numpy())
    seconds = time.perf_counter() - start
    tokens = np.concatenate(transcripts)
    print("transcribed", len(tokens), "calls, checksum", int(tokens.sum()))
    print(json.dumps({"samples": int(len(tokens)), "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
