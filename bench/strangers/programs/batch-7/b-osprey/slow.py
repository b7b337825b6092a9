"""DQN on a small pixel game: environment in NumPy, replay memory and learner in JAX."""
import json
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

CONFIG = {
    "frame": 32,
    "stack": 2,
    "actions": 4,
    "capacity": 12_000,
    "prefill": 256,
    "steps": 800,
    "warmup": 20,
    "batch": 32,
    "gamma": 0.99,
    "lr": 2.5e-4,
    "target_every": 100,
    "log_every": 100,
    "eps_from": 1.0,
    "eps_to": 0.05,
}


class Catch:
    """A ball falls, a paddle catches it."""

    def __init__(self, frame, stack, seed=0):
        self.frame, self.stack = frame, stack
        self.rng = np.random.default_rng(seed)
        self.history = np.zeros((frame, frame, stack), np.uint8)
        self.reset()

    def reset(self):
        self.ball = [0, int(self.rng.integers(2, self.frame - 2))]
        self.drift = int(self.rng.integers(-1, 2))
        self.paddle = self.frame // 2
        self.history[:] = 0
        return self.draw()

    def draw(self):
        image = np.zeros((self.frame, self.frame), np.uint8)
        image[self.ball[0], self.ball[1]] = 255
        image[-1, max(0, self.paddle - 2):self.paddle + 3] = 160
        self.history = np.concatenate([self.history[..., 1:], image[..., None]], axis=-1)
        return self.history

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + (0, -2, 2, 0)[action], 2, self.frame - 3))
        self.ball[0] += 1
        self.ball[1] = int(np.clip(self.ball[1] + self.drift, 0, self.frame - 1))
        over = self.ball[0] == self.frame - 1
        reward = 0.0
        if over:
            reward = 1.0 if abs(self.ball[1] - self.paddle) <= 2 else -1.0
        return self.draw(), reward, over


class QNetwork(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, x):
        x = x.astype(jnp.float32) / 255.0
        x = nn.relu(nn.Conv(16, (4, 4), strides=(2, 2))(x))
        x = nn.relu(nn.Conv(32, (3, 3), strides=(2, 2))(x))
        x = nn.relu(nn.Dense(128)(x.reshape((x.shape[0], -1))))
        return nn.Dense(self.actions)(x)


def make_memory(cfg):
    shape = (cfg["capacity"], cfg["frame"], cfg["frame"], cfg["stack"])
    return {
        "obs": jnp.zeros(shape, jnp.uint8),
        "next_obs": jnp.zeros(shape, jnp.uint8),
        "action": jnp.zeros(cfg["capacity"], jnp.int32),
        "reward": jnp.zeros(cfg["capacity"], jnp.float32),
        "done": jnp.zeros(cfg["capacity"], jnp.float32),
    }


def remember(memory, item, cursor):
    return jax.tree_util.tree_map(lambda store, value: store.at[cursor].set(value), memory, item)


@jax.jit
def sample(memory, indices):
    return jax.tree_util.tree_map(lambda store: store[indices], memory)


def make_learner(network, tx, gamma):
    @jax.jit
    def act(params, obs):
        return jnp.argmax(network.apply(params, obs[None])[0])

    @jax.jit
    def learn(params, target, opt_state, batch):
        def loss_fn(p):
            q = network.apply(p, batch["obs"])
            chosen = jnp.take_along_axis(q, batch["action"][:, None], axis=1)[:, 0]
            best = network.apply(target, batch["next_obs"]).max(axis=1)
            goal = batch["reward"] + gamma * (1.0 - batch["done"]) * best
            return optax.huber_loss(chosen, jax.lax.stop_gradient(goal)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return act, learn


def epsilon(step, cfg):
    part = min(1.0, step / (0.6 * cfg["steps"]))
    return cfg["eps_from"] + part * (cfg["eps_to"] - cfg["eps_from"])


def play(env, obs, action):
    following, reward, over = env.step(action)
    item = {"obs": obs, "next_obs": following, "action": action, "reward": reward, "done": float(over)}
    return item, (env.reset() if over else following), reward, over


def train(cfg):
    rng = np.random.default_rng(0)
    env = Catch(cfg["frame"], cfg["stack"])
    network = QNetwork(cfg["actions"])
    obs = env.reset()
    params = network.init(jax.random.PRNGKey(0), jnp.asarray(obs)[None])
    target = params
    tx = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(cfg["lr"]))
    opt_state = tx.init(params)
    act, learn = make_learner(network, tx, cfg["gamma"])
    memory, cursor, filled = make_memory(cfg), 0, 0
    for _ in range(cfg["prefill"]):
        item, obs, _, _ = play(env, obs, int(rng.integers(cfg["actions"])))
        memory = remember(memory, item, cursor)
        cursor = (cursor + 1) % cfg["capacity"]
        filled = min(filled + 1, cfg["capacity"])
    rewards, losses, started = [], [], None
    for step in range(cfg["steps"]):
        if step == cfg["warmup"]:
            started = time.perf_counter()
        if rng.random() < epsilon(step, cfg):
            action = int(rng.integers(cfg["actions"]))
        else:
            action = int(act(params, obs))
        item, obs, reward, over = play(env, obs, action)
        memory = remember(memory, item, cursor)
        cursor = (cursor + 1) % cfg["capacity"]
        filled = min(filled + 1, cfg["capacity"])
        batch = sample(memory, rng.integers(0, filled, cfg["batch"]))
        params, opt_state, loss = learn(params, target, opt_state, batch)
        losses.append(float(loss))
        if over:
            rewards.append(reward)
        if (step + 1) % cfg["target_every"] == 0:
            target = params
        if (step + 1) % cfg["log_every"] == 0:
            mean = float(np.mean(rewards[-20:])) if rewards else 0.0
            print(f"step {step + 1} loss {np.mean(losses[-100:]):.5f} reward {mean:+.2f} eps {epsilon(step, cfg):.2f}")
    jax.block_until_ready(params)
    return cfg["steps"] - cfg["warmup"], time.perf_counter() - started


def main():
    begun = time.perf_counter()
    units, seconds = train(dict(CONFIG))
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
