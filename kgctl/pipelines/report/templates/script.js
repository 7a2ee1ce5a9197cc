// Sorts and filters tables. Without it, the page shows the same rows in the order in which they were written.
"use strict";
const value = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent;

function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const isNumber = head.classList.contains("right");
      const first = isNumber ? "descending" : "ascending", second = isNumber ? "ascending" : "descending";
      const order = head.ariaSort === first ? second : first, sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      // What is not known comes last in both orders.
      rows.sort(([a], [b]) => (a === "") - (b === "") || sign * (isNumber ? a - b : a.localeCompare(b)));
      body.append(...rows.map(([, row]) => row));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = order;
    };
  });
}

function filterable(table) {
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("div"), search = document.createElement("input"), count = document.createElement("span");
  bar.className = "filter";
  search.type = "search";
  search.placeholder = search.ariaLabel = "Filter rows";
  count.setAttribute("role", "status");
  const words = new Set(rows.map((row) => row.querySelector(".health")?.textContent).filter(Boolean));
  const health = document.createElement("select");
  health.ariaLabel = "Health";
  health.append(...["Any health", ...words].map((word, number) => new Option(word, number ? word : "")));
  search.oninput = health.onchange = () => {
    const wanted = search.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits || (health.value !== "" && row.querySelector(".health")?.textContent !== health.value);
      shown += !row.hidden;
    }
    count.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : "";
  };
  bar.append(search, ...(words.size > 1 ? [health] : []), count);
  table.closest(".scroll").before(bar);
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length > 1) sortable(table);
  if (table.tBodies[0].rows.length > 7) filterable(table);
}
