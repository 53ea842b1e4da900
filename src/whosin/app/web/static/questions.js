// The steps Questions and Price: what is asked, and its cost and expected error before anything runs.

import { columns, declaredColumns, domains, isThere, unitChosen, unitColumn, groupable, isPeriod, problemOfTable, relatedKeys, stillDeclared, summable, tableKeys, unfinished } from "./data.js";
import { get, post } from "./api.js";
import { $, allowed, clearErrors, h, labelled, showError } from "./dom.js";
import { fieldControls, fieldKeys, loadFields, namesTables } from "./fields.js";
import { costLine, expectations, sentence, suggestions, tableEstimates } from "./estimates.js";
import { term } from "./glossary.js";
import { changed } from "./release.js";
import { go } from "./steps.js";
import { capital } from "./words.js";

// By kind, as /api/kinds lists them. column: which columns it can be about; by: whether it can be
// grouped; columns: whether it is about several; extra: a key of its own, its label, an example;
// more: further keys, as fields.js shows them.
const KINDS = {};

async function readKinds() {
  for (const kind of (await get("/api/kinds")).queries) {
    if (kind.keys.includes("universe")) continue; // a list that no page could show
    KINDS[kind.kind] = {
      label: kind.label,
      named: kind.named,
      column: kind.column,
      by: kind.keys.includes("by") && kind.column !== "cells",
      needsBy: kind.kind === "top",
      columns: kind.keys.includes("columns"),
      where: !kind.writes_file,
      extra: kind.extra.length ? kind.extra : undefined,
      more: kind.more,
    };
  }
}

// {kind, name, column, by: Set (for synthetic tables: their columns), where, weight, extra,
//  typed: what was said for further keys, kept: other keys of a scenario, open: whether it is
//  unfolded}
let asked = [];
const MOST_OPEN = 2; // questions that fit the screen unfolded

const choices = (kind) => {
  const about = KINDS[kind].column;
  if (about === "cells") return groupable();
  if (about === "periods") return groupable().sort((one, other) => isPeriod(other) - isPeriod(one));
  if (about === "any") return columns().map((column) => column.name).filter((name) => name !== unitColumn());
  return declaredColumns(about);
};

const numeric = (text) => (/^-?\d+$/.test(text) ? Number(text) : text);

// The questions that can be asked now; `askable` says which of those on the page they are.
export function queries() {
  return askable().map((index) => {
    const query = asked[index];
    const shape = KINDS[query.kind] ?? {};
    const keys = { kind: query.kind };
    if (query.name.trim()) keys.name = query.name.trim();
    if (shape.column) keys.column = query.column;
    if (query.by.size) keys[shape.columns ? "columns" : "by"] = [...query.by];
    if (shape.extra && query.extra.trim()) keys[shape.extra[0]] = numeric(query.extra.trim());
    if (query.where.trim()) keys.where = query.where.trim();
    if (query.weight.trim() && query.weight.trim() !== "1") keys.weight = numeric(query.weight.trim());
    return { ...query.kept, ...fieldKeys(shape.more ?? [], query.typed), ...keys };
  });
}

// What a question still needs, in words; nothing if it can be asked.
function missing(query) {
  const shape = KINDS[query.kind] ?? {};
  const used = [...(shape.column ? [query.column] : []), ...query.by].filter(Boolean);
  const strange = used.find((name) => !isThere(name));
  if (strange) return `there is no ${strange} in this table`;
  const open = used.find((name) => unfinished(name));
  if (open) return `say under People what ${open} may hold`;
  if (shape.column && query.column && !choices(query.kind).includes(query.column)) {
    return {
      numbers: `say under People between which numbers ${query.column} is`,
      cells: `declare ${query.column} under People, as a list of values or with bins`,
      periods: `declare a column of dates under People, or choose the column of periods`,
      any: `${query.column} says whose row it is: choose another column`,
    }[shape.column];
  }
  const apart = [...query.by].find((name) => !offered(query).includes(name));
  if (apart) return `declare ${apart} under People, as a list of values or with bins, or leave it out`;
  if (shape.column && !query.column) {
    return {
      numbers: "declare a column of numbers under People, with both ends",
      cells: "declare a column under People, as a list of values or with bins",
      periods: "declare a column of dates under People, or choose the column of periods",
      any: "the table needs another column",
    }[shape.column];
  }
  if ((shape.needsBy || (shape.columns && !namesTables(shape.more, query.typed))) && !query.by.size) {
    return groupable().length ? "choose a column" : "declare a column under People, as a list of values or with bins";
  }
  return null;
}

export const askable = () => [...asked.keys()].filter((index) => missing(asked[index]) === null);
export const allFinished = () => asked.length > 0 && askable().length === asked.length;

export function loadQueries(given) {
  asked = questions(given);
  renderQueries();
}

