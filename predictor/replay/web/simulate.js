/* ---- replaying in the page: the order on each worker stays ---- */
function simulate(c, type, by) {
  const o = c.ops, n = o.start.length, end = new Float64Array(n), start = new Float64Array(n), free = new Map();
  for (const k of c.order) {
    const track = o.lane[k] * 1024 + o.worker[k], d = o.end[k] - o.start[k];
    let t = Math.max(free.has(track) ? free.get(track) + c.lanes[o.lane[k]].gap * 1e9 : 0, o.issued[k]);
    for (const a of o.after[k]) t = Math.max(t, end[a] + (o.lane[a] === o.lane[k] ? 0 : c.copied.get(a + ">" + o.lane[k]) || 0));
    start[k] = t;
    end[k] = t + d * (o.type[k] === type ? by : 1);
    free.set(track, end[k]);
  }
  return {start, end};
}
function prepare(c) {
  if (!c.ops || c.order) return;
  const o = c.ops, n = o.start.length;
  c.order = [...o.start.keys()].sort((a, b) => o.start[a] - o.start[b] || a - b);
  c.copied = new Map((c.copies || []).map(k => [k[0] + ">" + c.links[k[1]].to, k[3] - k[2]]));
  c.shown = {start: o.start, end: o.end};
  o.issued = new Float64Array(n);
  const handed = c.lanes.map(() => 0);
  for (let k = 0; k < n; k++) o.issued[k] = handed[o.lane[k]] += c.lanes[o.lane[k]].issue * 1e9;
  c.plain = Math.max(0, ...simulate(c, -1, 1).end);
  c.total = c.types.map(() => 0);
  c.count = c.types.map(() => 0);
  for (let k = 0; k < n; k++) { c.total[o.type[k]] += o.end[k] - o.start[k]; c.count[o.type[k]]++; }
  c.rank = c.types.map((_, i) => i).sort((a, b) => c.total[b] - c.total[a]);
  c.colour = c.types.map((_, i) => "--c" + Math.min(c.rank.indexOf(i), 7));
  const tracks = new Map();
  for (const k of c.order) {
    const id = o.lane[k] * 1024 + o.worker[k];
    if (!tracks.has(id)) tracks.set(id, []);
    tracks.get(id).push(k);
  }
  c.tracks = [...tracks].sort((a, b) => a[0] - b[0]).map(([id, list]) => ({name: c.lanes[id >> 10].name + (c.lanes[id >> 10].workers > 1 ? " · " + (id & 1023) : ""), list}));
  (c.links || []).forEach((l, i) => { const list = (c.copies || []).filter(k => k[1] === i); if (list.length) c.tracks.push({name: l.name, copies: list}); });
}
