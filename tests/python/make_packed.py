"""make_packed.py DATA.h5 OUT.xz -- features of a data set in the layout of TVM's GetPerStoreFeaturesFromStates.

How data/held_out.packed.xz was made (needs python3-h5py; again whenever the columns change):
    cdmpp-extract --tasks examples/zen5/zen5.tasks.json.xz --out a.h5 examples/zen5/held_out.json
    python3 tests/python/make_packed.py a.h5 tests/python/data/held_out.packed.xz
"""
import lzma
import struct
import sys

import h5py

with h5py.File(sys.argv[1]) as f:
    rows, ptr, line = f["features/rows"][:], f["features/row_ptr"][:], f["key/source_line"][:]
n = len(ptr) - 1
assert (line[1:] > line[:-1]).all(), "not in the order of the log"
each = [rows[a:b].astype("<f4") for a, b in zip(ptr, ptr[1:])]
sizes = [1 + r.size for r in each] + [0, 0]
blob = struct.pack("<%di" % (n + 3), n, *sizes) + b"".join(struct.pack("<f", len(r)) + r.tobytes() for r in each)
with lzma.open(sys.argv[2], "wb", preset=9) as f:
    f.write(blob)
print(n, "programs,", len(rows), "rows,", len(blob), "bytes")
