"""DDPG with prioritised replay for a multi-echelon inventory problem.

One warehouse feeds six shops.  State: stock on hand, stock in transit and the
last seven days of demand per shop.  Action: order quantity per shop in [0, 1].
"""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

SHOPS = 6
STATE_DIM = SHOPS * 9
GAMMA, TAU = 0.98, 0.005
BATCH = 64
CAPACITY = 1 << 17


class InventoryEnv:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.base = self.rng.uniform(2.0, 9.0, SHOPS)
        self.reset()

    def reset(self):
        self.stock = np.full(SHOPS, 20.0)
        self.transit = np.zeros(SHOPS)
        self.history = np.tile(self.base[:, None], (1, 7))
        self.day = 0
        return self._obs()

    def _obs(self):
        return np.concatenate([self.stock / 20, self.transit / 20,
                               self.history.ravel() / 10]).astype(np.float32)

    def step(self, action):
        season = 1.0 + 0.4 * np.sin(2 * np.pi * self.day / 30)
        demand = self.rng.poisson(self.base * season)
        sold = np.minimum(demand, self.stock)
        self.stock = self.stock - sold + self.transit
        self.transit = np.clip(action, 0, 1) * 20
        reward = (3 * sold - 0.1 * self.stock - 0.5 * (demand - sold)).sum() / 50
        self.history = np.concatenate([self.history[:, 1:], demand[:, None]], axis=1)
        self.day += 1
        return self._obs(), reward, self.day >= 90


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6, beta=0.4, eps=1e-3, seed=1):
        self.capacity, self.alpha, self.beta, self.eps = capacity, alpha, beta, eps
        self.s = np.zeros((capacity, STATE_DIM), np.float32)
        self.a = np.zeros((capacity, SHOPS), np.float32)
        self.r = np.zeros(capacity, np.float32)
        self.s2 = np.zeros((capacity, STATE_DIM), np.float32)
        self.done = np.zeros(capacity, np.float32)
        self.priorities = np.zeros(capacity, np.float64)
        self.max_priority = 1.0
        self.pos, self.size = 0, 0
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.size

    def add(self, s, a, r, s2, done):
        i = self.pos
        self.s[i], self.a[i], self.r[i], self.s2[i], self.done[i] = s, a, r, s2, done
        self.priorities[i] = self.max_priority
        self.pos = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def load(self, columns):
        n = len(columns[0])
        for store, column in zip((self.s, self.a, self.r, self.s2, self.done), columns):
            store[:n] = column
        self.priorities[:n] = self.max_priority
        self.pos = self.size = n

    def sample(self, batch_size):
        scaled = self.priorities[:self.size] ** self.alpha
        probs = scaled / scaled.sum()
        idx = self.rng.choice(self.size, batch_size, p=probs)
        weights = (self.size * probs[idx]) ** -self.beta
        weights = (weights / weights.max()).astype(np.float32)
        return idx, weights, (self.s[idx], self.a[idx], self.r[idx], self.s2[idx], self.done[idx])

    def update(self, idx, td_errors):
        self.priorities[idx] = np.abs(td_errors) + self.eps
        self.max_priority = max(self.max_priority, self.priorities[idx].max())


def mlp(n_in, n_out, activation, name):
    return keras.Sequential([
        keras.Input((n_in,)),
        keras.layers.Dense(192, activation="relu"),
        keras.layers.Dense(192, activation="relu"),
        keras.layers.Dense(n_out, activation=activation),
    ], name=name)


