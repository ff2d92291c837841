// replay_check.js -- what a reader of a page of cdmpp-replay would complain about. check_replay_html.sh puts it
// at the end of a copy of a page and reads the attribute data-verdict of the document.
addEventListener("load", async () => {
  const bad = [], el = id => document.getElementById(id), canvas = el("lanes"), wait = ms => new Promise(r => setTimeout(r, ms));
  const expect = (ok, what) => { if (!ok) bad.push(what); };
  const pixels = () => {
    const d = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
    let sum = 0;
    for (let i = 0; i < d.length; i += 4) { const c = d[i] << 16 | d[i + 1] << 8 | d[i + 2]; sum = (sum * 31 + c) >>> 0; if (d[i + 3] === 255) seen.set(c, (seen.get(c) || 0) + 1); }
    return {sum, colours: [...seen.values()].filter(n => n > 60).length};
  };
  const mouse = (type, x, y, more) => canvas.dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(type, {clientX: canvas.getBoundingClientRect().left + x, clientY: canvas.getBoundingClientRect().top + y, bubbles: true, cancelable: true, pointerId: 1, ...more}));
  try {
    const cases = D.cases.length, good = D.cases.filter(c => !c.error);
    expect(el("title").textContent.length > 0 && el("lead").textContent.length > 0, "no headline");
    expect(document.documentElement.scrollWidth <= innerWidth + 1, "the page is wider than the window");
    expect(el("which").options.length === cases, "not every estimate can be chosen");
    expect(el("table-part").hidden === cases < 2, "table of devices and batches");
    if (cases > 1) expect(el("table").querySelectorAll("tbody tr").length === cases, "rows of the table: " + el("table").querySelectorAll("tbody tr").length);
    for (const e of document.querySelectorAll(".card,.card b,h1,h2")) if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) bad.push("cut: " + e.textContent.trim().slice(0, 30));
    for (const r of document.querySelectorAll("svg rect,svg line")) for (const a of r.attributes) if (/NaN|Infinity/.test(a.value)) bad.push("not a number in a bar");
    for (const c of good.slice(0, 4)) {
      choose(c);
      if (!c.ops) continue;
      const first = pixels(), n = c.ops.start.length;
      expect(first.colours >= 4, c.network + ": the timeline is empty: " + first.colours + " colours");
      expect(el("types").rows.length > 1 && el("longest").rows.length === Math.min(n, 25) + 1, c.network + ": tables of operators");
      for (const t of c.tracks) if (t.list) for (let i = 1; i < t.list.length; i++) expect(c.ops.start[t.list[i]] >= c.ops.end[t.list[i - 1]], c.network + ": slices overlap");
      expect(Math.abs(c.plain * 1e-9 / c.latency - 1) < 0.35, c.network + ": replayed in the page " + c.plain * 1e-9 + " s, not " + c.latency);
      mouse("wheel", 300, 40, {deltaY: -300});
      expect(pixels().sum !== first.sum, c.network + ": the wheel does not zoom");
      fit();
      expect(pixels().sum === first.sum, c.network + ": Fit does not go back");
      const k = [...c.ops.start.keys()].sort((a, b) => c.ops.end[b] - c.ops.start[b] - c.ops.end[a] + c.ops.start[a])[0], row = c.tracks.findIndex(t => t.list && t.list.includes(k));
      mouse("pointermove", (px(c.ops.start[k]) + px(c.ops.end[k])) / 2, 26 + row * 34 + 12);
      await wait(20);
      expect(!el("tip").hidden && el("tip").textContent.includes(c.ops.full[k]), c.network + ": no note under the pointer");
      mouse("pointerleave", 0, 0);
      const before = el("if-text").textContent;
      el("if-by").value = 50;
      el("if-by").dispatchEvent(new Event("input"));
      expect(el("if-text").textContent !== before && !/NaN/.test(el("if-text").textContent), c.network + ": what if says nothing");
      el("if-reset").click();
      expect(pixels().sum === first.sum, c.network + ": Reset does not go back");
    }
    for (const e of document.querySelectorAll("td,th,p,.card")) if (/NaN|undefined|Infinity/.test(e.textContent)) bad.push("says " + e.textContent.trim().slice(0, 30));
  } catch (e) { bad.push("" + e); }
  document.documentElement.dataset.verdict = bad.length ? "bad: " + [...new Set(bad)].slice(0, 8).join("; ") : "ok " + D.cases.length + " estimates";
});
