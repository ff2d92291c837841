# report.awk RECORD.json TASK.json HELD_OUT.jsonl NEST.txt -- the quickstart's report
# as one HTML page: figures of both splits, measured against predicted, one loop nest.
#
# The .json files are model headers (cdmpp-predict --info), HELD_OUT.jsonl is what
# cdmpp-predict --eval printed.

# The number after "key": in text; "" when there is none.
function num(text, key,    at) {
    at = index(text, "\"" key "\":")
    if (!at) return ""
    text = substr(text, at + length(key) + 3)
    return match(text, /^[-+0-9.eE]+/) ? substr(text, 1, RLENGTH) : ""
}
function shown(v, factor, digits) { return v == "" ? "-" : sprintf("%.*f", digits, v * factor) }
function html(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }

# The object {...} of the figures of one part.
function part(head, name,    at) {
    at = index(head, "\"metrics\":")
    head = substr(head, at)
    head = substr(head, index(head, "\"" name "\":"))
    return substr(head, 1, index(head, "}"))
}
function row(split_, name, head,    m) {
    m = part(head, name)
    return "<tr><td>" split_ "<td>" name "<td>" num(m, "n") "<td>" shown(num(m, "mape"), 100, 1) "<td>" \
        shown(num(m, "median_ape"), 100, 1) "<td>" shown(num(m, "within_5"), 100, 1) "<td>" \
        shown(num(m, "within_10"), 100, 1) "<td>" shown(num(m, "within_20"), 100, 1) "<td>" \
        shown(num(m, "spearman"), 1, 3) "<td>" shown(num(m, "pairwise"), 100, 1) "<td>" \
        shown(num(m, "top1"), 1, 3) "<td>" shown(num(m, "top5"), 1, 3) "\n"
}
function log10(x) { return log(x) / log(10) }
function px(v) { return 60 + (log10(v) - lo) / (hi - lo) * 420 }

function axis(    d, p, label) {
    for (d = lo; d <= hi; d++) {
        p = 60 + (d - lo) / (hi - lo) * 420
        label = d < -3 ? 10 ^ (d + 6) " us" : d < 0 ? 10 ^ (d + 3) " ms" : 10 ^ d " s"
        printf "<path d='M%.1f 20V440M60 %.1fH480' stroke='#ddd'/>", p, 500 - p
        printf "<text x='%.1f' y='456' text-anchor='middle'>%s</text>", p, label
        printf "<text x='54' y='%.1f' text-anchor='end'>%s</text>\n", 504 - p, label
    }
}
function scatter(    i, a, b) {
    lo = hi = log10(x[1])
    for (i = 1; i <= n; i++) {
        a = log10(x[i]); b = log10(y[i])
        if (a < lo) lo = a; if (b < lo) lo = b
        if (a > hi) hi = a; if (b > hi) hi = b
    }
    lo = int(lo + 100) - 100; hi = -(int(-hi + 100) - 100)
    if (hi <= lo) hi = lo + 1
    a = 420 * log10(1.2) / (hi - lo)
    print "<svg width='500' height='490' font-family='sans-serif' font-size='11'>"
    axis()
    print "<clipPath id='c'><rect x='60' y='20' width='420' height='420'/></clipPath><g clip-path='url(#c)'>"
    printf "<path d='M60 440L480 20' stroke='#444'/><path d='M60 %.1fL480 %.1fM60 %.1fL480 %.1f' stroke='#444' stroke-dasharray='4 4'/></g>\n",
        440 - a, 20 - a, 440 + a, 20 + a
    for (i = 1; i <= n; i++)
        printf "<circle cx='%.1f' cy='%.1f' r='3' fill='#06c' fill-opacity='.6'><title>line %d: measured %s s, predicted %s s</title></circle>\n",
            px(x[i]), 500 - px(y[i]), line[i], x[i], y[i]
    print "<text x='270' y='476' text-anchor='middle'>measured</text>" \
        "<text transform='translate(12 230) rotate(-90)' text-anchor='middle'>predicted</text></svg>"
}

FNR == 1 { file++ }
file == 1 { record = record $0 }
file == 2 { task = task $0 }
file == 3 && num($0, "measured_s") > 0 && num($0, "latency_s") > 0 {
    n++; x[n] = num($0, "measured_s") + 0; y[n] = num($0, "latency_s") + 0; line[n] = num($0, "line")
    ape[n] = num($0, "error") + 0; if (ape[n] < 0) ape[n] = -ape[n]
    sum += ape[n]
}
file == 4 { nest = nest html($0) "\n" }
END {
    print "<!doctype html><meta charset='utf-8'><title>cdmpp quickstart</title>"
    print "<style>body{font:14px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}" \
        "td,th{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:right}pre{background:#f4f4f4;padding:1em;overflow-x:auto}</style>"
    print "<h1>cdmpp quickstart</h1><p>Latency of tensor programs on one core of an AMD EPYC (Zen 5, AVX-512), from" \
        " <code>examples/zen5</code>. MAPE, median error, shares and pairwise accuracy in %.</p>"
    print "<table><tr><th>held out<th>part<th>n<th>MAPE<th>median<th>within 5<th>10<th>20<th>Spearman<th>pairwise<th>top-1<th>top-5"
    printf "%s%s%s", row("schedules", "train", record), row("schedules", "validation", record), row("schedules", "test", record)
    printf "%s%s%s", row("tasks", "train", task), row("tasks", "validation", task), row("tasks", "test", task)
    print "</table><p>Rank figures are means over tasks. The test parts were used for these figures only.</p>"
    if (n) {
        printf "<h2>Records held out of the sample</h2><p>%d records, MAPE %.1f %%; dashed: 20 %% off.</p>\n", n, 100 * sum / n
        scatter()
    }
    print "<h2>The program of one of them</h2><pre>" nest "</pre>"
}
