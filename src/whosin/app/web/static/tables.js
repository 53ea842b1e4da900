// The tables of an answer that has several: with margins of error, as crosstabs with shades where
// they have two columns, one opened at a time where there are many. What is in a table, how many
// decimals are worth showing and whether the totals agree, the route said.

import { dataTable, h } from "./dom.js";
import { term } from "./glossary.js";

const OPEN = { tables: 12, cells: 150 }; // an answer that is shown whole, side by side
const MOST = 600; // cells of a list; the rest is in the file

const wordsOf = (text) => text.toLowerCase().split(/[\s,]+/).filter(Boolean);

// The labels of a cell: the combinations of all labels, in order.
function labelsOf(table, cell) {
  const result = [];
  let left = cell;
  for (const labels of [...table.labels].reverse()) {
    result.unshift(labels[left % labels.length]);
    left = Math.floor(left / labels.length);
  }
  return result;
}

function reader(answer, table, chosen) {
  const at = (name) => answer.columns.indexOf(name);
  const inDigits = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const row = (cell) => answer.rows[table.start + cell];
  const [low, high] = chosen.margin === "all" ? ["all_low", "all_high"] : ["low", "high"];
  const whole = chosen.numbers === "whole";
  const digits = whole ? 0 : table.decimals;
  return {
    whole,
    amount: (cell) => row(cell)[at(whole ? "whole" : "value")],
    number: (value) => inDigits(Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value, digits),
    margin: (cell) => inDigits((row(cell)[at(high)] - row(cell)[at(low)]) / 2, table.decimals),
    labels: (cell) => (table.labels ? labelsOf(table, cell) : [row(cell)[at("cell")]]),
    noisy: (cell) => !whole && answer.noisy[table.start + cell],
  };
}

const marked = (read, cell) => [
  read.noisy(cell) ? h("abbr", { title: "too noisy to read" }, "*") : null,
  read.number(read.amount(cell)),
];

function list(table, read) {
  const count = Math.min(table.cells, MOST);
  const keys = table.labels ? table.keys : ["cell"];
  const heads = [...keys, ...(read.whole ? ["whole number, biased"] : ["estimate", term("margin", "95% margin")])];
  const lines = Array.from({ length: count }, (_, cell) =>
    [...read.labels(cell).map(String), marked(read, cell), ...(read.whole ? [] : [`±\u00a0${read.margin(cell)}`])]);
  return [
    dataTable(`${table.title}, table`, heads, lines, { right: (index) => index === keys.length }),
    table.cells > count ? h("p", { class: "note" }, `… ${table.cells - count} more in the file`) : null,
  ];
}

// Down the column with more values, across the other; every cell has its number, and a shade.
function crosstab(table, read) {
  const [one, other] = table.labels;
  const turned = one.length < other.length;
  const [down, across] = turned ? [other, one] : [one, other];
  const cellNumber = (row, column) => (turned ? column * other.length + row : row * other.length + column);
  const most = Math.max(0, ...Array.from({ length: table.cells }, (_, each) => read.amount(each)));
  const cell = (row, column) => {
    const number = cellNumber(row, column);
    const made = h("td", {}, marked(read, number));
    made.style.setProperty("--heat", String(most ? Math.max(0, read.amount(number) / most) : 0));
    return made;
  };
  const [rows, columns] = turned ? [...table.keys].reverse() : table.keys;
  return [
    h(
      "table",
      { class: "heat" },
      h("caption", {}, `${rows} down, ${columns} across`),
      h("thead", {}, h("tr", {}, h("td", {}), across.map((label) => h("th", { scope: "col" }, String(label))))),
      h("tbody", {}, down.map((label, row) =>
        h("tr", {}, h("th", { scope: "row" }, String(label)), across.map((_, column) => cell(row, column))))),
    ),
    h("p", { class: "note" }, "0 or below", h("span", { class: "heat-bar", "aria-hidden": "true" }), read.number(most)),
  ];
}

function body(answer, table, chosen) {
  const read = reader(answer, table, chosen);
  const two = table.keys.length === 2 && table.labels;
  const [one, all] = table.margins;
  const said = chosen.margin === "all" ? `±\u00a0${all} for all ${table.cells} cells at once` : `±\u00a0${one} for each cell`;
  const margin = read.whole ? "Whole numbers from 0 up: biased, and without margins of error." : [term("margin", "95% margin of error"), `: ${said}.`];
  return [
    h("p", { class: "note" }, margin),
    two ? h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `${table.title}, table` }, crosstab(table, read)) : list(table, read),
  ];
}

function choice(legend, name, chosen, key, options, redraw) {
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, legend),
    options.map(([value, words]) =>
      h("label", {}, h("input", {
        type: "radio",
        name,
        value,
        checked: chosen[key] === value,
        onchange: () => {
          chosen[key] = value;
          redraw();
        },
      }), words)),
  );
}

// `csv`: a button that downloads one table.
export function tables(answer, index, csv) {
  const chosen = { margin: "one", numbers: "value" };
  const small = answer.tables.length <= OPEN.tables && answer.rows.length <= OPEN.cells;
  const drawn = answer.tables.map((table, number) => {
    const inside = h("div", {});
    const cells = table.cells === 1 ? "1 cell" : `${table.cells.toLocaleString("en")} cells`;
    const noisy = table.noisy ? `, ${table.noisy.toLocaleString("en")} too noisy to read` : "";
    const made = h(
      "details",
      { name: small ? null : `tables-${index}`, open: small },
      h("summary", {}, h("strong", {}, table.title), " ", h("span", { class: "soft" }, cells + noisy)),
      inside,
    );
    const draw = () => inside.replaceChildren(...(made.open ? [...body(answer, table, chosen), csv(table, number)] : []).flat().filter(Boolean));
    made.addEventListener("toggle", draw);
    draw();
    return { made, draw, names: wordsOf(table.title) };
  });
  const redraw = () => drawn.forEach((each) => each.draw());
  const find = small ? null : h("input", {
    placeholder: "Find a table by its columns",
    "aria-label": `Find a table of ${answer.title}`,
    autocomplete: "off",
    oninput: (event) => {
      const words = wordsOf(event.target.value);
      for (const { made, names } of drawn) made.hidden = !words.every((word) => names.some((name) => name.startsWith(word)));
    },
  });
  return [
    h("p", {}, answer.agreement),
    h(
      "div",
      { class: "switches" },
      choice("95% margins of error", `margin-${index}`, chosen, "margin", [["one", "for each cell"], ["all", "for all cells of a table at once"]], redraw),
      choice("Numbers", `numbers-${index}`, chosen, "numbers", [["value", "unbiased estimates"], ["whole", "whole numbers (biased)"]], redraw),
    ),
    find,
    h("div", { class: small ? "beside" : "listed" }, drawn.map((each) => each.made)),
  ];
}
