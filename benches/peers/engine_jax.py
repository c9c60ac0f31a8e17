"""The two training steps of `bench_engine.rs` in JAX, jitted, for comparison.

    python benches/peers/engine_jax.py --threads 2 [--seconds 0.5] [--repetitions 7]

Needs `jax` (CPU). The number of threads is fixed when JAX starts, so a run has one. Prints rows a second for each number
of features and stage; batches are gathered in shuffled order, as the engine's are. `compare.py` runs it.
"""

import argparse
import os
import statistics
import time

BATCH, N_ROWS, N_POLICIES, N_ATOMS, N_CONTEXTS, WIDTH = 512, 512 * 40, 200, 192, 24, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    # JAX sizes its pool by the cores that it may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    import jax

    print(f"jax {jax.__version__}")
    for n_features in (723, 100):
        for stage in (1, 2):
            rate = rows_per_second(n_features, stage, arguments.seconds, arguments.repetitions)
            print(f"{n_features:>5} {stage:>5} {arguments.threads:>7} {rate:>12.0f}", flush=True)


def rows_per_second(n_features: int, stage: int, seconds: float, repetitions: int) -> float:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.normal(size=(N_ROWS, n_features)).astype(np.float32)
    y = (x[:, :4].sum(1) + rng.normal(size=N_ROWS)).astype(np.float32)
    policy, baseline = rng.integers(0, N_POLICIES, N_ROWS), rng.normal(size=N_ROWS).astype(np.float32)
    alpha = np.zeros((N_POLICIES, N_ATOMS), np.float32)
    for t in range(N_POLICIES):
        for s in range(N_CONTEXTS):
            alpha[t, s * 8 + (t * 7 + s * 3) % 8] = 1 / N_CONTEXTS

    def net(*widths):
        return [(jnp.asarray(rng.normal(size=pair) / pair[0] ** 0.5, jnp.float32), jnp.zeros(pair[1]))
                for pair in zip(widths, widths[1:])]

    def forward(layers, x):
        for weight, bias in layers[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = layers[-1]
        return x @ weight + bias

    def outcome_loss(weights, x, y, policy, baseline):
        return ((forward(weights["m"], x)[:, 0] - y) ** 2).mean()

    def uplift_loss(weights, x, y, policy, baseline):
        h = forward(weights["rho"], alpha @ weights["phi"])
        h = (h - h.mean(0))[policy]
        return ((baseline + (forward(weights["g"], x) * h).sum(1) - y) ** 2).mean()

    if stage == 1:
        loss, weights = outcome_loss, {"m": net(n_features, 256, 128, 1)}
    else:
        phi = jnp.asarray(rng.normal(size=(N_ATOMS, WIDTH)) * 0.1, jnp.float32)
        loss, weights = uplift_loss, {"g": net(n_features, 256, 128, WIDTH), "phi": phi, "rho": net(WIDTH, 64, WIDTH)}

    def step(weights, first, second, number, x, y, policy, baseline):
        """One step of Adam."""
        gradient = jax.grad(loss)(weights, x, y, policy, baseline)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        rate = 1e-4 * (1 - 0.999**number) ** 0.5 / (1 - 0.9**number)
        weights = jax.tree.map(lambda w, m, v: w - rate * m / (v**0.5 + 1e-8), weights, first, second)
        return weights, first, second, number + 1

    step = jax.jit(step, donate_argnums=(0, 1, 2))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, zeros, jax.tree.map(jnp.zeros_like, weights), jnp.float32(1))
    order = np.split(rng.permutation(N_ROWS), N_ROWS // BATCH)

    def run(state, number):
        rows = order[number % len(order)]
        return step(*state, x[rows], y[rows], policy[rows], baseline[rows])

    for number in range(30):
        state = run(state, number)
    rates = []
    for _ in range(repetitions):
        start, n_steps = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            state = run(state, n_steps)
            n_steps += 1
        jax.block_until_ready(state)
        rates.append(n_steps * BATCH / (time.perf_counter() - start))
    return statistics.median(rates)


if __name__ == "__main__":
    main()