function questions(given) {
  return given.map(({ kind, name, column, columns: several, by = several, where, weight, ...kept }) => {
    const shape = KINDS[kind] ?? {};
    const [extra, , example = ""] = shape.extra ?? [];
    const text = String(kept[extra] ?? example);
    delete kept[extra];
    const typed = loadFields(shape.more ?? [], kept);
    const names = new Set(typeof by === "string" ? [by] : (by ?? []));
    return { kind, name: name ?? "", column: column ?? "", by: names, where: where ?? "", weight: String(weight ?? 1), extra: text, typed, kept, open: given.length <= MOST_OPEN };
  });
}

function text(query, index, key, label, placeholder = "") {
  const id = `query-${index}-${key}`;
  const field = `queries.${index}.${key === "extra" ? KINDS[query.kind].extra[0] : key}`;
  const typed = (event) => {
    query[key] = event.target.value;
    changed();
  };
  return labelled(label, h("input", { id, value: query[key], placeholder, autocomplete: "off", "data-field": field, oninput: typed }), field);
}

function about(query, index) {
  const id = `query-${index}-column`;
  const names = choices(query.kind);
  query.column ||= (KINDS[query.kind].column === "periods" ? names.find(isPeriod) : names[0]) ?? "";
  if (query.column && !names.includes(query.column)) names.push(query.column); // what was chosen is never another one by itself
  const { column: takes } = KINDS[query.kind];
  const lack = { cells: "declare values or bins first", periods: "choose …" }[takes] ?? "declare a range first";
  const options = names.map((name) => h("option", { value: name, selected: name === query.column }, name));
  const chosen = (event) => {
    query.column = event.target.value;
    changed();
  };
  const field = `queries.${index}.column`;
  return labelled(takes === "periods" ? "Periods" : "Column", h("select", { id, "data-field": field, onchange: chosen }, query.column ? [] : h("option", { value: "" }, lack), options), field);
}

// What a question can be grouped by. A scenario may name what this page does not offer, such as
// cumulative(canton).
function offered({ kind, by }) {
  const takesSums = KINDS[kind].more?.some((field) => field.takes === "ranges");
  return [...groupable(), ...(takesSums ? [...summable(), ...[...by].filter(stillDeclared)] : [])];
}

function groups(query, index) {
  const names = [...new Set([...offered(query), ...query.by])];
  const [key, label] = KINDS[query.kind].columns ? ["columns", "Columns"] : ["by", "For each"];
  if (!names.length) {
    return KINDS[query.kind].columns ? h("p", { class: "note" }, "Declare values or bins of a column first.") : null;
  }
  return h(
    "div",
    { role: "group", "aria-label": `question ${index + 1}, ${label.toLowerCase()}` },
    h("span", { class: "label" }, label),
    h(
      "div",
      { class: "by" },
      names.map((name) =>
        h(
          "label",
          {},
          h("input", {
            type: "checkbox",
            checked: query.by.has(name),
            onchange: (event) => {
              query.by[event.target.checked ? "add" : "delete"](name);
              changed();
            },
          }),
          name,
        ),
      ),
    ),
    h("p", { class: "error", "data-error": `queries.${index}.${key}` }),
  );
}

function card(query, index) {
  const shape = KINDS[query.kind] ?? {};
  const column = shape.column ? about(query, index) : null; // before the name, which has it
  const fields = fieldControls(shape.more ?? [], query.typed, index, changed, (id) => {
    renderQueries();
    $(id).focus();
  });
  const fold = h(
    "details",
    { open: query.open },
    h("summary", {}, h("strong", { id: `title-${index}` }, nameOf(query)), h("span", { class: "soft", id: `short-${index}` }, inShort(query))),
    h(
      "div",
      { class: "fields" },
      text(query, index, "name", "Call it", "optional"),
      column,
      shape.by || shape.columns ? groups(query, index) : null,
      shape.extra ? text(query, index, "extra", capital(shape.extra[1])) : null,
      fields.choices,
      shape.where === false ? null : text(query, index, "where", "Only rows where", "age >= 65 and ward = 'A'"),
      text(query, index, "weight", "Weight in the budget", "1"),
    ),
    fields.more,
  );
  fold.addEventListener("toggle", () => {
    query.open = fold.open;
  });
  return h(
    "section",
    { class: "query", "aria-label": `question ${index + 1}` },
    fold,
    h("button", {
      type: "button",
      class: "quiet",
      "aria-label": `Remove question ${index + 1}`,
      onclick: () => {
        removeQuestion(index);
        $("kind").focus();
      },
    }, "Remove"),
    h("p", { class: "error", "data-error": `queries.${index}` }),
    h("p", { class: "cost open", id: `open-${index}` }),
  );
}

export function removeQuestion(index) {
  asked.splice(index, 1);
  renderQueries();
  changed();
}

