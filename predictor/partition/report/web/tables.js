const gain = v => v == null || !isFinite(v) ? "–" : num(v, 3) + "×", best = D.cases[0];
const kinds = [...new Set(D.operators.map(o => o.type))], COPY = kinds.length;
kinds.push("copies, joins");
for (const c of D.cases) {
  if (!c.ops) continue;
  c.types = kinds;
  c.ops.type = c.ops.of.map(k => k < 0 ? COPY : kinds.indexOf(D.operators[k].type));
}
let now = best;

/* ---- headline ---- */
function headline() {
  const of = D.ceiling == null ? "" : ", at most " + gain(D.ceiling);
  $("title").textContent = D.network + (D.batch ? ", batch " + D.batch : "") + " on " + D.devices.join(" + ");
  $("lead").textContent = D.verdict;
  const card = (t, v, s, bad) => '<div class="card' + (bad ? " bad" : "") + '"><span class="t">' + t + "</span><b>" + v + "</b><span>" + s + "</span></div>";
  let h = card("Predicted", time(best.predicted), "the better device alone: " + time(D.alone)) + card("Predicted gain", gain(D.alone / best.predicted), "over the better device" + of);
  if (best.measured != null) h += card("Measured", time(best.measured), "the better device alone: " + time(D.alone_here)) + (D.alone_here == null ? "" : card("Measured gain", gain(D.alone_here / best.measured), "over the better device"));
  if (D.rho != null) h += card("rho", num(D.rho, 3), "times of the slower device over those of the faster");
  if (D.error != null) h += card("Values", D.error === 0 ? "equal" : D.error.toExponential(1), "largest difference from the network unsplit", D.error > 1e-4);
  $("cards").innerHTML = h;
}

/* ---- plans ---- */
function table() {
  const here = D.cases.some(c => c.measured != null), most = Math.max(...D.cases.flatMap(c => [c.predicted || 0, c.measured || 0]), 1e-12);
  const bar = c => '<svg role="img" aria-label="' + time(c.predicted) + '"><rect x="0" y="2" height="' + (c.measured == null ? 10 : 5) + '" rx="2" width="' + ((c.predicted || 0) / most * 100).toFixed(2) + '%" fill="var(--acc)"/>' + (c.measured == null ? "" : '<rect x="0" y="7" height="5" rx="2" width="' + (c.measured / most * 100).toFixed(2) + '%" fill="var(--c1)"/>') + "</svg>";
  let h = '<thead><tr><th>plan</th><th class="bar">time</th><th>predicted</th><th>gain</th>' + (here ? "<th>measured</th><th>gain</th><th>error</th>" : "") + "</tr></thead><tbody>";
  D.cases.forEach((c, i) => {
    h += '<tr class="' + (c.ops ? "pick" : "") + (c === now ? " on" : "") + '"' + (c.ops ? ' tabindex="0"' : "") + ' data-k="' + i + '"><td>' + esc(c.name) + '</td><td class="bar">' + bar(c) + "</td><td>" + (c.predicted == null ? "cannot be" : time(c.predicted)) + "</td><td>" + gain(c.predicted && D.alone / c.predicted) + "</td>" +
      (here ? "<td>" + time(c.measured) + "</td><td>" + gain(c.measured && D.alone_here && D.alone_here / c.measured) + "</td><td>" + (c.measured == null || c.predicted == null ? "–" : (c.predicted > c.measured ? "+" : "−") + pct(Math.abs(c.predicted / c.measured - 1))) + "</td>" : "") + "</tr>";
  });
  $("table").innerHTML = h + "</tbody>";
  $("table-note").textContent = "Gain: over the better device alone" + (D.ceiling == null ? "" : "; predicted gains are at most " + gain(D.ceiling)) + "." + (here ? " Upper bar: predicted, lower: measured here, in turns." : "") + " A click shows the timeline.";
  for (const r of $("table").querySelectorAll("tr.pick")) {
    r.onclick = () => choose(D.cases[r.dataset.k]);
    r.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(D.cases[r.dataset.k]); } };
  }
}

