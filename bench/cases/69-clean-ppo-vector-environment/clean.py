"""PPO on 128 cart-poles at once: the environment is vectorised, the update runs every 24 steps."""
import json
import time

import numpy as np
import tensorflow as tf

CARTS, HORIZON = 128, 24


class CartPoles:
    """The classic equations for many carts."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.uniform(-0.05, 0.05, (CARTS, 4))

    def step(self, action):
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        c, s = np.cos(angle), np.sin(angle)
        temp = (force + 0.05 * spin**2 * s) / 1.1
        twist = (9.8 * s - c * temp) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
        self.state = self.state + 0.02 * np.stack([v, temp - 0.05 * twist * c / 1.1, spin, twist], 1)
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        self.state[done] = self.rng.uniform(-0.05, 0.05, (done.sum(), 4))
        return self.state.astype("float32"), np.where(done, 0.0, 1.0).astype("float32"), done


class Agent:
    def __init__(self):
        inputs = tf.keras.Input((4,))
        body = inputs
        for _ in range(2):
            body = tf.keras.layers.Dense(256, activation="tanh")(body)
        self.net = tf.keras.Model(inputs, [tf.keras.layers.Dense(2)(body), tf.keras.layers.Dense(1)(body)])
        self.optimizer = tf.keras.optimizers.Adam(3e-4)

    @tf.function
    def act(self, state):
        logits, value = self.net(state)
        action = tf.random.categorical(logits, 1)[:, 0]
        return action, tf.gather(tf.nn.log_softmax(logits), action, batch_dims=1), value[:, 0]

    @tf.function
    def update(self, state, action, old, advantage, target):
        rows = tf.shape(state)[0]
        for _ in tf.range(6):
            order = tf.reshape(tf.random.shuffle(tf.range(rows)), (4, -1))
            for part in tf.range(4):
                i = order[part]
                with tf.GradientTape() as tape:
                    logits, value = self.net(tf.gather(state, i), training=True)
                    log = tf.gather(tf.nn.log_softmax(logits), tf.gather(action, i), batch_dims=1)
                    ratio = tf.exp(log - tf.gather(old, i))
                    gain = tf.gather(advantage, i)
                    clipped = tf.minimum(ratio * gain, tf.clip_by_value(ratio, 0.8, 1.2) * gain)
                    loss = tf.reduce_mean(tf.square(value[:, 0] - tf.gather(target, i))) - tf.reduce_mean(clipped)
                weights = self.net.trainable_variables
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))


def collect(agent, carts, state):
    rows = []
    for _ in range(HORIZON):
        action, log, value = (t.numpy() for t in agent.act(tf.constant(state)))
        following, reward, done = carts.step(action)
        rows.append((state, action, log, value, reward, done))
        state = following
    states, actions, logs, values, rewards, dones = (np.stack(column) for column in zip(*rows))
    target = np.zeros_like(rewards)
    ahead = agent.act(tf.constant(state))[2].numpy()
    for t in reversed(range(HORIZON)):
        ahead = rewards[t] + 0.98 * ahead * ~dones[t]
        target[t] = ahead
    advantage = target - values
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    flat = [a.reshape(-1, *a.shape[2:]) for a in (states, actions, logs, advantage, target)]
    return state, [tf.constant(a) for a in flat], rewards.mean()


def main():
    tf.keras.utils.set_random_seed(69)
    agent, carts = Agent(), CartPoles(69)
    state, rollout, _ = collect(agent, carts, carts.state.astype("float32"))
    agent.update(*rollout)
    start = time.perf_counter()
    for number in range(45):
        state, rollout, alive = collect(agent, carts, state)
        agent.update(*rollout)
        if number % 15 == 0:
            print(f"update {number}: {alive:.3f} alive")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": 45 * CARTS * HORIZON, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
