const named = c => c.device + (c.batch ? ", batch " + c.batch : "");
const networks = [...new Set(D.cases.map(c => c.network))];
/* TVM's names are long and say little: tvmgen_default_fused_nn_conv2d_add_nn_relu_3 */
const short = s => s.replace(/^tvmgen_default_(fused_)?/, "").replace(/nn_contrib_|nn_|_without_weight_transform/g, ""), kind = s => short(s).replace(/_\d+$/, "");
for (const c of D.cases) {
  if (!c.ops) continue;
  const types = [...new Set(c.types.map(kind))];
  c.ops.type = c.ops.type.map(t => types.indexOf(kind(c.types[t])));
  c.ops.full = c.ops.name;
  c.ops.name = c.ops.name.map(short);
  c.types = types;
}
let now = D.cases.find(c => c.best) || D.cases.find(c => !c.error) || D.cases[0];

/* ---- headline ---- */
function headline() {
  const c = now, fits = !c.small;
  $("title").textContent = c.network;
  if (c.error) { $("lead").textContent = named(c) + ": no total. " + c.error; $("cards").innerHTML = ""; return; }
  $("lead").innerHTML = "<b>" + time(c.latency) + "</b> on " + esc(named(c)) + (c.high > c.low ? ", between " + time(c.low) + " and " + time(c.high) + " with " + pct(D.level) + " confidence." : ".");
  const card = (t, v, s, bad) => '<div class="card' + (bad ? " bad" : "") + '"><span class="t">' + t + "</span><b>" + v + "</b><span>" + s + "</span></div>";
  let h = card("Latency", time(c.latency), c.high > c.low ? time(c.low) + " to " + time(c.high) : "no interval: times are given") + (c.items == null ? "" : card("Throughput", num(c.items) + " /s", "items, batch " + c.batch)) +
    card("Longest chain", time(c.chain), pct(c.chain / c.latency) + " of the latency; all operators: " + time(c.sum)) +
    card("Memory", bytes(c.peak), c.peak == null ? "not all sizes are known" + (fits ? "" : ", and it does not fit") : (c.weights == null ? "results alone" : "of it weights " + bytes(c.weights)) + (c.memory ? "; device: " + bytes(c.memory) : "") + (fits ? "" : ": does not fit"), !fits);
  if (c.price != null) h += card("A million", num(c.price) + " " + esc(c.currency), num(c.hour) + " an hour" + (c.best ? "; the cheapest" + (D.deadline ? " under " + time(D.deadline) : "") : ""));
  if (c.measured != null) h += card("Measured", time(c.measured), "the estimate is " + (c.latency > c.measured ? "+" : "−") + pct(Math.abs(c.latency / c.measured - 1)) + " off");
  if (c.run != null) h += card("Run here", time(c.run), "the estimate is " + (c.latency > c.run ? "+" : "−") + pct(Math.abs(c.latency / c.run - 1)) + " off");
  if (c.before != null) h += card("Without what-if", time(c.before), num(c.before / c.latency, 3) + " times as long");
  if (c.unlike > 0) h += card("Unlike", pct(c.unlike), "of the time: programs unlike those that the model was trained on" + (c.why ? " (" + esc(c.why) + ")" : ""), c.unlike > 0.1);
  if (c.missing > 0) h += card("Missing", pct(c.missing), "of " + c.missing_of + ": nobody can score them; not in the total", true);
  $("cards").innerHTML = h;
}

/* ---- devices and batches ---- */
function bar(c, most) {
  const x = v => (v / most * 100).toFixed(2) + "%";
  return '<svg role="img" aria-label="' + time(c.latency) + '"><rect x="0" y="2" height="10" rx="2" width="' + x(c.latency) + '" fill="var(--acc)"/>' +
    '<line x1="' + x(c.low) + '" x2="' + x(c.high) + '" y1="7" y2="7" stroke="var(--fg)" stroke-width="1.5"/><line x1="' + x(c.low) + '" x2="' + x(c.low) + '" y1="3.5" y2="10.5" stroke="var(--fg)" stroke-width="1.5"/>' +
    '<line x1="' + x(c.high) + '" x2="' + x(c.high) + '" y1="3.5" y2="10.5" stroke="var(--fg)" stroke-width="1.5"/></svg>';
}
function table() {
  const priced = D.cases.some(c => c.price != null), measured = D.cases.some(c => c.measured != null), many = networks.length > 1;
  let h = "<thead><tr>" + (many ? "<th>network</th>" : "") + '<th class="l">device</th><th>batch</th><th class="bar">latency</th><th></th><th class="opt">an item</th><th>items/s</th><th class="opt">memory</th>' +
    (measured ? "<th>measured</th><th>error</th>" : "") + (priced ? "<th>a million</th>" : "") + "</tr></thead><tbody>";
  for (const n of networks) {
    const own = D.cases.filter(c => c.network === n), most = Math.max(...(own.length > 1 ? own : D.cases).map(c => c.high || 0), 1e-12);
    own.forEach((c, i) => {
      h += '<tr class="pick' + (c === now ? " on" : "") + (many && !i ? " new" : "") + '" tabindex="0" data-k="' + D.cases.indexOf(c) + '">' + (many ? '<td class="name">' + (i ? "" : esc(n)) + "</td>" : "") + '<td class="l">' + esc(c.device) + "</td><td>" + (c.batch || "–") + "</td>";
      if (c.error) { h += '<td class="bad" colspan="9">' + esc(c.error) + "</td></tr>"; return; }
      h += '<td class="bar">' + bar(c, most) + "</td><td>" + time(c.latency) + '</td><td class="opt">' + time(c.batch ? c.latency / c.batch : null) + "</td><td>" + num(c.items) + '</td><td class="opt' + (c.small ? " bad" : "") + '">' + bytes(c.peak) + "</td>" +
        (measured ? "<td>" + time(c.measured) + "</td><td>" + (c.measured == null ? "–" : (c.latency > c.measured ? "+" : "−") + pct(Math.abs(c.latency / c.measured - 1))) + "</td>" : "") +
        (priced ? '<td class="' + (c.best ? "best" : "") + '">' + (c.price == null ? "–" : num(c.price) + " " + esc(c.currency)) + "</td>" : "") + "</tr>";
    });
  }
  $("table").innerHTML = h + "</tbody>";
  $("table-note").textContent = "Bars: latency" + (many && networks.length < D.cases.length ? ", each network on its own scale" : "") + "; line: " + pct(D.level) + " interval. A click shows the timeline." + (D.deadline ? " Deadline: " + time(D.deadline) + "." : "") + (D.cases.some(c => c.best) ? " Green: the cheapest." : "");
  for (const r of $("table").querySelectorAll("tr.pick")) {
    r.onclick = () => choose(D.cases[r.dataset.k]);
    r.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(D.cases[r.dataset.k]); } };
  }
}
