// partition_check.js -- what a reader of a page of cdmpp-partition would complain about. check_replay_html.sh puts it
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
  try {
    expect(el("title").textContent.length > 0 && el("lead").textContent === D.verdict && D.verdict.length > 0, "no headline");
    expect(document.documentElement.scrollWidth <= innerWidth + 1, "the page is wider than the window");
    expect(el("table").querySelectorAll("tbody tr").length === D.cases.length, "rows of plans: " + el("table").querySelectorAll("tbody tr").length);
    expect(el("ops").querySelectorAll("tbody tr").length === D.operators.length && D.operators.length > 0, "rows of operators");
    for (const e of document.querySelectorAll(".card,.card b,h1,h2")) if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) bad.push("cut: " + e.textContent.trim().slice(0, 30));
    for (const r of document.querySelectorAll("svg rect")) for (const a of r.attributes) if (/NaN|Infinity/.test(a.value)) bad.push("not a number in a bar");
    for (const c of D.cases) {
      if (c.predicted == null) { expect(!c.ops, c.name + ": a timeline of what cannot be"); continue; }
      expect(c.ops, c.name + ": no timeline");
      if (!c.ops) continue;
      choose(c);
      expect(pixels().colours >= 4, c.name + ": the timeline is empty");
      const n = c.ops.start.length, end = Math.max(...c.ops.end) * 1e-9;
      expect(end <= c.predicted * 1.001 + 1e-7, c.name + ": drawn to " + end + " s, and predicted " + c.predicted);
      for (const t of c.tracks) if (t.list) for (let i = 1; i < t.list.length; i++) expect(c.ops.start[t.list[i]] >= c.ops.end[t.list[i - 1]] - 1, c.name + ": slices overlap");
      for (let k = 0; k < n; k++) for (const a of c.ops.after[k]) expect(c.ops.start[k] >= c.ops.end[a] - 1, c.name + ": " + c.ops.name[k] + " begins before what it comes after");
      for (let o = 0; o < D.operators.length && c === D.cases[0]; o++) expect(c.ops.of.filter(k => k === o).length >= D.operators[o].parts, D.operators[o].name + ": parts are missing in the timeline");
    }
    choose(D.cases[0]);
    const first = pixels();
    const row = el("ops").querySelector("tbody tr");
    row.click();
    await wait(20);
    expect(pixels().sum !== first.sum, "a click on an operator does not show it");
    fit();
    const k = [...now.ops.start.keys()].sort((a, b) => now.ops.end[b] - now.ops.start[b] - now.ops.end[a] + now.ops.start[a])[0];
    note(k, 100, 100);
    expect(!el("tip").hidden && el("tip").textContent.includes(now.ops.name[k]), "no note on an operator");
    for (const e of document.querySelectorAll("td,th,p,.card")) if (/NaN|undefined|Infinity/.test(e.textContent)) bad.push("says " + e.textContent.trim().slice(0, 30));
  } catch (e) { bad.push("" + e); }
  document.documentElement.dataset.verdict = bad.length ? "bad: " + [...new Set(bad)].slice(0, 8).join("; ") : "ok " + D.cases.length + " plans";
});
