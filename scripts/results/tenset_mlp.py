#!/usr/bin/env python3
"""tenset_mlp.py DATA.h5 PARTS.csv OUT.csv SEED -- TenSet's perceptron in PyTorch, to compare with; needs python3-torch and python3-h5py.

Each feature row (164) goes through two layers of 256, rows of a program are added up, two layers of 256 that add to their input and one output follow. These are the published sizes (TenSet, Zheng
et al., NeurIPS 2021; its mlp_model.py): batches of 512, 50 epochs, rate 0.0007 that falls by steps, decay 1e-6, LambdaRank on throughput over the best of the task. For
its good: columns are standardised, a batch is programs of one task, and the epoch with the highest Spearman on the validation part is kept.

PARTS.csv is a report of cdmpp-train: it says which programs of DATA.h5 are of which part, by file and line. OUT.csv is that report with order_s of this model."""
import copy, csv, sys

import h5py, numpy, torch

WIDTH, EPOCHS, BATCH, RATE, DECAY = 256, 50, 512, 7e-4, 1e-6
csv.field_size_limit(sys.maxsize)

class Perceptron(torch.nn.Module):
    def __init__(self, n_in):
        super().__init__()
        lin = torch.nn.Linear
        self.rows = torch.nn.Sequential(lin(n_in, WIDTH), torch.nn.ReLU(), lin(WIDTH, WIDTH), torch.nn.ReLU())
        self.first, self.second = (torch.nn.Sequential(lin(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(2))
        self.out = lin(WIDTH, 1)

    def forward(self, rows, owner, n):
        h = torch.zeros(n, WIDTH).index_add(0, owner, self.rows(rows))
        h = h + self.first(h)
        return self.out(h + self.second(h))[:, 0]

class Data:
    """Rows of programs, standardised by those that train."""
    def __init__(self, path, parts):
        with h5py.File(path) as f:
            self.ptr, self.rows = f["features/row_ptr"][:].astype(numpy.int64), f["features/rows"][:]
            source = [s.decode() for s in f["dict/source_file"][:]]
            where = {(source[s], int(l)): i for i, (s, l) in enumerate(zip(f["key/source_file"][:], f["key/source_line"][:]))}
        self.report = list(csv.DictReader(open(parts, newline="")))
        self.program = numpy.array([where[r["file"], int(r["line"])] for r in self.report])
        own = self.rows[numpy.concatenate([numpy.arange(*self.ptr[p:p + 2]) for p in self.program[self.of("train")]])]
        self.mean, self.std = own.mean(0), own.std(0) + 1e-6

    def of(self, part):
        return [i for i, r in enumerate(self.report) if r["part"] == part]

    def batch(self, items):
        """Inputs of these lines of the report."""
        p = self.program[items]
        count = self.ptr[p + 1] - self.ptr[p]
        rows = self.rows[numpy.concatenate([numpy.arange(a, b) for a, b in zip(self.ptr[p], self.ptr[p + 1])])]
        return torch.from_numpy(((rows - self.mean) / self.std).astype("f4")), torch.from_numpy(numpy.repeat(numpy.arange(len(p)), count)), len(p)

    def tasks(self, part):
        out = {}
        for i in self.of(part):
            out.setdefault(self.report[i]["task"], []).append(i)
        return [numpy.array(v) for v in out.values()]

    def throughput(self, items):
        y = numpy.array([float(self.report[i]["measured_s"]) for i in items])
        return torch.from_numpy((y.min() / y).astype("f4"))

def lambda_rank(score, gain):
    """Pairs of a list, weighted by what a swap of the two changes in NDCG."""
    place = torch.empty(len(score)).index_copy(0, score.argsort(descending=True), torch.arange(len(score), dtype=torch.float32))
    best = gain.sort(descending=True).values
    discount = 1 / torch.log2(place + 2)
    ideal = (best / torch.log2(torch.arange(len(best)) + 2.0)).sum()
    weight = (gain[:, None] - gain[None]).clamp(min=0) * (discount[:, None] - discount[None]).abs() / ideal
    return (weight * torch.nn.functional.softplus(score[None] - score[:, None])).sum()

def scores(net, data, items):
    with torch.no_grad():
        return torch.cat([net(*data.batch(items[k:k + 8192])) for k in range(0, len(items), 8192)]).numpy()

def spearman(data, net, tasks):
    rank = lambda v: numpy.argsort(numpy.argsort(v))
    of = [numpy.corrcoef(rank(scores(net, data, t)), rank(data.throughput(t).numpy()))[0, 1] for t in tasks if len(t) > 2]
    return numpy.nanmean(of)

def fit(data, seed):
    torch.manual_seed(seed)
    draw, net, kept, best = numpy.random.default_rng(seed), Perceptron(data.rows.shape[1]), None, -2.0
    step = torch.optim.Adam(net.parameters(), RATE, weight_decay=DECAY)
    falls = torch.optim.lr_scheduler.StepLR(step, EPOCHS // 3, 0.3)
    tasks, valid = data.tasks("train"), data.tasks("validation")
    for epoch in range(EPOCHS):
        for t in draw.permutation(len(tasks)):
            items = draw.permutation(tasks[t])[:BATCH]
            loss = lambda_rank(net(*data.batch(items)), data.throughput(items))
            step.zero_grad(), loss.backward(), step.step()
        falls.step()
        now = spearman(data, net, valid)
        if now > best:
            best, kept = now, copy.deepcopy(net.state_dict())
        print("epoch %d: Spearman of validation %.3f, best %.3f" % (epoch + 1, now, best), file=sys.stderr)
    net.load_state_dict(kept)
    return net

def main(data, parts, out, seed):
    data = Data(data, parts)
    net, items = fit(data, int(seed)), numpy.arange(len(data.report))
    with open(out, "w", newline="") as f:
        w = csv.DictWriter(f, list(data.report[0]), lineterminator="\n")
        w.writeheader()
        for r, s in zip(data.report, scores(net, data, items)):
            w.writerow(dict(r, order_s=repr(float(numpy.exp(-numpy.float64(s))))))

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 5 else __doc__)
