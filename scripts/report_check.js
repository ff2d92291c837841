// report_check.js -- what a reader would complain about, found in the page's own layout.
// check_report.sh puts it at the end of a copy of a report and reads the attribute
// data-verdict of the document: "ok <plots> plots, <texts> labels" or the complaints.
addEventListener("load", () => {
  const bad = [], want = (document.documentElement.dataset.want || "").split(" ").filter(Boolean);
  const name = e => e.closest("svg")?.id + ": '" + e.textContent.trim().slice(0, 30) + "'";
  let texts = 0;
  for (const id of want) if (!document.getElementById(id)) bad.push("no " + id);
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push("the page is wider than the window");
  const plots = document.querySelectorAll("svg.plot");
  for (const svg of plots) {
    const r = svg.getBoundingClientRect();
    if (r.width < 120 || r.height < 100) bad.push(svg.id + ": " + r.width + " x " + r.height);
    const marks = [...svg.querySelectorAll(".l,.dots,.h,.box,.expect,.c0,.span")].filter(e => e.getTotalLength ? e.getTotalLength() > 0 : 1)
      .map(e => e.getBoundingClientRect()).filter(b => b.width + b.height > 0);
    const seen = svg.querySelectorAll(".dots").length || marks.length; // a dot's path has no length
    if (!seen) bad.push(svg.id + ": nothing drawn");
    for (const e of svg.querySelectorAll("path")) if (/NaN|Infinity/i.test(e.getAttribute("d"))) bad.push(svg.id + ": not a number");
    const boxes = [...svg.querySelectorAll("text")].filter(e => getComputedStyle(e).display !== "none").map(e => [e, e.getBoundingClientRect()]);
    texts += boxes.length;
    boxes.forEach(([e, a], i) => {
      if (a.left < -0.5 || a.right > innerWidth + 0.5) bad.push(name(e) + " leaves the window");
      for (const [f, b] of boxes.slice(i + 1)) {
        const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (w > 0.5 && h > 2.5) bad.push(name(e) + " covers " + name(f));
      }
    });
  }
  for (const e of document.querySelectorAll("h1,h2,h3,.card,.key,figcaption,.lead"))
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) bad.push("cut: '" + e.textContent.trim().slice(0, 30) + "'");
  document.documentElement.dataset.verdict = bad.length ? "bad: " + bad.slice(0, 12).join("; ") : "ok " + plots.length + " plots, " + texts + " labels";
});
