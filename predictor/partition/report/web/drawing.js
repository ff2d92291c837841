function about(k) {
  const c = now, o = c.ops, d = (o.end[k] - o.start[k]) * 1e-9, p = o.of[k] < 0 ? null : D.operators[o.of[k]];
  return "<b>" + esc(o.name[k]) + "</b>" + esc(c.types[o.type[k]]) + "<br>" + time(d) + ", from " + time(o.start[k] * 1e-9) + " to " + time(o.end[k] * 1e-9) + " on " + esc(c.lanes[o.lane[k]].name) + (o.critical[k] ? "; on the critical path" : "") +
    (p ? "<br>alone: " + p.alone.map((s, i) => esc(D.devices[i]) + " " + time(s)).join(", ") : "") + (p && c === best && p.why ? '<br><span class="mut">' + esc(p.why) + "</span>" : "");
}

/* ---- operators ---- */
function operators() {
  const here = D.operators.some(o => o.measured != null), least = o => Math.min(...o.alone.map(s => s == null ? Infinity : s));
  $("ops").innerHTML = '<thead><tr><th>operator</th><th class="l opt">type</th>' + D.devices.map(d => "<th>" + esc(d) + "</th>").join("") + '<th>planned</th><th class="opt">exchange</th>' + (here ? "<th>measured</th>" : "") + '<th>gain</th><th class="l">where</th></tr></thead><tbody>' +
    D.operators.map((o, i) => '<tr class="pick" tabindex="0" data-k="' + i + '"><td class="name">' + esc(o.name) + '</td><td class="l opt">' + esc(o.type) + "</td>" + o.alone.map(s => "<td>" + time(s) + "</td>").join("") + "<td>" + time(o.seconds) + '</td><td class="opt">' + (o.exchange > 0 ? time(o.exchange) : "–") + "</td>" + (here ? "<td>" + time(o.measured) + "</td>" : "") + "<td>" + (o.parts > 1 ? gain(least(o) / o.seconds) : "–") + '</td><td class="name l">' + esc(o.where) + (o.why ? '<br><span class="mut">' + esc(o.why) + "</span>" : "") + "</td></tr>").join("") + "</tbody>";
  $("ops-note").textContent = "Times of each device alone, launch included. A click shows the operator in the timeline.";
  for (const r of $("ops").querySelectorAll("tr.pick")) r.onclick = () => {
    if (!best.ops) return;
    if (now !== best) choose(best);
    const list = [...best.ops.of.keys()].filter(k => best.ops.of[k] === Number(r.dataset.k));
    if (!list.length) return;
    const a = Math.min(...list.map(k => best.ops.start[k])), b = Math.max(...list.map(k => best.ops.end[k])), d = Math.max(b - a, whole() / 1e5);
    view = {a: a - 3 * d, b: b + 3 * d};
    hover = list[0];
    draw();
    cv.scrollIntoView({block: "center"});
  };
}

function choose(c) {
  now = c;
  hover = -1;
  kept = false;
  $("tip").hidden = true;
  table();
  $("which").value = D.cases.indexOf(c);
  prepare(c);
  $("time-note").textContent = c.ops ? c.ops.start.length + " programs and copies, as predicted." : "This plan cannot be, or is not drawn.";
  $("keys").innerHTML = !c.ops ? "" : c.rank.filter(i => c.count[i]).slice(0, 7).map(i => '<span class="key"><i style="background:var(' + c.colour[i] + ')"></i>' + esc(c.types[i]) + "</span>").join("") + '<span class="key"><i style="background:var(--crit)"></i>edge: critical path</span>';
  fit();
}
$("which").innerHTML = D.cases.map((c, i) => '<option value="' + i + '"' + (c.ops ? "" : " disabled") + ">" + esc(c.name) + "</option>").join("");
$("which").onchange = () => choose(D.cases[$("which").value]);
$("foot").textContent = D.foot;
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
headline();
operators();
choose(now);
