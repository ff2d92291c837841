#!/usr/bin/env python3
"""Gradients that cdmpp derives against PyTorch's autograd, by value: python3 grads_torch.py GRAD_VALUES [CASE...].

Small networks (grad_cases.py) as ONNX files without weights; grad_values.c computes the iteration of training that cdmpp makes of each,
element by element, in double, in both layouts, fused and one operator at a time. Then modules of torch.nn, exported by
PyTorch, whose parameters' gradients are compared. Needs python3-onnx, python3-torch. Last line: "gradients: N passed, M failed"."""
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F

import grad_cases
import grad_modules

RATE, MOMENTUM, CLOSE = 0.01, 0.9, 5e-6  # numbers in the graphs are single precision
torch.set_num_threads(1)
warnings.filterwarnings("ignore")
passed = failed = 0


def told(ok, what, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL %s: %s" % (what, detail))


def close(what, got, want):
    """Relative to the largest element: sums cancel."""
    got, want = got.reshape(-1), want.detach().reshape(-1)
    if got.shape != want.shape:
        told(False, what, "%d elements, PyTorch %d" % (got.numel(), want.numel()))
        return
    off = (got - want).abs().max().item() if got.numel() else 0.0
    scale = 1 + (want.abs().max().item() if want.numel() else 0.0)
    told(off <= CLOSE * scale, what, "off by %.3g of %.3g" % (off, scale))


def ask(tool, folder, model, values, loss, optimizer, way):
    """{(kind, name): numbers}, or what it complained of."""
    path = os.path.join(folder, "values")
    with open(path, "w") as f:
        for name, t in values.items():
            f.write("%s %d %s\n" % (name, t.numel(), " ".join("%.17g" % v for v in t.detach().reshape(-1).tolist())))
    run = subprocess.run([tool, model, path, loss, optimizer, str(way)], capture_output=True, text=True, timeout=300)
    if run.returncode:
        return (run.stdout[:300] + run.stderr[:300]).strip() or "exit status %d" % run.returncode
    out = {}
    for line in run.stdout.splitlines():
        part = line.split()
        if part[0] == "loss":
            out["loss", ""] = torch.tensor([float(part[1])], dtype=torch.float64)
        elif part[0] == "none":
            out["none", part[1]] = None
        else:
            out.setdefault((part[0], part[1]), torch.tensor([float(v) for v in part[3:]], dtype=torch.float64))
    return out


def loss_of(kind, results, values):
    """As graph_grad.h defines it; labels and targets are drawn here and are inputs of the iteration."""
    total = 0
    for k, y in enumerate(results):
        if kind == "cross_entropy":
            classes = 2 if y.dim() == 3 else 1
            rows = y.movedim(classes, -1).reshape(-1, y.shape[classes])
            shape = [d for i, d in enumerate(y.shape) if i != classes]
            labels = values["extra#%d" % k] = torch.randint(0, rows.shape[1], shape, generator=grad_cases.G)
            total = total + F.cross_entropy(rows, labels.reshape(-1))
        elif kind == "squares":
            target = values["extra#%d" % k] = torch.rand(y.shape, generator=grad_cases.G, dtype=torch.float64)
            total = total + F.mse_loss(y, target)
        else:
            total = total + y.sum()
    return total


def updated(optimizer, w, g, state):
    """The new weight; states as they stood before are in `state`."""
    if optimizer == "sgd-plain":
        return w - RATE * g
    p = torch.nn.Parameter(w.detach().clone())
    p.grad = g.clone()
    if optimizer == "sgd":
        o = torch.optim.SGD([p], RATE, momentum=MOMENTUM)
        o.state[p]["momentum_buffer"] = state["momentum"].clone()
        o.step()
        return p.detach()
    # Adam far from its first steps: the corrections there are part of the rate (docs/reference/training.md).
    o = torch.optim.Adam([p], RATE)
    o.state[p] = {"step": torch.tensor(1e6), "exp_avg": state["mean"].clone(), "exp_avg_sq": state["square"].clone()}
    o.step()
    return p.detach()


def states_of(optimizer, name, w, values):
    state = {}
    for s in {"sgd": ("momentum",), "adam": ("mean", "square")}.get(optimizer, ()):
        t = torch.rand(w.shape, generator=grad_cases.G, dtype=torch.float64)
        state[s] = values["%s.%s" % (name, s)] = t
    return state


def check(tool, folder, name, model, weights, values, results, loss, optimizer, ways):
    """weights: {name in the file: PyTorch's tensor}."""
    given = dict(values)
    total = loss_of(loss, results, given)
    grads = torch.autograd.grad(total, list(weights.values()), allow_unused=True)
    states = {w: states_of(optimizer, w, t, given) for w, t in weights.items()}
    for way in ways:
        out = ask(tool, folder, model, given, loss, optimizer, way)
        what = "%s, way %d" % (name, way)
        if isinstance(out, str):
            told(False, what, out)
            continue
        close(what + ", loss", out["loss", ""], total.reshape(1))
        for (w, t), g in zip(weights.items(), grads):
            zero = g is None or not g.any()
            if ("none", w) in out or ("grad", w) not in out:
                told(zero, "%s, %s" % (what, w), "no gradient")
                continue
            g = torch.zeros_like(t) if g is None else g
            close("%s, %s %s" % (what, w, list(t.shape)), out["grad", w], g)
            close("%s, new %s" % (what, w), out["now", w], updated(optimizer, t, g, states[w]))


def named(tool, folder, name, model, n, op):
    """An operator without a gradient is named, and nothing else is."""
    with open(model, "wb") as f:
        f.write(n.model().SerializeToString())
    out = ask(tool, folder, model, n.values, "sum", "sgd", 1)
    lines = out.splitlines() if isinstance(out, str) else ["nothing missing"]
    told(all(line.startswith("missing %s " % op) for line in lines), name, out)


def main():
    tool, wanted = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "m.onnx")
        for name, build, opset, loss, more in grad_cases.CASES:
            if wanted and name not in wanted:
                continue
            n = grad_cases.Net(opset)
            build(n)
            if more.get("missing"):
                named(tool, folder, name, model, n, more["missing"])
                continue
            with open(model, "wb") as f:
                f.write(n.model().SerializeToString())
            check(tool, folder, name, model, {w.n: w.t for w in n.weights}, n.values, [r.t for r in n.results], loss, more.get("optimizer", "sgd"), range(4))
        for name, make in grad_modules.MODULES.items():
            if wanted and name not in wanted:
                continue
            module, args, loss, optimizer = make()
            weights, values, results = grad_modules.export(module, args, model)
            check(tool, folder, name, model, weights, values, results, loss, optimizer, (1, 0))
    print("gradients: %d passed, %d failed" % (passed, failed))
    return failed > 0 or passed == 0


sys.exit(main())
