"""threads24_score -- what stage threads24 computes from the CSV of a report: errors of its seconds; ranks and top-k of held-out tasks and trials of a search by what orders.

Weights are how often a task occurs in a network. Of equal scores the slowest program comes first, so that a constant wins nothing."""
import bisect, csv, hashlib, json, math, sys

KS = (1, 5, 10, 20)
csv.field_size_limit(sys.maxsize)

def draw(*words):
    return int(hashlib.sha256("|".join(map(str, words)).encode()).hexdigest()[:12], 16)

def median(v):
    v = sorted(v)
    n = len(v)
    return (v[n // 2] if n % 2 else (v[n // 2 - 1] + v[n // 2]) / 2) if n else float("nan")

def mean(v):
    return sum(v) / len(v) if v else float("nan")

# ---- one task: lists of (measured, score) ----
def ranks(v):
    """Mean ranks of the items, in their order."""
    at, out = sorted(range(len(v)), key=v.__getitem__), [0.0] * len(v)
    i = 0
    while i < len(v):
        j = i
        while j < len(v) and v[at[j]] == v[at[i]]:
            j += 1
        for k in range(i, j):
            out[at[k]] = (i + j - 1) / 2
        i = j
    return out

def spearman(y, p):
    a, b = ranks(y), ranks(p)
    m = (len(y) - 1) / 2
    xx, yy = sum((v - m) ** 2 for v in b), sum((v - m) ** 2 for v in a)
    return sum((u - m) * (v - m) for u, v in zip(a, b)) / math.sqrt(xx * yy) if xx * yy > 0 else 0.0

def pairs(y, p):
    """How many pairs of different times are in order, ties of the score half, and how many pairs there are."""
    seen, right, n, same = [], 0.0, 0, []
    for t, s in sorted(zip(y, p)):
        if same and t != same[0][0]:
            for _, q in same:
                bisect.insort(seen, q)
            same = []
        lo, hi = bisect.bisect_left(seen, s), bisect.bisect_right(seen, s)
        right += lo + (hi - lo) / 2
        n += len(seen)
        same.append((t, s))
    return right, n

def best_of(y, p, k):
    return min(t for _, _, t in sorted((s, -t, t) for t, s in zip(y, p))[:k])

def random_best(y, k):
    """The mean of the best of k programs drawn without return."""
    y, n = sorted(y), len(y)
    k = min(k, n)
    total, chance = 0.0, k / n # that the fastest is drawn
    for i, t in enumerate(y[:n - k + 1]):
        total += chance * t
        left = n - 1 - i
        chance = chance * (left - k + 1) / left if left else 0
    return total

# ---- all tasks ----
def rows(path):
    with open(path, newline="") as f:
        for r in csv.DictReader(f):
            yield r

def top_k(tasks, nets, best):
    """Of each held-out network: its weight times best over its weight times best found; `best(y, p, k)`."""
    found = {}
    for net, list_ in nets.items():
        w = [(t["weight"], tasks[t["workload_key"]]) for t in list_ if t["workload_key"] in tasks]
        if w:
            found[net] = [sum(k * min(y) for k, (y, p) in w) / sum(k * best(y, p, n) for k, (y, p) in w) for n in KS]
    return found

def summary(tasks, nets):
    """Of each task (measured, order, seconds)."""
    errors = [abs(s / t - 1) for y, _, seconds in tasks.values() for t, s in zip(y, seconds)]
    tasks = {k: (y, p) for k, (y, p, _) in tasks.items()}
    both = [pairs(y, p) for y, p in tasks.values()]
    return {"n": len(errors), "tasks": len(tasks), "mape": 100 * mean(errors), "median": 100 * median(errors),
            "spearman": mean([spearman(y, p) for y, p in tasks.values() if len(set(y)) > 1]), "pairwise": 100 * sum(r for r, _ in both) / sum(n for _, n in both),
            "top": top_k(tasks, nets, best_of)}

def trials_of(order, y, share):
    """How many programs in that order until one is at most 1 + share times the best."""
    limit = min(y) * (1 + share)
    return 1 + next(i for i, k in enumerate(order) if y[k] <= limit)

def trials(logs, shares=(0.01, 0.05)):
    """Of each search of a held-out task, its programs alone: by score, in the order of the log, and in a random one (mean)."""
    out = {s: {"score": [], "log": [], "random": []} for s in shares}
    for items in logs.values():
        items.sort() # by line
        y, p = [t for _, t, _ in items], [s for _, _, s in items]
        by = sorted(range(len(y)), key=lambda i: (p[i], -y[i]))
        for s in shares:
            out[s]["score"].append(trials_of(by, y, s))
            out[s]["log"].append(trials_of(range(len(y)), y, s))
            out[s]["random"].append((len(y) + 1) / (1 + sum(t <= min(y) * (1 + s) for t in y)))
    return {"%d" % round(100 * s): dict({k: median(v) for k, v in out[s].items()}, n=len(logs)) for s in shares}

def judge(path, nets):
    """Figures of the test part of a report's CSV, and of validation, by which one chooses. Each log is a search of Ansor."""
    tasks, valid, logs, keys = {}, {}, {}, set()
    for r in rows(path):
        keys.add(r["task"])
        if r["part"] == "train":
            continue
        t, s = float(r["measured_s"]), float(r["order_s"])
        y, p, seconds = (tasks if r["part"] == "test" else valid).setdefault(r["task"], ([], [], []))
        y.append(t), p.append(s), seconds.append(float(r["predicted_s"]))
        if r["part"] == "test":
            logs.setdefault((r["task"], r["file"]), []).append((int(r["line"]), t, s))
    found = summary(tasks, nets)
    found.update(random=top_k({k: v[:2] for k, v in tasks.items()}, nets, lambda y, p, k: random_best(y, k)), trials=trials(logs), keys=sorted(keys), valid=summary(valid, {"validation": [{"workload_key": k, "weight": 1} for k in valid]}))
    return found
