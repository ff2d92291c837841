/* ---- timeline ---- */
const cv = $("lanes"), g = cv.getContext("2d"), GUT = 116, TOP = 26, ROW = 34;
let view = {a: 0, b: 1}, hover = -1, kept = false, critical = true;
const whole = () => Math.max(1, ...(now.shown ? [now.shown.end.reduce((a, b) => Math.max(a, b), 0)] : [1]));
const width = () => cv.clientWidth - GUT - 8;
const px = t => GUT + (t - view.a) / (view.b - view.a) * width();
function fit() { const w = whole(); view = {a: -0.004 * w, b: 1.01 * w}; draw(); }
function zoom(by, at) {
  const w = whole(), t = at == null ? (view.a + view.b) / 2 : view.a + (at - GUT) / width() * (view.b - view.a), span = Math.min(1.2 * w, Math.max(20, (view.b - view.a) * by)), f = (t - view.a) / (view.b - view.a);
  view.a = t - f * span;
  view.b = view.a + span;
  draw();
}
function ticks() {
  const span = view.b - view.a, rough = span / (width() / 110), p = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(m => m * p).find(s => s >= rough);
  g.fillStyle = css("--mut");
  g.strokeStyle = css("--line");
  g.textAlign = "center";
  for (let t = Math.ceil(Math.max(0, view.a) / step) * step; t <= view.b; t += step) {
    const x = Math.round(px(t)) + 0.5;
    g.beginPath(); g.moveTo(x, TOP - 5); g.lineTo(x, cv.clientHeight); g.stroke();
    if (x > GUT + 18 && x < cv.clientWidth - 22) g.fillText(t ? time(t * 1e-9) : "0", x, 15);
  }
}
function slice(x0, x1, y, h, fill, edge, text) {
  const w = Math.max(x1 - x0, 0.7);
  g.fillStyle = fill;
  g.fillRect(x0, y, w > 3 ? w - 0.6 : w, h);
  if (edge) { g.fillStyle = edge; g.fillRect(x0, y + h - 4, w > 3 ? w - 0.6 : w, 4); }
  if (!text || w < 34) return;
  const from = Math.max(x0, GUT) + 4, room = Math.min(x1, cv.clientWidth) - from - 4, n = Math.floor(room / 6.4);
  if (n < 4) return;
  g.fillStyle = css(g.globalAlpha < 1 ? "--fg" : "--on");
  g.globalAlpha = 1;
  g.textAlign = "left";
  g.fillText(text.length > n ? text.slice(0, n - 1) + "…" : text, from, y + h / 2 + 2.5);
}
function draw() {
  const c = now, ratio = devicePixelRatio || 1, h = TOP + Math.max(1, c.tracks ? c.tracks.length : 1) * ROW + 8;
  cv.style.height = h + "px";
  if (cv.width !== Math.round(cv.clientWidth * ratio) || cv.height !== Math.round(h * ratio)) { cv.width = Math.round(cv.clientWidth * ratio); cv.height = Math.round(h * ratio); }
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, cv.clientWidth, h);
  g.font = "12px system-ui,sans-serif";
  if (!c.ops) return;
  const o = c.ops, colours = c.colour.map(css), edge = css("--crit"), shown = c.shown;
  c.tracks.forEach((t, i) => { g.fillStyle = css(i % 2 ? "--bg" : "--lane"); g.fillRect(0, TOP + i * ROW, cv.clientWidth, ROW); });
  ticks();
  g.save();
  g.beginPath(); g.rect(GUT, 0, cv.clientWidth, h); g.clip();
  c.tracks.forEach((t, i) => {
    const y = TOP + i * ROW + 4;
    let last = -1e9;
    g.globalAlpha = 1;
    if (t.copies) { for (const k of t.copies) slice(px(k[2]), px(k[3]), y, ROW - 8, css("--c7"), null, o.name[k[0]]); return; }
    for (const k of t.list) {
      const x1 = px(shown.end[k]), x0 = px(shown.start[k]);
      if (x1 < GUT || x0 > cv.clientWidth || (x1 - last < 0.6 && x1 - x0 < 0.6)) continue;
      g.globalAlpha = critical && !o.critical[k] ? 0.42 : 1;
      slice(x0, x1, y, ROW - 8, colours[o.type[k]], critical && o.critical[k] ? edge : null, o.name[k]);
      last = x1;
    }
  });
  g.globalAlpha = 1;
  if (hover >= 0) {
    const i = c.tracks.findIndex(t => t.list && t.list.includes(hover)), x0 = px(shown.start[hover]);
    g.strokeStyle = css("--fg"); g.lineWidth = 2;
    g.strokeRect(x0 - 1, TOP + i * ROW + 3, Math.max(px(shown.end[hover]) - x0, 2) + 1, ROW - 6);
    g.lineWidth = 1;
  }
  g.restore();
  g.textAlign = "left";
  c.tracks.forEach((t, i) => { g.fillStyle = css("--fg"); g.fillText(t.name.length > 17 ? t.name.slice(0, 16) + "…" : t.name, 8, TOP + i * ROW + ROW / 2 + 4); });
}
function find(x, y) {
  const c = now, i = Math.floor((y - TOP) / ROW);
  if (!c.ops || i < 0 || i >= c.tracks.length || !c.tracks[i].list || x < GUT) return -1;
  const t = view.a + (x - GUT) / width() * (view.b - view.a), slack = 2 / width() * (view.b - view.a), s = c.shown;
  return c.tracks[i].list.find(k => s.start[k] - slack <= t && t <= s.end[k] + slack) ?? -1;
}
function note(k, x, y) {
  const tip = $("tip");
  tip.innerHTML = about(k);
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, y + 16 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 16) + "px";
}
let drag = null;
cv.onpointerdown = e => { drag = {x: e.offsetX, a: view.a, b: view.b, moved: false}; cv.setPointerCapture(e.pointerId); };
cv.onpointerup = e => { cv.classList.remove("drag"); if (drag && !drag.moved) { kept = find(e.offsetX, e.offsetY) >= 0 && !kept; } drag = null; };
cv.onpointermove = e => {
  if (drag) {
    const d = (drag.x - e.offsetX) / width() * (drag.b - drag.a);
    if (Math.abs(drag.x - e.offsetX) > 3) { drag.moved = true; cv.classList.add("drag"); }
    if (drag.moved) { view = {a: drag.a + d, b: drag.b + d}; draw(); }
    return;
  }
  if (kept) return;
  const k = find(e.offsetX, e.offsetY);
  if (k !== hover) { hover = k; draw(); }
  if (k >= 0) note(k, e.clientX, e.clientY); else $("tip").hidden = true;
};
cv.onpointerleave = () => { if (!kept) { hover = -1; $("tip").hidden = true; draw(); } };
cv.addEventListener("wheel", e => { e.preventDefault(); if (e.shiftKey) { const d = e.deltaY / 800 * (view.b - view.a); view.a += d; view.b += d; draw(); } else zoom(Math.exp(e.deltaY / 500), e.offsetX); }, {passive: false});
cv.onkeydown = e => {
  const d = (view.b - view.a) / 8, move = {ArrowLeft: -d, ArrowRight: d}[e.key];
  if (move) { view.a += move; view.b += move; draw(); } else if (e.key === "+") zoom(0.7); else if (e.key === "-") zoom(1.4); else if (e.key === "0") fit(); else return;
  e.preventDefault();
};
$("in").onclick = () => zoom(0.6);
$("out").onclick = () => zoom(1.6);
$("fit").onclick = fit;
$("crit").onclick = () => { critical = !critical; $("crit").setAttribute("aria-pressed", critical); draw(); };
