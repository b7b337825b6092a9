"""Double DQN for a planar two-link arm that must reach a random point."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

N_ARMS = 32
OBS = 10
ACTIONS = 9
BATCH = 256
GAMMA = 0.97
CAPACITY = 40_000
WARMUP_TICKS = 60
TICKS = 400
SYNC_EVERY = 40


class ReachArms:
    """Many arms stepped together; torques are picked from a 3 x 3 grid."""

    torque = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), -1).reshape(-1, 2).astype(np.float32)

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.q = self.rng.uniform(-np.pi, np.pi, (n, 2)).astype(np.float32)
        self.dq = np.zeros((n, 2), np.float32)
        self.age = self.rng.integers(0, 60, n)
        self.goal = self._goals(n)

    def _goals(self, n):
        r = self.rng.uniform(0.4, 1.6, n)
        a = self.rng.uniform(-np.pi, np.pi, n)
        return np.stack([r * np.cos(a), r * np.sin(a)], -1).astype(np.float32)

    def tip(self):
        s = self.q.sum(-1)
        return np.stack([np.cos(self.q[:, 0]) + 0.8 * np.cos(s),
                         np.sin(self.q[:, 0]) + 0.8 * np.sin(s)], -1)

    def observe(self):
        return np.concatenate([np.sin(self.q), np.cos(self.q), self.dq,
                               self.goal, self.goal - self.tip()], -1).astype(np.float32)

    def step(self, action):
        self.dq = 0.9 * self.dq + 0.15 * self.torque[action]
        self.q = self.q + 0.2 * self.dq
        dist = np.linalg.norm(self.goal - self.tip(), axis=-1)
        self.age += 1
        done = (dist < 0.1) | (self.age >= 60)
        reward = (-0.1 * dist + (dist < 0.1)).astype(np.float32)
        nxt = self.observe()
        k = int(done.sum())
        if k:
            self.q[done] = self.rng.uniform(-np.pi, np.pi, (k, 2))
            self.dq[done] = 0
            self.goal[done] = self._goals(k)
            self.age[done] = 0
        return nxt, reward, done.astype(np.float32)


class Replay:
    def __init__(self, capacity, seed):
        self.s = np.zeros((capacity, OBS), np.float32)
        self.s2 = np.zeros((capacity, OBS), np.float32)
        self.a = np.zeros(capacity, np.int32)
        self.r = np.zeros(capacity, np.float32)
        self.d = np.zeros(capacity, np.float32)
        self.capacity, self.at, self.full = capacity, 0, 0
        self.rng = np.random.default_rng(seed)

    def add(self, s, a, r, s2, d):
        idx = (self.at + np.arange(len(a))) % self.capacity
        self.s[idx], self.a[idx], self.r[idx], self.s2[idx], self.d[idx] = s, a, r, s2, d
        self.at = int(idx[-1] + 1) % self.capacity
        self.full = min(self.capacity, self.full + len(a))

    def sample(self, n):
        i = self.rng.integers(0, self.full, n)
        return tuple(tf.constant(v[i]) for v in (self.s, self.a, self.r, self.s2, self.d))


def q_network():
    obs = keras.Input((OBS,))
    h = obs
    for _ in range(3):
        h = keras.layers.Dense(256)(h)
        h = keras.layers.LayerNormalization()(h)
        h = keras.layers.Activation("relu")(h)
    value = keras.layers.Dense(1)(h)
    adv = keras.layers.Dense(ACTIONS)(h)
    return keras.Model(obs, value + adv - keras.ops.mean(adv, axis=-1, keepdims=True))


class Learner:
    def __init__(self):
        self.online = q_network()
        self.opt = keras.optimizers.Adam(5e-4)
        self.opt.build(self.online.trainable_variables)
        self.target = keras.models.clone_model(self.online)
        self.target.set_weights(self.online.get_weights())
        self.updates = 0

    @tf.function(reduce_retracing=True)
    def _td_update(self, target, s, a, r, s2, d):
        best = tf.argmax(self.online(s2), axis=-1, output_type=tf.int32)
        follow = tf.gather(target(s2), best, batch_dims=1)
        goal = r + GAMMA * (1.0 - d) * follow
        with tf.GradientTape() as tape:
            q = tf.gather(self.online(s, training=True), a, batch_dims=1)
            err = goal - q
            loss = tf.reduce_mean(tf.where(tf.abs(err) < 1, 0.5 * err**2, tf.abs(err) - 0.5))
        grads = tape.gradient(loss, self.online.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 10.0)
        self.opt.apply_gradients(zip(grads, self.online.trainable_variables))
        return loss

    def renew_target(self):
        frozen = keras.models.clone_model(self.online)
        frozen.set_weights(self.online.get_weights())
        frozen.trainable = False
        self.target = frozen

    def update(self, batch):
        loss = self._td_update(self.target, *batch)
        self.updates += 1
        if self.updates % SYNC_EVERY == 0:
            self.renew_target()
        return loss

    @tf.function(input_signature=[tf.TensorSpec((N_ARMS, OBS), tf.float32)])
    def greedy(self, obs):
        return tf.argmax(self.online(obs), axis=-1, output_type=tf.int32)


def tick(arms, replay, learner, obs, eps, rng):
    action = learner.greedy(tf.constant(obs)).numpy()
    explore = rng.random(N_ARMS) < eps
    action = np.where(explore, rng.integers(0, ACTIONS, N_ARMS), action)
    nxt, reward, done = arms.step(action)
    replay.add(obs, action, reward, nxt, done)
    loss = learner.update(replay.sample(BATCH))
    return arms.observe(), reward, loss


def main():
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(0)
    arms, replay, learner = ReachArms(N_ARMS, 1), Replay(CAPACITY, 2), Learner()
    obs = arms.observe()
    total, losses = 0.0, []
    for t in range(WARMUP_TICKS + TICKS):
        if t == WARMUP_TICKS:
            start = time.perf_counter()
        obs, reward, loss = tick(arms, replay, learner, obs, max(0.1, 1 - t / 300), rng)
        total += float(reward.sum())
        if t % 100 == 0:
            losses.append(float(loss))
    elapsed = time.perf_counter() - start
    print("td loss", [round(v, 4) for v in losses], "return per arm", round(total / N_ARMS, 3))
    print(json.dumps({"samples": TICKS * BATCH, "seconds": round(elapsed, 3)}))


if __name__ == "__main__":
    main()
