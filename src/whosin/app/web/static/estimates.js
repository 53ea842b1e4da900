// What a question would cost and how good its answer would be, before anything is spent.

import { atMost, dataTable, h, number } from "./dom.js";
import { term } from "./glossary.js";

// Words as one more sentence of a line.
export const sentence = (words) => (words ? ` ${words[0].toUpperCase()}${words.slice(1).replace(/\.$/, "")}.` : "");

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
  const rows = (listed, last) => listed.map((each) => [named(each), last(each)]);
  const form = { right: Boolean, room: "tall" };
  return h(
    "details",
    { class: "estimated", open },
    h("summary", {}, `${count}: the standard error of a cell is ${range}`),
    h(
      "div",
      { class: "pair" },
      dataTable("how exact each table will be", ["table", term("table", "standard error of a cell")], rows(tables, error), form),
      dataTable("what will be measured", ["will be measured", "at the cost of"], rows(measured, (each) => `${each.differences?.length ? "differences, " : ""}${cost(each)}`), form),
    ),
  );
}

// What an answer costs, its noise, and how far it will be from the truth where one number says it.
export function costLine(estimate) {
  const error = estimate.error === null ? [] : [", ", term("error", "expected error"), ` ±\u00a0${number(estimate.error, 3)}`];
  const within = estimate.within === null || estimate.within_words ? [] : [", ", term("within", "95% within"), ` ±\u00a0${atMost(estimate.within, 3)}`];
  return [term("cost", "Costs"), ` ${estimate.cost}`, ...error, ...within, ". ", term("scale", sentence(estimate.noise).trim()), estimate.noise.includes("95% within") ? "" : sentence(estimate.within_words), gain(estimate)];
}

// Whether the interval will be the whole declared range, whatever the size of a group.
const saysNothing = ({ expected }) => expected.length > 0 && expected.every((each) => each.fills_range);

// How good it will be by the size of a group, which groups can be read, and whether it says anything.
export function expectations(estimate) {
  const { sizes, readable_words: readable, readable_unit: unit } = estimate;
  const by = sizes.map(([size, words]) => `${size} → ${words.replace("±", "±\u00a0")}`).join(", ");
  const counted = estimate.expected.some((each) => each.shown !== undefined) ? "people" : unit === "sum" ? "rows" : unit;
  const lines = [
    by || readable
      ? h("p", { class: "note" }, by ? [term("sizes", `By the ${counted} in a group`), `: ${by}. ${by.includes("*") ? "* Too noisy to read. " : ""}`] : null, readable ? term("noisy", sentence(readable).trim()) : null)
      : null,
    saysNothing(estimate) ? h("p", { class: "caution" }, "The 95% interval would be the whole declared range: this answer would say nothing. Give it more of the budget, declare a narrower range, or leave it out.") : null,
  ];
  return lines.filter(Boolean);
}

// A change that was tried, in the words of this page. `nameOf`: what it calls the question of a title.
function suggestionWords({ change, query, before, after, about: titles, delta, added_up: added, alone, words }, nameOf) {
  const about = titles.map(nameOf);
  const within = (value) => `±\u00a0${atMost(value, 3)}`;
  const what = {
    "ask-once": `“${about[0]}” is inside “${about[1]}”: leave it out, and add up the groups`,
    gaussian: `Gaussian noise${delta === undefined ? "" : `, for a promise that may fail with probability δ = ${delta}`}`,
    optimal: "Divide the budget for the least error",
  }[change];
  if (!what) return words;
  const sums = added === undefined ? "" : `, and “${about[0]}”, added up, ${within(added)}${alone === undefined ? "" : ` instead of ${within(alone)}${added > alone ? ", which is worse" : ""}`}`;
  return `${what}: “${nameOf(query)}” ${within(after)} instead of ${within(before)}${sums}.`;
}

// `apply`: by kind of change, what it does to the form.
export function suggestions(found, apply, nameOf) {
  if (!found.length) return [];
  const line = (each) => {
    const words = suggestionWords(each, nameOf);
    return h("li", {}, h("span", {}, words), apply[each.change] ? h("button", { type: "button", "aria-label": `Apply: ${words}`, onclick: () => apply[each.change](each) }, "Apply") : null);
  };
  return [h("section", { class: "better", "aria-label": "What would make it better" }, h("h3", {}, term("within", "What would make it better")), h("ul", {}, found.map(line)))];
}
