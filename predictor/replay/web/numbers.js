"use strict";
const D = JSON.parse(document.getElementById("data").textContent), $ = id => document.getElementById(id);
const esc = s => String(s).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
const num = (v, n = 4) => v == null ? "–" : Number(v.toPrecision(n)).toLocaleString("en", {maximumSignificantDigits: n});
const time = s => s == null ? "–" : s >= 1 ? num(s) + " s" : s >= 1e-3 ? num(s * 1e3) + " ms" : s >= 1e-6 ? num(s * 1e6) + " µs" : num(s * 1e9) + " ns";
const bytes = n => n == null ? "–" : n >= 2 ** 30 ? num(n / 2 ** 30, 3) + " GiB" : n >= 2 ** 20 ? num(n / 2 ** 20, 3) + " MiB" : num(n / 1024, 3) + " KiB";
const pct = v => v == null ? "–" : num(v * 100, 3) + " %";
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
