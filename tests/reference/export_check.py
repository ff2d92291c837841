"""export_check DIR -- the exports of DIR/NAME.cdmpp against what cdmpp itself says (DIR/NAME.jsonl, of member_answers).

NAME.onnx in numpy (onnx_eval), NAME.st in PyTorch, NAME.N.ubj in XGBoost; relative difference of seconds at most 1e-5.
Says "N passed, M failed" at the end."""
import glob
import json
import os
import sys

import numpy as np

BAR = 1e-5
CLIP = 10.0


def answers(path):
    lines = [json.loads(line) for line in open(path)]
    for p in lines:
        p["row"] = np.array(p["row"], np.float32)
    return lines


def worst(got, want):
    """Largest relative difference of seconds."""
    return float(np.max(np.abs(np.expm1(np.array(got) - np.array(want)))))


# ---- what members read, once more from docs and headers: sums and ratios of a row ----
def derived(row):
    r = row.astype(np.float64)
    log2p1 = lambda v: np.log2(np.maximum(v, 0) + 1)
    total = lambda c: log2p1((np.exp2(np.minimum(r[:, c], 100)) - 1).sum(1))
    t = [total(range(16))] + [total([57 + 18 * b + 3 + k for b in range(5)]) for k in range(4)]
    p, grid, thread = r[:, 161], r[:, 50:53].sum(1), r[:, 53:56].sum(1)
    d = [*t, t[0] - t[1], t[0] - t[2], t[1] - t[2], t[3] - t[4], t[0] - p, p - grid - thread, p - grid, p - r[:, 39], p - r[:, 28], p - r[:, 17]]
    return np.stack(d, 1).astype(np.float32)


def log_sum_exp(v):
    top = v.max()
    return top + np.log(np.exp(v - top).sum())


# ---- XGBoost ----
def check_ubj(path, member, programs):
    import xgboost

    if "objective" in member:  # their scores are not ln seconds
        return None
    number = int(path.split(".")[-2])
    booster = xgboost.Booster(model_file=path)
    got = []
    for p in programs:
        n = len(p["row"])
        if member["kind"] == "rows":
            x = np.concatenate([p["row"], derived(p["row"]), np.full((n, 1), p["device"], np.float32)], 1)
        elif member["kind"] == "sums":
            r = p["row"]
            x = np.concatenate([r.astype(np.float64).sum(0), r.max(0), [p["device"]]])[None].astype(np.float32)
        else:
            return None
        score = booster.predict(xgboost.DMatrix(x), output_margin=True).astype(np.float64)
        offset = member["slope"] * p["row"][:, 161].astype(np.float64) * np.log(2) if member["kind"] == "rows" else 0
        got.append(log_sum_exp(score + member["bias"] + offset))
    return worst(got, [p["member_log_s"][number] for p in programs])


# ---- safetensors in PyTorch ----
def load_safetensors(path):
    import torch

    b = open(path, "rb").read()
    h = int.from_bytes(b[:8], "little")
    head = json.loads(b[8 : 8 + h])
    meta = head.pop("__metadata__")
    t = {}
    for name, x in head.items():
        lo, hi = x["data_offsets"]
        assert x["dtype"] == "F32"
        t[name] = torch.from_numpy(np.frombuffer(b[8 + h + lo : 8 + h + hi], np.float32).reshape(x["shape"]).copy())
    return t, meta


