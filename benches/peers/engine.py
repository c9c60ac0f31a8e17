"""The two training steps of `bench_engine.rs` in PyTorch, for comparison.

    python benches/peers/engine.py [--mode eager|fused|compile] [--seconds 0.5] [--repetitions 7]

Needs `torch` (CPU). Prints the median of rows a second for each number of features, stage and thread count; batches are
gathered in shuffled order, as the engine's are. `compare.py` runs it beside the engine.
"""

import argparse
import statistics
import time

import torch
from torch import nn

BATCH, N_ROWS, N_POLICIES, N_ATOMS, N_CONTEXTS, WIDTH = 512, 512 * 40, 200, 192, 24, 32


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in zip(widths, widths[1:]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class OutcomeModel(nn.Module):
    """Stage 1: m(x), squared loss."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.m = mlp(n_features, 256, 128, 1)

    def forward(self, x, y, policy, baseline):
        return ((self.m(x).squeeze(1) - y) ** 2).mean()


class UpliftModel(nn.Module):
    """Stage 2: m + g(x)·(h(t) − e_h), h = ρ(αφ), with the exact centre and its gradient."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.g = mlp(n_features, 256, 128, WIDTH)
        self.phi = nn.Parameter(torch.randn(N_ATOMS, WIDTH) * 0.1)
        self.rho = mlp(WIDTH, 64, WIDTH)
        alpha = torch.zeros(N_POLICIES, N_ATOMS)
        for t in range(N_POLICIES):
            for s in range(N_CONTEXTS):
                alpha[t, s * 8 + (t * 7 + s * 3) % 8] = 1 / N_CONTEXTS
        self.register_buffer("alpha", alpha)

    def forward(self, x, y, policy, baseline):
        h = self.rho(self.alpha @ self.phi)
        h = (h - h.mean(0))[policy]
        return ((baseline + (self.g(x) * h).sum(1) - y) ** 2).mean()


def rows_per_second(mode: str, n_features: int, stage: int, seconds: float, repetitions: int) -> float:
    torch.manual_seed(1)
    x = torch.randn(N_ROWS, n_features)
    y = x[:, :4].sum(1) + torch.randn(N_ROWS)
    policy, baseline = torch.randint(0, N_POLICIES, (N_ROWS,)), torch.randn(N_ROWS)
    order = torch.randperm(N_ROWS).split(BATCH)
    model = (OutcomeModel if stage == 1 else UpliftModel)(n_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=None if mode == "eager" else True)
    loss_of = torch.compile(model) if mode == "compile" else model

    def step(number: int) -> None:
        rows = order[number % len(order)]
        optimizer.zero_grad(set_to_none=True)
        loss_of(x[rows], y[rows], policy[rows], baseline[rows]).backward()
        optimizer.step()

    for number in range(30):
        step(number)
    rates = []
    for _ in range(repetitions):
        start, n_steps = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            step(n_steps)
            n_steps += 1
        rates.append(n_steps * BATCH / (time.perf_counter() - start))
    return statistics.median(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["eager", "fused", "compile"], default="eager")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    print(f"torch {torch.__version__} {args.mode}")
    print(f"{'p':>5} {'stage':>5} {'threads':>7} {'rows/s':>12}")
    for n_features in (723, 100):
        for stage in (1, 2):
            for n_threads in (1, 2):
                torch.set_num_threads(n_threads)
                rate = rows_per_second(args.mode, n_features, stage, args.seconds, args.repetitions)
                print(f"{n_features:>5} {stage:>5} {n_threads:>7} {rate:>12.0f}", flush=True)


if __name__ == "__main__":
    main()
