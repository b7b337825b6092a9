"""Independent double DQN for a pair of predators on a toroidal grid (pursuit), with one prioritised buffer each."""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

GRID = 9
N_GAMES = 64
N_AGENTS = 2
OBS_DIM = 4 * N_AGENTS + 4
N_ACTIONS = 5
MOVES = np.array([[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]])
CAPACITY = 65536
BATCH = 128
GAMMA = 0.97


class Pursuit:
    """All games advance together; a game restarts when the prey is caught."""

    def __init__(self, games, rng):
        self.rng = rng
        self.games = games
        self.predators = rng.integers(0, GRID, (games, N_AGENTS, 2))
        self.prey = rng.integers(0, GRID, (games, 2))

    def observe(self):
        prey = self.prey[:, None, :]
        rel = (self.predators - prey + GRID // 2) % GRID - GRID // 2
        angle = self.predators * (2 * np.pi / GRID)
        views = []
        for agent in range(N_AGENTS):
            order = [agent] + [i for i in range(N_AGENTS) if i != agent]
            own = angle[:, order].reshape(self.games, -1)
            flat = rel[:, order].reshape(self.games, -1) / GRID
            prey_angle = self.prey * (2 * np.pi / GRID)
            views.append(np.concatenate([np.cos(own), flat, np.cos(prey_angle), np.sin(prey_angle)], axis=1))
        return np.stack(views, axis=1).astype(np.float32)

    def step(self, actions):
        self.predators = (self.predators + MOVES[actions]) % GRID
        self.prey = (self.prey + MOVES[self.rng.integers(0, N_ACTIONS, self.games)]) % GRID
        gap = np.abs((self.predators - self.prey[:, None] + GRID // 2) % GRID - GRID // 2).sum(-1)
        caught = (gap <= 1).all(axis=1)
        reward = np.where(caught[:, None], 1.0, -0.01 * gap).astype(np.float32)
        k = int(caught.sum())
        if k:
            self.predators[caught] = self.rng.integers(0, GRID, (k, N_AGENTS, 2))
            self.prey[caught] = self.rng.integers(0, GRID, (k, 2))
        return reward, caught


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6, eps=1e-3):
        self.capacity = capacity
        self.alpha = alpha
        self.eps = eps
        self.obs = np.zeros((capacity, OBS_DIM), np.float32)
        self.next_obs = np.zeros((capacity, OBS_DIM), np.float32)
        self.actions = np.zeros(capacity, np.int32)
        self.rewards = np.zeros(capacity, np.float32)
        self.dones = np.zeros(capacity, np.float32)
        self.tree = np.zeros(2 * capacity)
        self.levels = int(np.log2(capacity))
        self.count = 0
        self.max_priority = 1.0
        self.pos = 0

    def __len__(self):
        return self.count

    def _set(self, idx, priority):
        node = np.asarray(idx) + self.capacity
        self.tree[node] = priority ** self.alpha
        node = np.unique(node // 2)
        for _ in range(self.levels):
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]
            node = np.unique(node // 2)

    def add_many(self, obs, actions, rewards, next_obs, dones):
        idx = (self.pos + np.arange(len(actions))) % self.capacity
        self.obs[idx] = obs
        self.next_obs[idx] = next_obs
        self.actions[idx] = actions
        self.rewards[idx] = rewards
        self.dones[idx] = dones
        self._set(idx, self.max_priority)
        self.pos = (self.pos + len(actions)) % self.capacity
        self.count = min(self.count + len(actions), self.capacity)

    def sample(self, batch, beta, rng):
        mass = rng.random(batch) * self.tree[1]
        node = np.ones(batch, np.int64)
        for _ in range(self.levels):
            left = self.tree[2 * node]
            right = mass >= left
            mass = np.where(right, mass - left, mass)
            node = 2 * node + right
        idx = np.minimum(node - self.capacity, self.count - 1)
        probs = self.tree[idx + self.capacity] / self.tree[1]
        weights = (self.count * probs) ** -beta
        weights = (weights / weights.max()).astype(np.float32)
        return idx, weights, (self.obs[idx], self.actions[idx], self.rewards[idx], self.next_obs[idx], self.dones[idx])

    def update(self, idx, td):
        td = np.abs(td) + self.eps
        self._set(idx, td)
        self.max_priority = max(self.max_priority, float(td.max()))


def q_network():
    inputs = keras.Input((OBS_DIM,))
    x = keras.layers.Dense(128, activation="relu")(inputs)
    x = keras.layers.Dense(128, activation="relu")(x)
    value = keras.layers.Dense(1)(x)
    adv = keras.layers.Dense(N_ACTIONS)(x)
    return keras.Model(inputs, value + adv - keras.ops.mean(adv, axis=-1, keepdims=True))


class Agent:
    def __init__(self):
        self.online = q_network()
        self.target = q_network()
        self.target.set_weights(self.online.get_weights())
        self.optimizer = keras.optimizers.Adam(3e-4)
        self.optimizer.build(self.online.trainable_variables)
        self.replay = PrioritizedReplay(CAPACITY)

    @tf.function(reduce_retracing=True)
    def act(self, obs):
        return tf.argmax(self.online(obs), axis=-1)

    @tf.function
    def learn(self, obs, actions, rewards, next_obs, dones, weights):
        best = tf.argmax(self.online(next_obs), axis=-1)
        future = tf.gather(self.target(next_obs), best, axis=1, batch_dims=1)
        goal = rewards + GAMMA * (1.0 - dones) * future
        with tf.GradientTape() as tape:
            q = tf.gather(self.online(obs), actions, axis=1, batch_dims=1)
            td = tf.stop_gradient(goal) - q
            loss = tf.reduce_mean(weights * tf.square(td))
        grads = tape.gradient(loss, self.online.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.online.trainable_variables))
        return td

    def sync(self):
        for dst, src in zip(self.target.variables, self.online.variables):
            dst.assign(src)


def play(env, agents, obs, epsilon, rng):
    actions = np.stack([a.act(tf.constant(obs[:, i])).numpy() for i, a in enumerate(agents)], axis=1)
    explore = rng.random(actions.shape) < epsilon
    actions = np.where(explore, rng.integers(0, N_ACTIONS, actions.shape), actions)
    rewards, caught = env.step(actions)
    next_obs = env.observe()
    for i, agent in enumerate(agents):
        agent.replay.add_many(obs[:, i], actions[:, i], rewards[:, i], next_obs[:, i], caught.astype(np.float32))
    return next_obs, int(caught.sum())


def train_round(agents, beta, rng):
    for agent in agents:
        idx, weights, (obs, actions, rewards, next_obs, dones) = agent.replay.sample(BATCH, beta, rng)
        td = agent.learn(obs, actions, rewards, next_obs, dones, weights)
        agent.replay.update(idx, td.numpy())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=240)
    args = parser.parse_args()
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    env = Pursuit(N_GAMES, rng)
    agents = [Agent() for _ in range(N_AGENTS)]
    obs = env.observe()
    while len(agents[0].replay) < CAPACITY - N_GAMES * 250:
        obs, _ = play(env, agents, obs, 1.0, rng)
    for _ in range(10):
        train_round(agents, 0.4, rng)

    catches = 0
    start = time.perf_counter()
    for r in range(args.rounds):
        frac = r / args.rounds
        obs, caught = play(env, agents, obs, 1.0 - 0.95 * frac, rng)
        catches += caught
        train_round(agents, 0.4 + 0.6 * frac, rng)
        if r % 80 == 79:
            for agent in agents:
                agent.sync()
            print(f"round {r + 1}: catches {catches}", flush=True)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.rounds * N_AGENTS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
