// The keys of a question that this page has no place of its own for, as /api/kinds lists them:
// what each takes, its words, its default, and to which word of another key it belongs.

import { h } from "./dom.js";
import { capital, choiceWords, labelOf } from "./words.js";

const numeric = (text) => (/^-?\d+$/.test(text) ? Number(text) : text);
const parts = (text, by) => text.split(by).map((part) => part.trim());

// Between what a scenario holds and what is typed.
const SPELL = {
  sets: (value) => value.map((set) => set.join(", ") || "total").join("; "),
  numbers: (value) => value.join(", "),
  ranges: (value) => Object.entries(value).map(([column, ends]) => `${column}: ${ends.map((pair) => pair.join("..")).join(", ")}`).join("; "),
  flag: (value) => value === true,
  word: (value) => (value === false ? "" : String(value)),
};
const READ = {
  sets: (text) => parts(text, ";").filter(Boolean).map((set) => (set === "total" ? [] : parts(set, ","))),
  numbers: (text) => parts(text, ",").filter(Boolean).map(numeric),
  ranges: (text) => Object.fromEntries(parts(text, ";").filter(Boolean).map((part) => {
    const [column, ends = ""] = parts(part, ":");
    return [column, parts(ends, ",").filter(Boolean).map((pair) => parts(pair, "..").map(numeric))];
  })),
  flag: (value) => value,
  word: (text) => (text === "true" ? true : text),
};
// A flag that takes words as well is a word.
const kindOf = ({ takes, choices }) => (takes === "flag" && choices.length ? "word" : takes);
const EXAMPLES = { sets: "sex, ward; age; total", numbers: "1, 2", ranges: "age: 18..30, 25..65" };
const SHAPES = {
  sets: (value) => Array.isArray(value) && value.every(Array.isArray),
  numbers: Array.isArray,
  ranges: (value) => Object.values(value).every((ends) => Array.isArray(ends) && ends.every(Array.isArray)),
};

// What a loaded scenario says, by key; `given` is kept as it was until somebody changes the text.
export function loadFields(fields, kept) {
  const typed = {};
  for (const field of fields) {
    const { key } = field;
    const takes = kindOf(field);
    if (kept[key] === undefined) continue;
    if (SHAPES[takes] && !SHAPES[takes](kept[key])) continue;
    const text = (SPELL[takes] ?? String)(kept[key]);
    typed[key] = { text, given: { text, value: kept[key] } };
    delete kept[key];
  }
  return typed;
}

const textOf = (typed, field) => typed[field.key]?.text ?? field.default;
const belongs = (fields, typed, { only_with: [other, word] }) => {
  const chooser = fields.find((field) => field.key === other);
  return !chooser || textOf(typed, chooser) === word;
};

// The keys of a scenario that were said.
export function fieldKeys(fields, typed) {
  const keys = {};
  for (const field of fields) {
    const { text, given } = typed[field.key] ?? {};
    if (text === undefined || text === false || text === field.default || !belongs(fields, typed, field)) continue;
    const takes = kindOf(field);
    if (takes !== "flag" && !text.trim()) continue;
    keys[field.key] = given?.text === text ? given.value : (READ[takes] ?? numeric)(takes === "flag" ? text : text.trim());
  }
  return keys;
}

export const namesTables = (fields, typed) =>
  fields.some((field) => field.takes === "sets" && textOf(typed, field).trim() && belongs(fields, typed, field));

function control(field, id, path, typed, changed, redraw) {
  const keep = (text, again = false) => {
    typed[field.key] = { text, given: typed[field.key]?.given };
    if (again) redraw(id);
    changed();
  };
  const named = { id, "data-field": path, "aria-describedby": field.help ? `${id}-help` : null };
  const text = textOf(typed, field);
  if (field.choices.length) {
    return h("select", { ...named, onchange: (event) => keep(event.target.value, true) },
      [...(field.takes === "flag" ? [["", "no"], ["true", "yes"]] : []), ...field.choices.map((word) => [word, choiceWords(word)])].map(([word, words]) =>
        h("option", { value: word, selected: word === text }, words)));
  }
  if (field.takes === "flag") {
    return h("input", { ...named, type: "checkbox", checked: Boolean(text), onchange: (event) => keep(event.target.checked) });
  }
  return h("input", { ...named, value: text, placeholder: EXAMPLES[field.takes] ?? "", autocomplete: "off", oninput: (event) => keep(event.target.value) });
}

const inPersons = (words) => words.replace(/`(\w+)`/g, (_, key) => `“${labelOf(key)}”`).replace(/"(\w+)"/g, (_, word) => `“${choiceWords(word)}”`).replace(/\bprivacy unit(s?)\b/g, (_, several) => (several ? "people" : "person"));

// Those with a choice of words at once, the others under “More”.
export function fieldControls(fields, typed, index, changed, redraw) {
  const made = (field) => {
    const id = `query-${index}-${field.key}`;
    const path = `queries.${index}.${field.key}`;
    const input = control(field, id, path, typed, changed, redraw);
    const label = h("label", { for: id }, labelOf(field.key));
    return h(
      "div",
      { class: kindOf(field) === "flag" ? "flag" : null },
      kindOf(field) === "flag" ? [input, label] : [label, input],
      field.help ? h("p", { class: "note", id: `${id}-help` }, capital(inPersons(field.help))) : null,
      h("p", { class: "error", "data-error": path }),
    );
  };
  const visible = fields.filter((field) => belongs(fields, typed, field));
  const rest = visible.filter((field) => !field.choices.length);
  return {
    choices: visible.filter((field) => field.choices.length).map(made),
    more: rest.length
      ? h("details", { class: "advanced", open: rest.some((field) => typed[field.key]?.text) }, h("summary", {}, "More about this question"), h("div", { class: "fields" }, rest.map(made)))
      : null,
  };
}
