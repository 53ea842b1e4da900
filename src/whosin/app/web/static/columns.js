// The columns of a table, a row each: what they seem to be, what they may hold, and an editor for
// one of them or for several at once.

import { post } from "./api.js";
import { EMPTY, byRow, columns, complete, domainOf, listed, problemOf, readDomain, setDomain, spellList, unfinished, unitColumn } from "./data.js";
import { $, ask, clearErrors, h, showError } from "./dom.js";
import { renderQueries } from "./questions.js";
import { changed } from "./release.js";
import { inPageWords } from "./words.js";

const KINDS = [["none", "not used"], ["values", "a list of values"], ["numbers", "numbers in a range"], ["dates", "dates in a range"]];
const GUESSED = { values: "values", numbers: "numbers", dates: "dates", text: "text" };

let chosen = new Set(); // columns to be set together
let edited = null; // the column whose editor is open
let mayLook = false; // whether somebody here can have chosen by looking at the rows

export function resetColumns() {
  chosen = new Set();
  edited = null;
  $("column-filter").value = "";
  $("group-editor").hidden = true;
}

// A domain in a few words.
function inShort(domain) {
  if (domain.kind === "none") return "not declared";
  if (!complete(domain)) return "not finished";
  const more = [domain.constant ? "the same in all rows" : "", domain.fromRows ? "from the rows" : ""].filter(Boolean);
  return [shape(domain), ...more].join("; ");
}

function shape({ kind, values, lower, upper, edges }) {
  if (kind === "values") {
    const all = listed(values);
    return all.length > 4 ? `${spellList(all.slice(0, 3))} … (${all.length} values)` : spellList(all);
  }
  const bins = listed(edges);
  const by = bins.length === 1 ? `, by ${bins[0]}` : bins.length ? `, ${bins.length - 1} bins` : "";
  return `${lower} to ${upper}${by}`;
}

const described = () => columns().filter((column) => column.name !== unitColumn());

// What the filter lets through: every word is in the name, the kind or what is declared.
function visible() {
  const words = $("column-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  return described().filter(({ name, kind, about }) => {
    const domain = domainOf(name);
    const text = `${name} ${GUESSED[kind] ?? ""} ${about ?? ""} ${inShort(domain)} ${domain.kind === "none" ? "undeclared" : "declared"}`.toLowerCase();
    return words.every((word) => (word === "declared" ? domain.kind !== "none" : text.includes(word)));
  });
}

// The fields of a domain. `label`: what it is about; `path`: its place in a request.
function field(domain, key, words, placeholder, { label, path, said }, more = {}, tag = "input") {
  return h(tag, {
    value: domain[key],
    placeholder,
    "aria-label": `${words} of ${label}`,
    "data-field": path,
    autocomplete: "off",
    oninput: (event) => {
      domain[key] = event.target.value;
      said(key);
    },
    ...more,
  });
}

function bounds(domain, about) {
  const decimal = { inputmode: "decimal" };
  return {
    values: () => [
      field(domain, "values", "values", "surgery, medicine, …", about, { rows: 1 }, "textarea"),
      field(domain, "parents", "parents", "groups of values (optional)", about, { title: "clinic: adults = surgery, medicine; children = paediatrics" }),
    ],
    numbers: () => [
      field(domain, "lower", "lower end", "from", about, decimal),
      field(domain, "upper", "upper end", "to", about, decimal),
      field(domain, "edges", "bins", "bins: 0, 18, 65 (optional)", about),
    ],
    dates: () => [
      field(domain, "lower", "first day", "from 2024-01-01", about),
      field(domain, "upper", "last day", "to 2024-12-31", about),
      field(domain, "edges", "bins", "bins: month (optional)", about),
    ],
    none: () => [h("span", { class: "note" }, "may be used in conditions only")],
  }[domain.kind]();
}

// Where values outside a closed domain go; nothing to choose where there are no cells.
function outside(domain, { label, said }) {
  const cells = domain.kind === "values" || domain.edges.trim();
  if (domain.kind === "none" || (!cells && domain.kind !== "dates")) return null;
  const others =
    domain.kind === "values"
      ? listed(domain.values).map((value) => [value, `count as ${value}`])
      : [["clamp", domain.kind === "dates" ? "count as the first or last day" : "count in the first or last bin"]];
  const choices = [["", "are a group of their own"], ["drop", "do not count"], ...others];
  if (!choices.some(([value]) => value === domain.outside)) domain.outside = ""; // one that is gone
  return h("label", { class: "same" }, "other values ",
    h("select", {
      "aria-label": `Other values in ${label}`,
      onchange: (event) => {
        domain.outside = event.target.value;
        said("outside");
      },
    }, choices.map(([value, text]) => h("option", { value, selected: value === domain.outside }, text))));
}

