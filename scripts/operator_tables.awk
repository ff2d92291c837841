# operator_tables.awk -- which tables of products contradict the others: part of its possible rate that a device reaches.
#
#   awk -f scripts/operator_tables.awk configs/devices.yaml TABLE.csv...        -> Markdown: class, device, n, reached, of the others, kept
#
# Of the tenth of a table's rows with the most operations: the 90th percentile of operations / time / (peak * p), p what the power limit
# leaves (learner/operators/library_op_feature.h). While the least is below `least` (0.8) of the median of the other devices of its class, it is left out:
# something that the device's description does not know held it back. bmm and linear; convolutions have algorithms with fewer operations.
BEGIN { least = 0.8 }

function number(s) { sub(/^[^:]*: */, "", s); return s + 0 }
# "Tesla V100-PCIE-32GB" and "v100-pcie": small letters and digits only.
function plain(s) { s = tolower(s); gsub(/[^a-z0-9]/, "", s); return s }

FNR == 1 { devices = FILENAME ~ /\.yaml$/ }
devices && /^- name:/ { name = $3; known[plain(name)] = name }
devices && /^  aliases:/ { sub(/^[^[]*\[/, ""); sub(/\].*/, ""); n = split($0, a, /, */); for (i = 1; i <= n; i++) known[plain(a[i])] = name }
devices && /^  fp32_gflops:/ { peak[name] = number($0) }
devices && /^  tdp_w:/ { watt[name] = number($0) }
devices && /^  process_nm:/ { nm[name] = number($0) }
devices { next }

FNR == 1 { sub(/\r$/, ""); delete c; n = split($0, a, ","); for (i = 1; i <= n; i++) c[a[i]] = i; next }
{
    gsub(/"[^"]*"/, "x") # kernels' names may hold commas
    n = split($0, f, ",")
    class = f[c["OPName"]]; d = known[plain(f[c["Device"]])]; b = f[c["B"]] == "" ? 1 : f[c["B"]]
    work = 2 * b * f[c["M"]] * f[c["N"]] * f[c["K"]]
    if (d == "" || !(f[c["Latency"]] > 0) || !(work > 0)) next
    t = class "/" d
    if (!(t in rows)) table[++tables] = t
    k = ++rows[t]; ops[t, k] = work; rate[t, k] = work / f[c["Latency"]] * 1e3
}

# Heap sort of v[1..n], upwards.
function sift(v, i, n,    j, x) {
    for (x = v[i]; (j = 2 * i) <= n; i = j) { if (j < n && v[j + 1] > v[j]) j++; if (v[j] <= x) break; v[i] = v[j] }
    v[i] = x
}
function heapsort(v, n,    i, x) {
    for (i = int(n / 2); i >= 1; i--) sift(v, i, n)
    for (i = n; i > 1; i--) { x = v[i]; v[i] = v[1]; v[1] = x; sift(v, 1, i - 1) }
}
function reached(t, d,    n, k, m, v, w, p) {
    n = rows[t]
    for (k = 1; k <= n; k++) v[k] = ops[t, k]
    heapsort(v, n)
    for (k = 1; k <= n; k++) if (ops[t, k] >= v[int(0.9 * n) + 1]) w[++m] = rate[t, k]
    heapsort(w, m)
    p = watt[d] * 1e12 / (0.85 * peak[d] * 1e9 * 15 * (nm[d] / 12) ^ 0.91)
    return w[int(0.9 * (m - 1)) + 1] / (peak[d] * 1e9 * (p < 1 ? p : 1))
}
# Median of the devices of this class that are still in, but t.
function others(class, t,    i, n, v) {
    for (i = 1; i <= tables; i++) if (table[i] != t && table[i] ~ "^" class "/" && !out[table[i]]) v[++n] = share[table[i]]
    heapsort(v, n)
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function judge(class,    i, t, low) {
    for (;;) {
        low = ""
        for (i = 1; i <= tables; i++) { t = table[i]; if (t ~ "^" class "/" && !out[t] && (low == "" || share[t] < share[low])) low = t }
        against[low] = others(class, low)
        if (share[low] >= least * against[low]) break
        out[low] = 1
    }
    for (i = 1; i <= tables; i++) if (table[i] ~ "^" class "/" && !out[table[i]]) against[table[i]] = others(class, table[i])
}
END {
    for (i = 1; i <= tables; i++) { split(table[i], a, "/"); share[table[i]] = reached(table[i], a[2]) }
    judge("bmm"); judge("linear")
    print "| class | device | n | reached | of the others' median | |\n| --- | --- | --: | --: | --: | --- |"
    for (i = 1; i <= tables; i++) {
        t = table[i]; split(t, a, "/")
        printf "| %s | %s | %d | %.2f | %.2f | %s |\n", a[1], a[2], rows[t], share[t], share[t] / against[t], out[t] ? "left out" : ""
    }
}