def build(spec, t):
    """A torch module whose state_dict has the names of the file."""
    import torch
    from torch import nn

    act = {"relu": nn.ReLU, "elu": nn.ELU, "gelu": lambda: nn.GELU(approximate="tanh")}[spec["act"]]

    class Linear(nn.Linear):
        pass

    def stack(prefix, side=False):
        layers = nn.ModuleList()
        while f"{prefix}.{len(layers)}.weight" in t:
            w = t[f"{prefix}.{len(layers)}.weight"]
            l = Linear(w.shape[1], w.shape[0])
            if f"{prefix}.{len(layers)}.norm.running_mean" in t:
                l.norm = nn.BatchNorm1d(w.shape[0])
            elif f"{prefix}.{len(layers)}.norm.weight" in t:
                l.norm = nn.LayerNorm(w.shape[0])
            layers.append(l)
        return layers

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            if "projection.weight" in t:
                w = t["projection.weight"]
                self.projection = nn.Linear(w.shape[1], w.shape[0])
            if spec["kind"] == "transformer" and (spec["layers"] or spec["pre_norm"]):
                f = act()  # not the module itself: PyTorch's fast path takes every nn.GELU for the one with erf
                one = nn.TransformerEncoderLayer(spec["width"], spec["heads"], spec["ff"], 0.0, lambda x: f(x), batch_first=True, norm_first=spec["pre_norm"])
                self.encoder = nn.TransformerEncoder(one, spec["layers"], nn.LayerNorm(spec["width"]) if spec["pre_norm"] else None)
            self.head, self.decoder = stack("head"), stack("decoder")
            for side in ("device", "program"):
                if f"{side}.0.weight" in t:
                    setattr(self, side, stack(side))
            self.output = nn.Linear(spec["decoder_width"], spec["n_out"])

        def run(self, layers, x, no_act=0):
            for k, l in enumerate(layers):
                x = l(x)
                if hasattr(l, "norm"):
                    x = l.norm(x)
                x = x if k < no_act else act()(x)
            return x

        def tail(self, x, dev):
            z = self.run(self.head, x, 1 if spec["head_first"] else 0)
            if hasattr(self, "device"):
                z = z + self.run(self.device, dev)
            return self.output(self.run(self.decoder, z))[:, 0]

        def forward(self, tok, dev, trips):
            x = self.projection(tok) if hasattr(self, "projection") else tok
            if hasattr(self, "encoder"):
                x = self.encoder(x[None])[0] if spec["layers"] else self.encoder.norm(x)
            if spec["head"] == "pool":
                return self.tail(torch.cat([x.mean(0), x.max(0).values, x.sum(0)])[None], dev)[0]
            score = self.tail(x, dev)
            if spec["trips"]:
                score = score + trips / spec["temperature"]
            return torch.logsumexp(spec["temperature"] * score.double(), 0) / spec["temperature"]

    return Net()


def check_st(path, header, programs):
    import torch

    tensors, meta = load_safetensors(path)
    found = []
    for k, member in enumerate(header["model"]["members"]):
        if member["kind"] != "transformer":
            continue
        prefix = f"{k}." if f"{k}.cdmpp.net" in meta else ""
        t = {n[len(prefix) :]: v for n, v in tensors.items() if n.startswith(prefix)}
        spec, label = json.loads(meta[prefix + "cdmpp.net"]), json.loads(meta[prefix + "cdmpp.label"])
        if spec["tokens"] != "rows" or spec["program"] or spec["head"] == "flatten" or spec["position"] != "none":
            continue
        net = build(spec, t).eval()
        scalers = {n: t.pop(n) for n in list(t) if n.startswith("scaler.")}
        net.load_state_dict(t, strict=False)
        assert not (set(t) ^ {n for n in net.state_dict() if not n.endswith("num_batches_tracked")}), set(t) ^ set(net.state_dict())
        scale = lambda x, n: torch.clamp((x - scalers[f"scaler.{n}.shift"]) * scalers[f"scaler.{n}.scale"], -CLIP, CLIP)
        got = []
        for p in programs:
            x = np.concatenate([p["row"], derived(p["row"])], 1) if spec["derived"] else p["row"]
            tok = scale(torch.from_numpy(x), "tokens")
            trips = scale(torch.from_numpy((p["row"][:, 161].astype(np.float64) * np.log(2)).astype(np.float32)[:, None]), "trips")[:, 0]
            dev = torch.tensor(header["model"]["devices"][p["device"]]["vector"], dtype=torch.float32)[None]
            dev = scale(dev, "device") if "scaler.device.shift" in scalers else dev
            with torch.no_grad():
                got.append(float(net(tok, dev, trips)) * label["std"] + label["mean"] + label["centre"])
        found.append(worst(got, [p["member_log_s"][k] for p in programs]))
    return max(found) if found else None


def check_onnx(path, programs):
    from onnx_eval import Model

    m = Model(path)
    got = [m(rows=p["row"], device=np.array([p["device"]], np.int64), flop=np.array([p["flop"]])) for p in programs]
    return worst([g["log_s"][0] for g in got], [p["log_s"] for p in programs])


def main():
    folder, passed, failed = sys.argv[1], 0, 0
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        name, programs = path[: -len(".jsonl")], answers(path)
        header = json.load(open(name + ".json"))
        checks = [("onnx", lambda: check_onnx(name + ".onnx", programs))] if os.path.exists(name + ".onnx") else []
        if os.path.exists(name + ".st"):
            checks.append(("safetensors", lambda: check_st(name + ".st", header, programs)))
        for ubj in sorted(glob.glob(name + ".*.ubj")):
            member = header["model"]["members"][int(ubj.split(".")[-2])]
            checks.append(("xgboost", lambda u=ubj, k=member: check_ubj(u, k, programs)))
        for what, check in checks:
            found = check()
            if found is None:
                continue
            ok = found <= BAR
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok  ' if ok else 'FAIL'} {os.path.basename(name)}: {what}: {found:.1e} (n={len(programs)})")
    print(f"exports: {passed} passed, {failed} failed")
    return failed > 0 or passed == 0


sys.exit(main())
