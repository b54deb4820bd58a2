"use strict";
// A click on the head of a column sorts its table, a second one the other way around; what has no value comes last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, row = head.parentElement, body = row.parentElement.nextElementSibling;
    const column = Array.prototype.indexOf.call(row.children, head);
    const falling = head.getAttribute("aria-sort") === "ascending";
    const keyed = Array.from(body.rows, (line, place) => {
      const cell = line.cells[column], value = cell.dataset.v;
      const number = value === undefined ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : Number(value);
      return {line, place, number, text: cell.textContent};
    });
    keyed.sort((a, b) => {
      const missing = (a.text === "") - (b.text === "");
      if (missing) return missing;
      const numeric = !Number.isNaN(a.number) && !Number.isNaN(b.number);
      const order = numeric ? (a.number > b.number) - (a.number < b.number)
                            : a.text.localeCompare(b.text, "en", {numeric: true});
      return (falling ? -order : order) || a.place - b.place;
    });
    body.append(...keyed.map(each => each.line));
    for (const other of row.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  });
}
