"""Style sheet and script of the report page. Both are part of the page: it needs no network."""

STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --soft: #666; --mark: #fff3c4; --link: #0b62a8; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --soft: #aaa; --mark: #4a3f12; --link: #7db8f0; }
}
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 88em; padding: 0 1em; }
h1 { font-size: 1.6em; margin: 0; } h2 { font-size: 1.2em; margin: 1.8em 0 .4em; }
h3 { font-size: 1em; margin: 1.2em 0 .2em; }
a { color: var(--link); }
.soft { color: var(--soft); }
.charts { display: flex; flex-wrap: wrap; gap: 2em; }
figure { margin: 0; } figcaption { color: var(--soft); max-width: 34em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25em .7em .25em 0; border-bottom: 1px solid var(--line);
         vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.params { font-size: .9em; max-width: 26em; overflow-wrap: anywhere; }
td.date { white-space: nowrap; }
td.name { overflow-wrap: anywhere; max-width: 14em; }
td.id { font-size: .75em; overflow-wrap: anywhere; max-width: 12em; }
th button { all: unset; cursor: pointer; font-weight: bold; }
th button:focus-visible { outline: 2px solid var(--link); }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
tr:target { background: var(--mark); }
input[type=search] { font: inherit; padding: .25em .5em; min-width: 18em; }
.scroll { overflow-x: auto; }
"""

SCRIPT = """
"use strict";
const table = document.getElementById("tasks");
const body = table.tBodies[0];
const rows = Array.from(body.rows);
const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));

function keyOf(row, column) {
  const text = row.cells[column].dataset.sort;
  const number = Number(text);
  return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);  // unknown values last
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortBy(header) {
  const column = header.cellIndex;
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const keys = new Map(rows.map(row => [row, keyOf(row, column)]));
  rows.sort((one, other) => {
    const a = keys.get(one), b = keys.get(other);
    const order = compare(a, b);
    return descending && a !== null && b !== null ? -order : order;
  });
  body.append(...rows);
}

function filter(query) {
  const words = query.toLowerCase().split(/\\s+/).filter(word => word);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !words.every(word => texts.get(row).includes(word));
    shown += !row.hidden;
  }
  document.getElementById("shown").textContent = shown + " of " + rows.length + " searches";
}

function reveal() {  // a link may lead to a row that the filter hides
  const row = document.getElementById(location.hash.slice(1));
  if (row && row.hidden) {
    document.getElementById("query").value = "";
    filter("");
    row.scrollIntoView();
  }
}

for (const header of table.tHead.rows[0].cells) {
  header.querySelector("button").addEventListener("click", () => sortBy(header));
}
document.getElementById("query").addEventListener("input", event => filter(event.target.value));
window.addEventListener("hashchange", reveal);
filter("");
"""
