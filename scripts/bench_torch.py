#!/usr/bin/python3
"""bench_torch.py [STEPS [THREADS]] -- the published network in PyTorch, random data: samples/s.

The counterpart of tests/bench/bench_train.c: transformer encoder of 11 layers (width 164, 4 heads,
feed-forward 2048, dropout 0.1, post-norm), flattened head, decoder, batch norm, Adam,
1000 * MSE + MAPE, 600 programs of 5 leaves. Needs python3-torch.
"""
import sys
import time

import torch
from torch import nn

BATCH, LEAVES, WIDTH = 600, 5, 164


def stack(sizes, first_linear=False):
    """Linear + BN + ReLU each; the first without ReLU when asked."""
    mods = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        mods += [nn.Linear(a, b), nn.BatchNorm1d(b)]
        if not (first_linear and i == 0):
            mods.append(nn.ReLU())
    return mods


def network():
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 2048, 0.1, batch_first=True)
    return nn.Sequential(
        nn.TransformerEncoder(layer, 11), nn.Flatten(),
        *stack([WIDTH * LEAVES, 716, 985, 985, 985, 69], True),
        *stack([69, 930, 930, 930]), nn.Linear(930, 1))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    net = network().train()
    opt = torch.optim.Adam(net.parameters(), 1.67657e-5, weight_decay=1.30707e-3)
    x = torch.rand(BATCH, LEAVES, WIDTH)
    y = torch.randn(BATCH, 1)
    times, cpu = [], []
    for _ in range(steps + 1):
        t, c = time.perf_counter(), time.process_time()
        opt.zero_grad()
        out = net(x)
        loss = 1000 * ((out - y) ** 2).mean() + ((out - y).abs() / y.abs()).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        times.append(time.perf_counter() - t)
        cpu.append(time.process_time() - c)
    step, used = sorted(times[1:])[steps // 2], sorted(cpu[1:])[steps // 2]
    print(f"torch {torch.__version__} threads={threads} parameters={sum(p.numel() for p in net.parameters())} "
          f"step_s={step:.4f} cpu_s={used:.4f} samples_per_s={BATCH / step:.1f}")


main()
