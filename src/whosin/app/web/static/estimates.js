// What a question would cost and how good its answer would be, before anything is spent.

import { h, number } from "./dom.js";
import { term } from "./glossary.js";

const named = ({ columns }) => columns.join(", ") || "total";

// What the split for the least error does to a question.
export const gain = ({ by_weights: before, standard_error: after }) =>
  before === undefined ? "" : ` Standard error of a number ${number(before, 3)} → ${number(after, 3)}.`;

// The standard error of a cell of every table, and what is measured for them, for questions with
// several. `open`: whether it was open before.
export function tableEstimates({ tables = [], measured = [] }, open) {
  if (!tables.length) return null;
  const errors = tables.map((each) => each.standard_error);
  const [least, most] = [Math.min(...errors), Math.max(...errors)].map((error) => number(error, 3));
  const range = least === most ? least : `${least} to ${most}`;
  const count = tables.length === 1 ? "1 table" : `${tables.length} tables`;
  // Sums of cells are not equally exact.
  const error = (each) =>
    each.least_error === undefined ? number(each.standard_error, 4) : `${number(each.least_error, 4)} to ${number(each.largest_error, 4)}`;
  const cost = (each) => (each.rho === undefined ? `ε = ${number(each.epsilon, 3)}` : `ρ = ${number(each.rho, 3)}`);
  const rows = (listed, last) => listed.map((each) => h("tr", {}, h("td", {}, named(each)), h("td", { class: "r" }, last(each))));
  const table = (heads, body) =>
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, heads[0]), h("th", { scope: "col", class: "r" }, heads[1]))), h("tbody", {}, body));
  return h(
    "details",
    { class: "estimated", open },
    h("summary", {}, `${count}: the standard error of a cell is ${range}`),
    h(
      "div",
      { class: "pair" },
      h("div", { class: "tall", tabindex: "0", role: "region", "aria-label": "how exact each table will be" },
        table(["table", term("table", "standard error of a cell")], rows(tables, error))),
      h("div", { class: "tall", tabindex: "0", role: "region", "aria-label": "what will be measured" },
        table(["will be measured", "at the cost of"], rows(measured, (each) => `${each.differences?.length ? "differences, " : ""}${cost(each)}`))),
    ),
  );
}
