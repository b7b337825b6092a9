"""Double DQN with prioritized replay on a small fleet of simulated pendulums."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

N_ENVS = 16
OBS_DIM = 3
N_ACTIONS = 5
CAPACITY = 2 ** 19
BATCH = 64
GAMMA = 0.98
ALPHA = 0.6
WARMUP = 40
TRAIN_STEPS = 450
TORQUES = np.linspace(-2.0, 2.0, N_ACTIONS).astype(np.float32)


class PendulumFleet:
    """Vectorised pendulum swing-up, one row per environment."""

    def __init__(self, n, rng):
        self.n = n
        self.rng = rng
        self.theta = rng.uniform(-np.pi, np.pi, n)
        self.speed = rng.uniform(-1.0, 1.0, n)

    def observe(self):
        return np.stack([np.cos(self.theta), np.sin(self.theta), self.speed / 8.0], axis=1).astype(np.float32)

    def step(self, actions):
        u = TORQUES[actions]
        wrapped = (self.theta + np.pi) % (2 * np.pi) - np.pi
        reward = -(wrapped ** 2 + 0.1 * self.speed ** 2 + 0.001 * u ** 2)
        self.speed = np.clip(self.speed + (15.0 * np.sin(self.theta) + 3.0 * u) * 0.05, -8.0, 8.0)
        self.theta = self.theta + self.speed * 0.05
        reset = self.rng.random(self.n) < 0.005
        self.theta[reset] = self.rng.uniform(-np.pi, np.pi, reset.sum())
        self.speed[reset] = 0.0
        return self.observe(), reward.astype(np.float32), reset.astype(np.float32)


class PrioritizedReplay:
    def __init__(self, capacity, alpha, rng):
        self.capacity = capacity
        self.alpha = alpha
        self.rng = rng
        self.obs = np.zeros((capacity, OBS_DIM), np.float32)
        self.next_obs = np.zeros((capacity, OBS_DIM), np.float32)
        self.actions = np.zeros(capacity, np.int32)
        self.rewards = np.zeros(capacity, np.float32)
        self.dones = np.zeros(capacity, np.float32)
        self.tree = np.zeros(2 * capacity, np.float64)
        self.max_priority = 1.0
        self.pos = 0
        self.size = 0

    def add(self, obs, actions, rewards, next_obs, dones):
        rows = (self.pos + np.arange(len(actions))) % self.capacity
        self.obs[rows] = obs
        self.actions[rows] = actions
        self.rewards[rows] = rewards
        self.next_obs[rows] = next_obs
        self.dones[rows] = dones
        self.write(rows, self.max_priority ** self.alpha)
        self.pos = (self.pos + len(actions)) % self.capacity
        self.size = min(self.size + len(actions), self.capacity)

    def write(self, rows, scaled):
        """Set leaves of the sum tree and refresh the sums above them."""
        nodes = rows + self.capacity
        self.tree[nodes] = scaled
        while nodes[0] > 1:
            nodes = nodes >> 1
            self.tree[nodes] = self.tree[2 * nodes] + self.tree[2 * nodes + 1]

    def sample(self, batch, beta):
        total = self.tree[1]
        mass = self.rng.random(batch) * total
        nodes = np.ones(batch, np.int64)
        while nodes[0] < self.capacity:
            left = 2 * nodes
            go_right = mass >= self.tree[left]
            mass = np.where(go_right, mass - self.tree[left], mass)
            nodes = left + go_right
        rows = nodes - self.capacity
        weights = (self.size * self.tree[nodes] / total) ** -beta
        weights = (weights / weights.max()).astype(np.float32)
        return rows, weights, (self.obs[rows], self.actions[rows], self.rewards[rows], self.next_obs[rows], self.dones[rows])

    def update(self, rows, td_errors):
        new = np.abs(td_errors) + 1e-3
        self.write(rows, new ** self.alpha)
        self.max_priority = max(self.max_priority, float(new.max()))


def make_q_network():
    return keras.Sequential([
        keras.Input((OBS_DIM,)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(N_ACTIONS),
    ])


def build_functions(online, target, optimizer):
    @tf.function
    def greedy(obs):
        return tf.argmax(online(obs), axis=1)

    @tf.function
    def learn(obs, actions, rewards, next_obs, dones, weights):
        best = tf.argmax(online(next_obs), axis=1)
        nxt = tf.gather(target(next_obs), best, axis=1, batch_dims=1)
        goal = rewards + GAMMA * (1.0 - dones) * nxt
        with tf.GradientTape() as tape:
            q = tf.gather(online(obs), actions, axis=1, batch_dims=1)
            td = goal - q
            loss = tf.reduce_mean(weights * tf.square(td))
        grads = tape.gradient(loss, online.trainable_variables)
        optimizer.apply_gradients(zip(grads, online.trainable_variables))
        return loss, td

    return greedy, learn


def prefill(replay, fleet, rng):
    obs = fleet.observe()
    while replay.size < replay.capacity:
        actions = rng.integers(0, N_ACTIONS, fleet.n)
        nxt, reward, done = fleet.step(actions)
        replay.add(obs, actions, reward, nxt, done)
        obs = nxt


def main():
    rng = np.random.default_rng(4)
    tf.random.set_seed(4)
    replay = PrioritizedReplay(CAPACITY, ALPHA, rng)
    prefill(replay, PendulumFleet(1024, rng), rng)

    fleet = PendulumFleet(N_ENVS, rng)
    online, target = make_q_network(), make_q_network()
    target.set_weights(online.get_weights())
    optimizer = keras.optimizers.Adam(5e-4)
    greedy, learn = build_functions(online, target, optimizer)

    obs = fleet.observe()
    start = None
    for step in range(WARMUP + TRAIN_STEPS):
        if step == WARMUP:
            start = time.perf_counter()
        actions = greedy(obs).numpy()
        explore = rng.random(N_ENVS) < 0.1
        actions[explore] = rng.integers(0, N_ACTIONS, explore.sum())
        nxt, reward, done = fleet.step(actions)
        replay.add(obs, actions, reward, nxt, done)
        obs = nxt

        beta = min(1.0, 0.4 + 0.6 * step / TRAIN_STEPS)
        rows, weights, batch = replay.sample(BATCH, beta)
        loss, td = learn(*batch, weights)
        replay.update(rows, td.numpy())
        if step % 200 == 0:
            target.set_weights(online.get_weights())
            print(f"step {step} loss {float(loss):.4f} reward {reward.mean():.3f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": TRAIN_STEPS * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
