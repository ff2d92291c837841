#!/bin/sh
# layers.sh -- fail on an #include that points up, sideways or past a door.
#
#   cdmpp.h < base < features < dataset | profiler < learner < predictor
#
# A door is a header that other folders may include; the rest are private.
# main_*.c may include any door below or beside its folder.
# One door is open sideways: profiler/store*.c may read tables by dataset/oprecord.h, a reader of files that knows
# nothing but base/. dataset/ may never include profiler/, so no circle can come of it.
set -eu
cd "$(dirname "$0")/.."
grep -Hn '^#include "' cdmpp.h $(find base features dataset learner predictor profiler -name '*.[ch]' 2>/dev/null) |
awk -F'[:"]' '
BEGIN { n = split("features/program.h features/nest.h features/sketch.h features/ast.h features/te.h features/te_part.h features/record.h features/task.h features/expr.h features/cols.h features/device.h features/device_keys.def " \
                  "dataset/dataset.h dataset/extract.h dataset/report.h dataset/oprecord.h dataset/split.h dataset/filter.h dataset/select.h dataset/sample.h " \
                  "dataset/convert.h dataset/inputs.h dataset/key.h dataset/dict.h dataset/netname.h " \
                  "learner/model.h learner/adapt.h learner/share.h learner/export.h learner/view.h learner/metric.h learner/opmodel.h learner/opscore.h learner/heldout.h learner/plot.h learner/learner.h learner/gbt.h " \
                  "profiler/graph.h profiler/graph_grad.h profiler/workload.h profiler/codegen.h profiler/backend.h profiler/measure.h profiler/store.h " \
                  "profiler/recjob.h profiler/fill.h profiler/reclog.h profiler/recfile.h profiler/affinity.h profiler/corun.h profiler/isa.h profiler/backend_cpu.h profiler/zoo.h profiler/onnx.h profiler/netrun.h profiler/devnet.h profiler/netpick.h profiler/netops.h profiler/opencl_device.h profiler/cuda_api.h profiler/timing.h", d, " "); while (n) door[d[n--]] = 1; bad = 0 }
function rank(p) {
    if (p == "cdmpp.h")          return 0
    if (p ~ /^base\//)           return 1
    if (p ~ /^features\//)       return 2
    if (p ~ /^(dataset|profiler)\//) return 3
    if (p ~ /^learner\//)        return 4
    if (p ~ /^predictor\//)      return 5
    return 99
}
function dir(p) { sub(/\/[^\/]*$/, "", p); return p }
function no(why) { printf "%s:%s: %s may not include %s (%s)\n", $1, $2, dir($1), $4, why; bad++ }
{
    a = rank($1); b = rank($4)
    if (dir($1) == dir($4) || b <= 1 && b <= a) next
    if ($4 == "dataset/oprecord.h" && $1 ~ /^profiler\/store/) next
    if (b >= a)                            no("it is not below")
    else if (dir($4) == "profiler" && a != 5) no("nobody but predictor/ depends on the profiler")
    else if (!($4 in door))                no("not a door")
    else if (a == 5 && $4 == "learner/learner.h") no("predicting must not need training")
    else if ($4 == "learner/gbt.h" && $1 !~ /^predictor\/tune/) no("trees are grown by the search alone")
}
END { printf "layers: %d includes checked, %d wrong\n", NR, bad; exit bad > 0 }'