function tick(domain, key, words, { label, said }) {
  return h("label", { class: "same" },
    h("input", {
      type: "checkbox",
      checked: domain[key],
      "aria-label": `${label}: ${words}`,
      onchange: (event) => {
        domain[key] = event.target.checked;
        said(key);
      },
    }), words);
}

// `close`: the button that ends it.
function domainEditor(domain, about, close) {
  const others = h("div", { class: "others" });
  const own = { ...about, said: (key) => {
    drawOthers();
    about.said(key);
  } };
  const drawOthers = () => {
    if (!others.contains(document.activeElement)) others.replaceChildren(...[outside(domain, own)].filter(Boolean));
  };
  drawOthers();
  return [
    h("label", {}, h("span", { class: "hidden-words" }, `What ${about.label} may hold`),
      h("select", {
        "data-kind": about.label,
        onchange: (event) => {
          domain.kind = event.target.value;
          domain.outside = "";
          about.redraw();
        },
      }, KINDS.map(([value, text]) => h("option", { value, selected: value === domain.kind }, text)))),
    h("div", { class: "bounds" }, bounds(domain, own)),
    h("div", { class: "ticks" },
      domain.kind === "none" || byRow() ? null : tick(domain, "constant", "the same in all rows of a person", own),
      domain.fromRows || (mayLook && domain.kind !== "none") ? tick(domain, "fromRows", "chosen by looking at the rows, which the promise does not cover", own) : null,
      others, close),
  ];
}

const slot = (name) => h("p", { class: "error", "data-error": `domains.${name}` });

function editor(column) {
  const domain = domainOf(column.name);
  const { name } = column;
  let before = unfinished(name);
  const about = {
    label: name,
    path: `domains.${name}`,
    said: (key) => {
      $("columns").querySelector(`[data-short="${CSS.escape(name)}"]`).textContent = inShort(domain);
      countColumns();
      clearErrors(`domains.${name}`);
      showProblems();
      if (["edges", "parents"].includes(key) || before !== unfinished(name)) renderQueries();
      before = unfinished(name);
      changed();
    },
    redraw: () => {
      renderColumns();
      renderQueries();
      changed();
      $("columns").querySelector(`[data-kind="${CSS.escape(name)}"]`)?.focus();
    },
  };
  return h("tr", { class: "editor" }, h("td", { colspan: "4" },
    h("div", { class: "column" }, column.about ? h("p", { class: "note" }, column.about) : null, slot(name), ...domainEditor(domain, about,
      h("button", { type: "button", class: "quiet", "aria-label": `Done with ${name}`, onclick: () => (problemOf(domain) ? $("columns").querySelector(`[data-kind="${CSS.escape(name)}"]`).focus() : open(null, name)) }, "Done")))));
}

// Beside each column what is wrong with what is typed about it.
export function showProblems() {
  for (const { name } of described()) {
    const message = problemOf(domainOf(name));
    if (message) showError({ field: `domains.${name}`, message: name === edited ? message : `${name}: ${message}` }, "domains");
  }
}

// An editor opens with the kind that was guessed; one that is closed without a word changes nothing.
function open(name, focus) {
  const left = edited && domainOf(edited);
  if (left && !complete(left) && ![left.values, left.lower, left.upper].some((text) => text.trim())) setDomain(edited, { ...EMPTY });
  edited = name;
  const domain = name && domainOf(name);
  const guessed = columns().find((column) => column.name === name)?.kind;
  if (domain?.kind === "none" && guessed && guessed !== "text") domain.kind = guessed;
  renderColumns();
  renderQueries();
  changed();
  if (name) {
    $("columns").querySelector(`[data-kind="${CSS.escape(name)}"]`).focus();
    for (const part of $("columns").querySelectorAll(".editor, .opened")) part.scrollIntoView({ block: "nearest" }); // whole
  }
  else $("columns").querySelector(`[data-edit="${CSS.escape(focus)}"]`)?.focus();
}

