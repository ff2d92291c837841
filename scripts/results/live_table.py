#!/usr/bin/env python3
"""live_table.py FILE.ndjson -- lines of bench_network_run as the table of docs/results/replay-live.md: a row a network, batches 1 and 4."""
import json, os, sys

rows = {}
with open(sys.argv[1]) as f:
    for line in f:
        d = json.loads(line)
        m, name = d["measured_s"], d["network"]
        if name.endswith(".onnx"):
            name = os.path.basename(name)[:-5].replace("light_", "") + " (ONNX)"
        rows.setdefault(name, {})[d["batch"]] = "%.3g | %+.1f | %+.1f" % (1e3 * m, 100 * (d["predicted_s"] / m - 1), 100 * (d["place_s"] / m - 1))
print("| network | batch 1: pass, ms | estimate, 1 | from times in place, 1 | batch 4: pass, ms | estimate, 4 | from times in place, 4 |")
print("| --- | --: | --: | --: | --: | --: | --: |")
for name, at in rows.items():
    print("| %s | %s | %s |" % (name, at[1], at[4]))