// A question as its answer is called in every report: mean of wage by union.
function inWords({ kind, column: about, by }) {
  const { named = kind, column = "" } = KINDS[kind] ?? {};
  const counted = ["cells", "periods"].includes(column); // apart, by the column
  const groups = [...(counted && about ? [about] : []), ...by];
  return capital(`${named}${column && !counted && about ? ` of ${about}` : ""}${groups.length ? ` by ${groups.join(", ")}` : ""}`);
}

const inShort = (query) => [query.name.trim() && inWords(query), condition(query)].filter(Boolean).join(" · ");

// What this page calls a question: by itself, and with the rows that it is about.
const nameOf = (query) => query.name.trim() || inWords(query);
const condition = (query) => query.where.trim() && `where ${query.where.trim()}`;
const wholeName = (query) => [nameOf(query), condition(query)].filter(Boolean).join(" ");
export const pageName = (batch, title) => {
  const query = asked[questionTitled(batch, title)];
  return query ? wholeName(query) : title;
};

// What will be asked, and what each answer costs, for whoever is about to pay.
export const costLines = (batch) => askable().map((index, place) => `${wholeName(asked[index])}: ${batch.estimates[place].cost}`);

// The question of this title in the newest estimate.
export const questionTitled = (batch, title) => askable()[batch.estimates.findIndex((each) => each.title === title)];

function price(query, index) {
  return h(
    "section",
    { class: "price", "aria-label": `price of question ${index + 1}` },
    h("h3", {}, wholeName(query)),
    h("p", { class: "cost", id: `cost-${index}` }),
    h("div", { id: `estimate-${index}` }),
    h("div", { id: `cautions-${index}` }),
  );
}

export function renderQueries() {
  const ready = columns().length > 0 && unitChosen();
  $("ask-hint").hidden = ready && asked.length > 0;
  $("ask-hint").textContent = ready
    ? "Nothing is asked yet."
    : problemOfTable()
      ? "The table cannot be opened; Data says why."
      : columns().length
        ? "Say under People whose row it is."
        : "Choose a table first.";
  $("add-query").hidden = !ready;
  $("sql-box").hidden = !ready;
  $("budget").hidden = $("share-field").hidden = !asked.length;
  $("total").textContent = ready && asked.length ? "Working out the price …" : "";
  $("better").replaceChildren();
  $("queries").replaceChildren(...(ready ? asked.map(card) : []));
  $("prices").replaceChildren(...(ready ? asked.map(price) : []));
}

// What of these steps survives a reload.
export const questionState = () => asked.map((query) => ({ ...query, by: [...query.by] }));

export function restoreQuestions(kept) {
  asked = kept.map((query) => ({ ...query, by: new Set(query.by) }));
  renderQueries();
}

export const countAsked = () => asked.length;

// A default that nobody chose, in the words of this page.
function caution({ about, columns: several, words }) {
  if (about === "noise") return sentence(words.replace('noise = "laplace"', "Laplace noise")).trim();
  const one = several[0];
  const are = several.length > 1 ? "are" : "is";
  const same = one ? `, or tick that ${several.join(" and ")} ${are} the same in all rows of a person` : "";
  return about === "max_groups"
    ? `A person counts in one group only, though ${several.join(" and ")} may differ between their rows. Say under People how many groups a person counts in${same}.`
    : `Of a person with several rows only one counts, chosen at random. Say under People how many rows of a person count${same}.`;
}

// Cautions that several questions have in common, each said once of all of them.
function sharedCautions(batch, asking) {
  const said = new Map();
  for (const [place, index] of asking.entries()) {
    for (const each of batch?.estimates[place].cautions ?? []) {
      const key = each.about === "noise" ? each.words : each.about;
      if (key !== "delta") said.set(key, [...(said.get(key) ?? []), { each, index }]);
    }
  }
  return [...said.values()].filter((group) => group.length > 1);
}

function sharedCaution(group) {
  // A tick helps all of them only where each of them has a column to tick.
  const all = group.every(({ each }) => each.columns.length);
  const columns = all ? [...new Set(group.flatMap(({ each }) => each.columns))] : [];
  return h("p", { class: "caution" }, h("strong", {}, `${group.map(({ index }) => wholeName(asked[index])).join(" · ")}: `), caution({ ...group[0].each, columns }));
}

// How much of the promise a batch spends.
export const ofPromise = ({ total_epsilon: total, epsilon }) =>
  (total !== null && Math.abs(total - epsilon) < 1e-9 * epsilon ? ", all that is promised" : ` of ε = ${allowed(epsilon)}`);