class DDPG:
    def __init__(self):
        self.actor = mlp(STATE_DIM, SHOPS, "sigmoid", "actor")
        self.critic = mlp(STATE_DIM + SHOPS, 1, None, "critic")
        self.target_actor = keras.models.clone_model(self.actor)
        self.target_critic = keras.models.clone_model(self.critic)
        self.target_actor.set_weights(self.actor.get_weights())
        self.target_critic.set_weights(self.critic.get_weights())
        self.actor_opt = keras.optimizers.Adam(1e-4)
        self.critic_opt = keras.optimizers.Adam(1e-3)

    @tf.function(reduce_retracing=True)
    def act(self, state):
        return self.actor(state[None])[0]

    @tf.function
    def learn(self, s, a, r, s2, done, w):
        next_q = self.target_critic(tf.concat([s2, self.target_actor(s2)], 1))[:, 0]
        target = r + GAMMA * (1.0 - done) * next_q
        with tf.GradientTape() as tape:
            td = target - self.critic(tf.concat([s, a], 1))[:, 0]
            critic_loss = tf.reduce_mean(w * tf.square(td))
        grads = tape.gradient(critic_loss, self.critic.trainable_variables)
        self.critic_opt.apply_gradients(zip(grads, self.critic.trainable_variables))
        with tf.GradientTape() as tape:
            q = self.critic(tf.concat([s, self.actor(s)], 1))
            actor_loss = -tf.reduce_mean(q)
        grads = tape.gradient(actor_loss, self.actor.trainable_variables)
        self.actor_opt.apply_gradients(zip(grads, self.actor.trainable_variables))
        return td

    def update_targets(self):
        for net, target in ((self.actor, self.target_actor), (self.critic, self.target_critic)):
            blended = [TAU * w + (1 - TAU) * tw
                       for w, tw in zip(net.get_weights(), target.get_weights())]
            target.set_weights(blended)


def logged_transitions(base, n_episodes, days=90, seed=5):
    """History of the rule-based ordering policy (with noise), all regions side by side."""
    rng = np.random.default_rng(seed)
    stock = np.full((n_episodes, SHOPS), 20.0)
    transit = np.zeros_like(stock)
    history = np.repeat(np.tile(base[:, None], (1, 7))[None], n_episodes, axis=0)

    def obs():
        return np.concatenate([stock / 20, transit / 20,
                               history.reshape(n_episodes, -1) / 10], axis=1).astype(np.float32)

    state, rows = obs(), []
    for day in range(days):
        action = rng.uniform(0, 1, stock.shape)
        demand = rng.poisson(base * (1.0 + 0.4 * np.sin(2 * np.pi * day / 30)), stock.shape)
        sold = np.minimum(demand, stock)
        stock = stock - sold + transit
        transit = action * 20
        reward = (3 * sold - 0.1 * stock - 0.5 * (demand - sold)).sum(axis=1) / 50
        history = np.concatenate([history[:, :, 1:], demand[:, :, None]], axis=2)
        nxt = obs()
        rows.append((state, action, reward, nxt, np.full(n_episodes, float(day == days - 1))))
        state = nxt
    return [np.concatenate(column) for column in zip(*rows)]


def train(agent, env, buffer, steps, noise=0.1):
    rng = np.random.default_rng(9)
    state, returns, total = env.reset(), [], 0.0
    for _ in range(steps):
        action = agent.act(state).numpy() + noise * rng.normal(size=SHOPS)
        nxt, reward, done = env.step(action)
        buffer.add(state, np.clip(action, 0, 1), reward, nxt, float(done))
        total += reward
        state = nxt
        if done:
            returns.append(total)
            state, total = env.reset(), 0.0
        idx, weights, batch = buffer.sample(BATCH)
        td = agent.learn(*batch, weights)
        buffer.update(idx, td.numpy())
        agent.update_targets()
    return returns


def main():
    keras.utils.set_random_seed(2)
    env, buffer, agent = InventoryEnv(), PrioritizedReplay(CAPACITY), DDPG()
    buffer.load(logged_transitions(env.base, 1400))
    train(agent, env, buffer, 20)
    steps = 540
    t0 = time.perf_counter()
    returns = train(agent, env, buffer, steps)
    seconds = time.perf_counter() - t0
    print("episode returns", np.round(returns, 2).tolist())
    print(json.dumps({"samples": steps, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
