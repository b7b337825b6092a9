"""Calibrate a stochastic-volatility model to a strip of option quotes by gradient descent through the simulation."""
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

PATHS = 4096
DATES = 52
HORIZON = 1.0
SPOT = 100.0
RATE = 0.02
UPDATES = 60
TRUTH = {"level": -3.1, "pull": 1.6, "noise": 0.55, "lean": -0.5}
STRIKES = np.array([80.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0], dtype=np.float32)


def unpack(free):
    """Free parameters live on the whole line, the model wants bounded ones."""
    return {
        "level": free["level"],
        "pull": jax.nn.softplus(free["pull"]),
        "noise": jax.nn.softplus(free["noise"]),
        "lean": jnp.tanh(free["lean"]),
    }


def pack(values):
    inverse = lambda v: float(np.log(np.expm1(v)))
    return {
        "level": jnp.float32(values["level"]),
        "pull": jnp.float32(inverse(values["pull"])),
        "noise": jnp.float32(inverse(values["noise"])),
        "lean": jnp.float32(np.arctanh(values["lean"])),
    }


def move(state, model):
    price, logvar, key = state
    key, sub = jax.random.split(key)
    draws = jax.random.normal(sub, (2, PATHS // 2))
    first = jnp.concatenate([draws[0], -draws[0]])
    second = jnp.concatenate([draws[1], -draws[1]])
    gap = HORIZON / DATES
    root = jnp.sqrt(gap)
    vol = jnp.exp(0.5 * logvar)
    price = price + (RATE - 0.5 * vol ** 2) * gap + vol * root * first
    shock = model["lean"] * first + jnp.sqrt(1.0 - model["lean"] ** 2) * second
    logvar = logvar + model["pull"] * (model["level"] - logvar) * gap + model["noise"] * root * shock
    return price, jnp.clip(logvar, -9.0, 1.0), key


def simulate(model, key):
    price = jnp.full((PATHS,), jnp.log(SPOT))
    logvar = jnp.full((PATHS,), model["level"])
    state = (price, logvar, key)
    for _ in range(DATES):
        state = move(state, model)
    return jnp.exp(state[0])


def quotes(free, key):
    final = simulate(unpack(free), key)
    payoff = jnp.maximum(final[None, :] - STRIKES[:, None], 0.0)
    return jnp.exp(-RATE * HORIZON) * payoff.mean(axis=1)


def make_update(optimizer):
    def misfit(free, key, market, weight):
        gap = (quotes(free, key) - market) * weight
        return jnp.mean(gap ** 2)

    @jax.jit
    def update(free, opt_state, key, market, weight):
        value, grads = jax.value_and_grad(misfit)(free, key, market, weight)
        change, opt_state = optimizer.update(grads, opt_state, free)
        return optax.apply_updates(free, change), opt_state, value

    return update


def black_vega_weights():
    """Weights from a flat volatility, so that the wings count as much as the middle."""
    flat = 0.22
    d1 = (np.log(SPOT / STRIKES) + (RATE + 0.5 * flat ** 2) * HORIZON) / (flat * np.sqrt(HORIZON))
    vega = SPOT * np.exp(-0.5 * d1 ** 2) / np.sqrt(2 * np.pi) * np.sqrt(HORIZON)
    weight = 10.0 / np.maximum(vega, 1.0)
    return (weight / weight.mean()).astype(np.float32)


def market_quotes(rng):
    """Quotes of the day: a plain numpy simulation under the hidden parameters plus a small spread."""
    n, steps = 20000, 52
    gap = HORIZON / steps
    price, logvar = np.full(n, np.log(SPOT)), np.full(n, TRUTH["level"])
    for _ in range(steps):
        first, second = rng.normal(size=(2, n))
        vol = np.exp(0.5 * logvar)
        price = price + (RATE - 0.5 * vol ** 2) * gap + vol * np.sqrt(gap) * first
        shock = TRUTH["lean"] * first + np.sqrt(1 - TRUTH["lean"] ** 2) * second
        logvar = logvar + TRUTH["pull"] * (TRUTH["level"] - logvar) * gap + TRUTH["noise"] * np.sqrt(gap) * shock
    payoff = np.maximum(np.exp(price)[None, :] - STRIKES[:, None], 0.0).mean(axis=1)
    clean = np.exp(-RATE * HORIZON) * payoff
    return (clean * (1 + rng.normal(scale=0.002, size=clean.shape))).astype(np.float32)


def report(number, value, free):
    model = {name: round(float(v), 3) for name, v in unpack(free).items()}
    print(f"update {number:3d}  misfit {float(value):9.5f}  {model}")


def main():
    begin = time.perf_counter()
    market = jnp.asarray(market_quotes(np.random.default_rng(11)))
    weight = jnp.asarray(black_vega_weights())
    free = pack({"level": -2.2, "pull": 1.0, "noise": 0.3, "lean": -0.1})
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.05))
    opt_state = optimizer.init(free)
    update = make_update(optimizer)

    key = jax.random.key(5)
    best, best_value = free, float("inf")
    for number in range(1, UPDATES + 1):
        key, sub = jax.random.split(key)
        free, opt_state, value = update(free, opt_state, sub, market, weight)
        current = float(value)
        if current < best_value:
            best, best_value = free, current
        if number % 15 == 0:
            report(number, value, free)

    final = np.asarray(jax.jit(quotes)(best, jax.random.key(99)))
    for strike, asked, got in zip(STRIKES, np.asarray(market), final):
        print(f"strike {strike:6.1f}  market {asked:7.3f}  model {got:7.3f}")
    wall = time.perf_counter() - begin
    print(json.dumps({"units": 1, "seconds": round(wall, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