// `apply`: what each change that is suggested does to the form. `asksWhose`: whether nobody has said
// yet whose budget pays.
export function showEstimate(batch, apply = {}, asksWhose = false) {
  const asking = askable();
  const shared = sharedCautions(batch, asking);
  const own = (caution) => caution.about !== "delta" && !shared.flat().some(({ each }) => each === caution);
  $("cautions").replaceChildren(...shared.map(sharedCaution));
  for (const [index, query] of asked.entries()) {
    const estimate = batch?.estimates[asking.indexOf(index)];
    const line = $(`cost-${index}`);
    if (!line) continue;
    const lack = missing(query);
    const shown = $(`estimate-${index}`);
    const open = shown.querySelector("details")?.open ?? false;
    const known = estimate && lack === null;
    shown.replaceChildren(...(known ? [...expectations(estimate), tableEstimates(estimate, open)].filter(Boolean) : []));
    $(`title-${index}`).textContent = nameOf(query);
    $(`short-${index}`).textContent = inShort(query);
    line.classList.toggle("open", lack !== null);
    $(`cautions-${index}`).replaceChildren(
      ...(estimate?.cautions ?? []).filter(own).map((each) => h("p", { class: "caution" }, caution(each))),
      ...(known && !batch.stored && batch.paid[asking.indexOf(index)] ? [h("p", { class: "caution" }, "This was asked and paid for before, and its answer is stored. Here it would be asked anew, and paid for again.")] : []),
    );
    line.closest(".price").querySelector("h3").textContent = wholeName(query);
    $(`open-${index}`).textContent = lack === null ? "" : `Not finished: ${lack}.`;
    if (lack !== null) line.textContent = `Not finished, and not in the cost: ${lack}.`;
    else if (!estimate) line.textContent = "";
    else {
      line.replaceChildren(...costLine(estimate));
    }
  }
  $("better").replaceChildren(...suggestions(batch?.suggestions ?? [], apply, (title) => pageName(batch, title)));
  const open = asked.length - asking.length;
  const rest = open ? ` ${open === 1 ? "One question is" : `${open} questions are`} not finished, and not in this cost.` : "";
  $("leave-paid").hidden = !batch || batch.stored !== null || !batch.paid.some(Boolean) || batch.paid.every(Boolean);
  if (!batch) {
    $("total").textContent = rest.trim();
    return;
  }
  const left = asksWhose
    ? `The ledger knows ${batch.lookalikes.map((name) => `“${name}”`).join(" and ")} with the same columns: Release asks whose budget pays.`
    : batch.remaining === null
    ? batch.refusal ? "" : `“${batch.dataset}” is new to the ledger: this promise becomes its whole budget.`
    : `The ledger has ε = ${allowed(batch.remaining)} left for “${batch.dataset}”${batch.today === batch.remaining ? "" : `, and you can spend ε = ${allowed(batch.today)} on these questions today`}.`;
  const unused = batch.estimates.flatMap((each) => each.cautions).find((each) => each.about === "delta");
  const paid = batch.stored ? ", paid for before: showing the stored answers spends nothing" : ofPromise(batch);
  $("total").replaceChildren("In all ", term("budget", batch.total), `${paid}. ${left}${rest}${sentence(unused?.words.replace("delta", "δ"))}`);
}

function addQuestion(kind) {
  const extra = KINDS[kind].extra?.[2] ?? "";
  if (asked.length >= MOST_OPEN) for (const query of asked) query.open = false;
  asked.push({ kind, name: "", column: "", by: new Set(), where: "", weight: "1", extra, typed: {}, kept: {}, open: true });
}

// Have the questions of a kind, a new one if there is none, take just the budget for this width.
export function askWithin(kind, within) {
  if (!asked.some((query) => query.kind === kind)) addQuestion(kind);
  for (const query of asked) if (query.kind === kind) Object.assign(query, { typed: { ...query.typed, within: { text: within } }, open: true });
  renderQueries();
  changed();
  const field = `query-${asked.findIndex((query) => query.kind === kind)}-within`;
  window.addEventListener("hashchange", () => $(field)?.focus(), { once: true });
  go("questions");
}

export async function startQuestions() {
  await readKinds();
  $("kind").replaceChildren(
    ...Object.entries(KINDS).map(([kind, shape]) => h("option", { value: kind }, shape.label)),
  );
  $("add").addEventListener("click", () => {
    addQuestion($("kind").value);
    renderQueries();
    changed();
    $(`query-${asked.length - 1}-name`).focus();
  });
  $("add-sql").addEventListener("click", addSql);
}

// A SELECT becomes questions, which are shown, changed and estimated like others.
async function addSql() {
  clearErrors("sql");
  try {
    const body = { table: tableKeys(), domains: domains(), ...relatedKeys(), sql: $("sql").value };
    asked.push(...questions((await post("/api/sql", body)).queries));
    renderQueries();
    changed();
  } catch (error) {
    showError(error, "sql");
  }
}