function row(column) {
  const { name, kind, type } = column;
  const domain = domainOf(name);
  const shown = edited === name;
  return [
    h("tr", { class: shown ? "opened" : null },
      h("td", { class: "tick" }, h("input", {
        type: "checkbox", checked: chosen.has(name), "aria-label": `Choose ${name}`,
        onchange: (event) => {
          chosen[event.target.checked ? "add" : "delete"](name);
          renderGroup();
        },
      })),
      h("th", { scope: "row", title: type }, name, " ", h("span", { class: "soft" }, GUESSED[kind] ?? type)),
      h("td", {}, h("span", { "data-short": name, class: domain.kind === "none" ? "soft" : null }, inShort(domain)), shown ? null : slot(name)),
      h("td", { class: "r" }, h("button", { type: "button", class: "quiet", "data-edit": name, "aria-expanded": String(shown), "aria-label": `Edit ${name}`, onclick: () => open(shown ? null : name, name) }, shown ? "Done" : "Edit"))),
    shown ? editor(column) : null,
  ];
}

export function renderColumns() {
  const all = described();
  chosen = new Set(all.map((column) => column.name).filter((name) => chosen.has(name)));
  const rows = visible();
  $("columns").replaceChildren(...rows.flatMap(row).filter(Boolean));
  $("column-all").checked = rows.length > 0 && rows.every(({ name }) => chosen.has(name));
  countColumns();
  renderGroup();
}

function countColumns() {
  const all = described();
  const done = all.filter(({ name }) => complete(domainOf(name))).length;
  const listedNow = visible().length;
  $("column-count").textContent = `${done} of ${all.length} declared${listedNow < all.length ? `, ${listedNow} listed` : ""}`;
}

function renderGroup() {
  $("column-group").hidden = chosen.size === 0;
  if (!chosen.size) $("group-editor").hidden = true;
  $("column-chosen").textContent = chosen.size === 1 ? "1 column chosen" : `${chosen.size} columns chosen`;
}

function setChosen(domainFor) {
  for (const name of chosen) setDomain(name, domainFor(name));
  chosen = new Set();
  edited = null;
  renderColumns();
  renderQueries();
  changed();
  $("column-filter").focus();
}

// One domain for all that are chosen.
function groupEditor() {
  const first = columns().find(({ name }) => chosen.has(name));
  const domain = { ...EMPTY, kind: first && first.kind !== "text" ? first.kind : "values" };
  const draw = () => {
    const said = () => {
      clearErrors("columns");
      const message = problemOf(domain);
      if (message) showError({ field: "columns", message }, "columns");
      return message === null;
    };
    const about = { label: "the chosen columns", path: "columns", said, redraw: draw };
    $("group-editor").replaceChildren(h("div", { class: "column" }, ...domainEditor(domain, about,
      h("button", { type: "button", class: "primary", onclick: () => said() && setChosen(() => ({ ...domain })) }, "Apply"))));
    $("group-editor").querySelector("select").focus();
  };
  $("group-editor").hidden = false;
  draw();
}

// For curators: what the rows hold, marked so.
async function lookUp() {
  clearErrors("columns");
  const names = [...chosen];
  const sure = await ask("Look up from the rows?", [
    `What ${names.length === 1 ? `${names[0]} holds` : `these ${names.length} columns hold`} is read off the rows. A domain that was chosen by looking tells something about the rows, which the promise does not cover; the scenario and the report say so.`,
    "Where the values are publicly known, type them instead.",
  ], "Look up");
  if (!sure) return;
  try {
    const draft = await post("/api/draft/rows", { source: $("source").value, columns: names });
    const found = new Map(draft.columns.filter((column) => column.domain !== null).map((column) => [column.name, column.domain]));
    const missing = names.filter((name) => !found.has(name));
    setChosen((name) => (found.has(name) ? { ...readDomain(found.get(name)), fromRows: true } : domainOf(name)));
    if (missing.length) showError({ field: "columns", message: `${missing.join(", ")}: too many values to list.` }, "columns");
  } catch (error) {
    showError({ ...inPageWords(error), field: "columns" }, "columns");
  }
}

export function startColumns(curator) {
  mayLook = curator;
  $("group-rows").hidden = !curator;
  $("column-filter").addEventListener("input", renderColumns);
  $("column-all").addEventListener("change", () => {
    for (const { name } of visible()) chosen[$("column-all").checked ? "add" : "delete"](name);
    renderColumns();
  });
  $("group-domain").addEventListener("click", groupEditor);
  $("group-none").addEventListener("click", () => setChosen(() => ({ ...EMPTY })));
  $("group-rows").addEventListener("click", lookUp);
}
