function about(k) {
  const c = now, o = c.ops, d = (o.end[k] - o.start[k]) * 1e-9;
  return "<b>" + esc(o.full[k]) + "</b>" + esc(c.types[o.type[k]]) + "<br>" + time(d) + ", " + pct(d / c.sum) + " of all; " + time(o.low[k] * 1e-9) + " to " + time(o.high[k] * 1e-9) + "<br>from " + time(c.shown.start[k] * 1e-9) + " to " + time(c.shown.end[k] * 1e-9) + " on " + esc(c.lanes[o.lane[k]].name) + (c.lanes[o.lane[k]].workers > 1 ? ", worker " + o.worker[k] : "") + "<br>time: " + D.sources[o.source[k]] + (o.critical[k] ? "; on the critical path" : "") + (o.unlike[k] < 0 ? "" : "<br>out of range: " + esc(c.reasons[o.unlike[k]])) + (o.schedule[k] < 0 ? "" : '<br><span class="mut">schedule: ' + esc(c.schedules[o.schedule[k]]) + "</span>");
}

/* ---- what if ---- */
function whatIf() {
  const c = now, by = $("if-by").value / 100, type = Number($("if-op").value);
  if (!c.ops) return;
  const r = by === 1 ? {start: c.ops.start, end: c.ops.end} : simulate(c, type, by), latency = by === 1 ? c.latency : c.latency * Math.max(0, ...r.end) / c.plain;
  c.shown = r;
  $("if-text").innerHTML = num(by * 100, 3) + " % of its time: <b>" + time(latency) + "</b>" + (by === 1 ? "" : ", " + num(c.latency / latency, 3) + " times as fast");
  draw();
}
$("if-op").onchange = $("if-by").oninput = whatIf;
$("if-reset").onclick = () => { $("if-by").value = 100; whatIf(); };

/* ---- operators ---- */
function share(v, colour) { return '<td class="bar"><svg><rect x="0" y="2" height="10" rx="2" width="' + (v * 100).toFixed(2) + '%" fill="var(' + colour + ')"/></svg></td>'; }
function operators() {
  const c = now, o = c.ops, all = c.total.reduce((a, b) => a + b, 0) || 1, one = k => o.end[k] - o.start[k];
  $("types").innerHTML = '<thead><tr><th>type</th><th>runs</th><th>time</th><th>share</th><th class="bar"></th></tr></thead><tbody>' + c.rank.slice(0, 30).map(i => '<tr><td class="name">' + esc(c.types[i]).replace(/[+_]/g, "$&<wbr>") + "</td><td>" + c.count[i] + "</td><td>" + time(c.total[i] * 1e-9) + "</td><td>" + pct(c.total[i] / all) + "</td>" + share(c.total[i] / c.total[c.rank[0]], c.colour[i]) + "</tr>").join("") + "</tbody>";
  const long = [...o.start.keys()].sort((a, b) => one(b) - one(a) || a - b).slice(0, 25);
  $("longest").innerHTML = '<thead><tr><th>longest operators</th><th>time</th><th class="opt">interval</th><th>share</th><th class="l opt">by</th><th class="l">critical</th></tr></thead><tbody>' + long.map(k => '<tr class="pick" tabindex="0" data-k="' + k + '"><td class="name">' + esc(o.name[k]) + "</td><td>" + time(one(k) * 1e-9) + '</td><td class="opt">' + (o.high[k] > o.low[k] ? time(o.low[k] * 1e-9) + " to " + time(o.high[k] * 1e-9) : "–") + "</td><td>" + pct(one(k) / all) + '</td><td class="l opt">' + D.sources[o.source[k]] + '</td><td class="l">' + (o.critical[k] ? "yes" : "no") + "</td></tr>").join("") + "</tbody>";
  for (const r of $("longest").querySelectorAll("tr.pick")) r.onclick = () => {
    const k = Number(r.dataset.k), d = Math.max(one(k), whole() / 1e5);
    view = {a: c.shown.start[k] - 4 * d, b: c.shown.end[k] + 4 * d};
    hover = k;
    draw();
    cv.scrollIntoView({block: "center"});
  };
  $("keys").innerHTML = c.rank.slice(0, 7).map(i => '<span class="key"><i style="background:var(' + c.colour[i] + ')"></i>' + esc(c.types[i]) + "</span>").join("") + (c.rank.length > 7 ? '<span class="key"><i style="background:var(--c7)"></i>others</span>' : "") + '<span class="key"><i style="background:var(--crit)"></i>edge: critical path</span>';
  $("if-op").innerHTML = c.rank.map(i => '<option value="' + i + '">' + esc(c.types[i]) + "</option>").join("");
}

function choose(c) {
  now = c;
  hover = -1;
  kept = false;
  $("tip").hidden = true;
  headline();
  table();
  $("which").value = D.cases.indexOf(c);
  prepare(c);
  for (const id of ["if-part", "ops-part"]) $(id).hidden = !c.ops;
  $("time-note").textContent = c.ops ? (D.what_if.length ? "With " + D.what_if.join("; ") + ". " : "") + c.ops.start.length + " operators." : c.error ? "" : "Too many operators to draw; --trace writes them all.";
  if (c.ops) { operators(); $("if-by").value = 100; whatIf(); }
  fit();
}
$("which").innerHTML = D.cases.map((c, i) => '<option value="' + i + '">' + esc((networks.length > 1 ? c.network + ", " : "") + named(c)) + "</option>").join("");
$("which").onchange = () => choose(D.cases[$("which").value]);
$("table-part").hidden = D.cases.length < 2;
$("foot").textContent = D.foot;
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
choose(now);
