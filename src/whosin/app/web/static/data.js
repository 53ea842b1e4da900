// The steps Data and People: the table, whose rows they are, and what its columns may hold.

import { forgetOccasion } from "./about.js";
import { get, call, post } from "./api.js";
import { renderColumns, resetColumns, startColumns } from "./columns.js";
import { $, ask, clearErrors, dataTable, h, labelled, onFile, showError } from "./dom.js";
import { changed, takePromise } from "./release.js";
import { countAsked, renderQueries } from "./questions.js";
import { inLabels, inPageWords } from "./words.js";

export const EMPTY = { kind: "none", values: "", lower: "", upper: "", edges: "", constant: false, outside: "", parents: "", fromRows: false, given: null };
const EACH = ["row", "each row"]; // how a scenario says that each row is one person

const EXAMPLES = { max_rows_per_group: 3, max_groups: 2, people: 400 };
const OPTIONS = { max_rows_per_group: "max_rows_per_group", max_groups: "max_groups", from_rows: "table-from-rows", people: "table-people", part: "table-part" }; // fields by key

let tableColumns = []; // columns of the chosen table
let declared = new Map(); // column → as EMPTY
let related = {}; // tables and features of a scenario that was loaded
let broken = null; // why the chosen table cannot be opened
let perhaps = []; // columns that may say whose row it is
let openName = ""; // the table whose columns these are
let left = null; // what was said of the table before, until the next one is open
let titled = ""; // the title that comes with the table, until somebody types another one

const titleOf = (name) => name.split("::").at(-1).split(".")[0];

const named = (name) => tableColumns.some((column) => column.name === name);
const spelled = (name) => (EACH.includes(name) ? `column:${name}` : name);
const eachRow = () => (named("row") ? "each row" : "row");

export const columns = () => tableColumns;
export const domainOf = (name) => declared.get(name);
export const setDomain = (name, domain) => declared.set(name, domain);
export const problemOfTable = () => broken;
export const unitChosen = () => $("privacy_unit").value !== "";
export const byRow = () => unitChosen() && $("privacy_unit").value === eachRow();
export const unitColumn = () =>
  tableColumns.map((column) => column.name).find((name) => spelled(name) === $("privacy_unit").value) ?? null;

// A number as it is typed: 0.5, or 1/2.
export const amount = (text) => text.split("/").map((part) => (part.trim() ? Number(part) : NaN)).reduce((top, bottom) => top / bottom);

// What is wrong with what is typed about a column; nothing for what can be used or goes on.
export function problemOf({ kind, values, lower, upper, edges }) {
  if (kind === "values") {
    const twice = listed(values).find((value, place, all) => all.indexOf(value) !== place);
    return twice === undefined ? null : `${twice} is listed twice.`;
  }
  const [ends, bins] = [[lower, upper].map((end) => end.trim()), listed(edges)];
  if (kind === "none" || ends.includes("")) return null;
  const falls = (each, place, all) => place > 0 && (kind === "dates" ? all[place - 1] > each : amount(all[place - 1]) > amount(each));
  const isDay = (end) => /^\d{4}-\d\d-\d\d$/.test(end); // the server reads further ways to say a date
  if (kind === "dates" && !ends.every(isDay)) return null;
  const strange = kind === "numbers" ? [...ends, ...bins].find((end) => Number.isNaN(amount(end))) : undefined;
  if (strange !== undefined) return `“${strange}” is no number.`;
  if (ends.some(falls)) return `The range ends (${ends[1]}) before it begins (${ends[0]}).`;
  return bins.some(falls) && (kind === "numbers" || bins.every(isDay)) ? `Bins go up: ${bins[bins.findIndex(falls)]} comes after ${bins[bins.findIndex(falls) - 1]}.` : null;
}

// What is declared about a column is complete enough to be used.
export const complete = (domain) =>
  problemOf(domain) === null && (domain.kind === "values" ? domain.values.trim() !== "" : domain.kind !== "none" && domain.lower.trim() !== "" && domain.upper.trim() !== "");

// The upper levels of a column, as a scenario has them and as they are typed, one after the other:
// canton: ZH = Zürich, Winterthur; BE = Bern | language: de = ZH, BE
const readParents = (text, value) =>
  Object.fromEntries(
    text.split("|").filter((level) => level.trim()).map((level) => {
      const [name, ...rest] = level.split(":");
      const pairs = rest.join(":").split(";").filter((each) => each.trim()).map((each) => each.split("="));
      return [name.trim(), Object.fromEntries(pairs.map(([parent, ...of]) => [parent.trim(), listed(of.join("=")).map(value)]))];
    }),
  );
const spellParents = (parents) =>
  Object.entries(parents ?? {})
    .map(([name, level]) => `${name}: ${Object.entries(level).map(([parent, of]) => `${parent} = ${spellList(of)}`).join("; ")}`)
    .join(" | ");
const levels = (name) => (declared.get(name)?.kind === "values" ? Object.keys(readParents(declared.get(name).parents, String)) : []);

// The column that a name such as month(visit) or cumulative(age) is about, or a level such as canton.
const columnOf = (name) => {
  if (declared.has(name)) return name;
  const inner = name.match(/^[a-z]+\((.*)\)$/s)?.[1];
  return inner ? columnOf(inner) : ([...declared.keys()].find((each) => levels(each).includes(name)) ?? name);
};
export const isThere = (name) => declared.has(columnOf(name));
export const stillDeclared = (name) => declaredColumns().includes(columnOf(name));
const FUNCTIONS = { dates: ["year", "quarter", "month", "isoweek"], numbers: ["decade"] };

export const declaredColumns = (kind) =>
  tableColumns.map((column) => column.name).filter((name) => {
    const domain = declared.get(name)?.kind ?? "none";
    return name !== unitColumn() && domain !== "none" && (!kind || domain === kind);
  });
export const unfinished = (name) => {
  const domain = declared.get(columnOf(name));
  return Boolean(domain) && domain.kind !== "none" && !complete(domain);
};
const hasCells = (name) =>
  declared.get(name)?.kind === "values" || Boolean(declared.get(name)?.edges.trim());

// What an answer can be grouped by: columns with cells, and functions of dates and numbers.
export const groupable = () =>
  declaredColumns().flatMap((name) => [
    ...(hasCells(name) ? [name, ...levels(name)] : []),
    ...(FUNCTIONS[declared.get(name).kind] ?? []).map((each) => `${each}(${name})`),
  ]);

// Which of these are periods of time.
export const isPeriod = (name) => FUNCTIONS.dates.some((each) => name.startsWith(`${each}(`)) || domainOf(name)?.kind === "dates";

// What tables can also be asked by: sums of cells that have an order, being bins or whole numbers.
export const summable = () =>
  declaredColumns()
    .filter((name) => hasCells(name) && (declared.get(name).kind !== "values" || tableColumns.find((column) => column.name === name).numeric))
    .flatMap((name) => [`cumulative(${name})`, `ranges(${name})`]);

export function tableKeys() {
  const keys = { source: $("source").value, privacy_unit: $("privacy_unit").value };
  for (const [key, id] of Object.entries(OPTIONS)) {
    const text = $(id).value.trim();
    if (key === "from_rows") text && !byRow() && (keys[key] = true);
    else if (text && !(byRow() && key.startsWith("max_"))) keys[key] = /^\d+$/.test(text) ? Number(text) : text;
  }
  return keys;
}

const numeric = (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text.trim());

// A list as it is typed or pasted: a, b, "with, a comma". A quotation mark inside quotes is doubled.
export const listed = (text) =>
  (text.match(/(?:\s*"(?:[^"]|"")*"\s*(?=[,\n]|$))|[^,\n]+/g) ?? [])
    .map((part) => part.trim())
    .map((part) => (/^"(?:[^"]|"")*"$/.test(part) ? part.slice(1, -1).replaceAll('""', '"') : part))
    .filter((part) => part);
const quoted = (value) => (/^[\s"]|[,\n]|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
export const spellList = (values) => values.map(String).map(quoted).join(", ");

export function domains() {
  const finished = declaredColumns().filter((each) => !unfinished(each));
  return Object.fromEntries(finished.map((name) => [name, domainKeys(name, declared.get(name))]));
}

// Whether a list is of numbers, which texts may spell as they like: 3 is 3.0 there, and 03 is a text.
const wholeNumbers = ({ values, parents }) => !parents.trim() && listed(values).every((value) => /^(0|-?[1-9]\d{0,14})$/.test(value));

// A domain as a scenario has it.
function domainKeys(name, domain) {
  const { kind, constant, fromRows, given } = domain;
  const values = kind === "values";
  const spelled = values && !tableColumns.find((column) => column.name === name)?.numeric && !wholeNumbers(domain) ? String : numeric;
  const edges = values ? [] : listed(domain.edges).map(kind === "dates" ? String : numeric);
  const ends = values ? { values: listed(domain.values).map(spelled) } : { lower: spelled(domain.lower), upper: spelled(domain.upper) };
  const keys = {
    ...ends,
    ...(constant ? { constant } : {}),
    ...(fromRows ? { from_rows: true } : {}),
    ...(edges.length ? { edges: kind === "dates" && edges.length === 1 ? edges[0] : edges } : {}),
    ...(values ? domain.outside && { outside: domain.outside === "drop" ? "drop" : spelled(domain.outside) } : (edges.length || kind === "dates") && ["drop", "clamp"].includes(domain.outside) && { outside: domain.outside }),
    ...(values && domain.parents.trim() ? { parents: readParents(domain.parents, spelled) } : {}),
  };
  // What came with a scenario is as it was until somebody types something else: a list that is
  // looked up in a public table, true and false, a step.
  const before = given && readDomain(given);
  for (const key of before?.kind === kind ? ["values", "lower", "upper", "edges", "outside", "parents", "step"] : []) {
    if (key in given && (key in keys || key === "step") && domain[key] === before[key]) keys[key] = given[key];
  }
  return values && Object.keys(keys).length === 1 ? keys.values : keys;
}

const lookedUp = (values) => typeof values === "string" && !values.includes("..");
export const kindOf = (lower) => (/^\d{4}-/.test(lower) ? "dates" : "numbers");

// A domain as a scenario has it, as it is typed.
export function readDomain(domain) {
  if (Array.isArray(domain) || lookedUp(domain)) return readDomain({ values: domain });
  if (typeof domain === "string") {
    const [lower, upper] = domain.split("..");
    return readDomain({ lower, upper });
  }
  const typed = { ...EMPTY, constant: domain.constant === true, outside: String(domain.outside ?? ""), fromRows: domain.from_rows === true, given: domain };
  if (domain.values || domain.parents) {
    const values = domain.values ?? Object.values(Object.values(domain.parents)[0]).flat();
    return { ...typed, kind: "values", values: lookedUp(values) ? values : spellList(values), parents: spellParents(domain.parents) };
  }
  const edges = [domain.edges ?? []].flat();
  const lower = String(domain.lower ?? edges[0] ?? "");
  return { ...typed, kind: kindOf(lower), lower, upper: String(domain.upper ?? edges.at(-1) ?? ""), edges: edges.join(", ") };
}

function loadDomains(given) {
  for (const [name, domain] of Object.entries(given)) declared.set(name, readDomain(domain));
  renderColumns();
}

// Further tables and features of people, which this page shows and keeps as they were loaded.
export const relatedKeys = () => related;

async function loadRelated({ table, domains: given = {}, tables = [], features = [] }) {
  related = { ...(tables.length ? { tables } : {}), ...(features.length ? { features } : {}) };
  if (!Object.keys(related).length) return;
  const guessed = new Map(tableColumns.map((column) => [column.name, column]));
  const all = (await post("/api/columns", { table, domains: given, ...related })).columns;
  tableColumns = all.map((column) => ({ kind: "text", about: "", ...guessed.get(column.name), ...column }));
  for (const column of tableColumns) if (!declared.has(column.name)) declared.set(column.name, { ...EMPTY });
  renderRelated();
}

function renderRelated() {
  const { tables = [], features = [] } = related;
  const table = (each) =>
    `${each.name}: ${each.source}, ${each.public ? `public, looked up by ${each.key}` : `the same people, at most ${each.max_rows ?? 1} ${each.max_rows > 1 ? "rows" : "row"} of each`}`;
  const feature = (each) =>
    `${each.name}: ${each.kind}${each.column ? ` of ${each.column}` : ""}${each.table ? ` in ${each.table}` : ""}${each.where ? ` where ${each.where}` : ""}`;
  const list = (heading, items) =>
    items.length ? [h("h4", {}, heading), h("ul", {}, items.map((item) => h("li", {}, item)))] : [];
  $("related").replaceChildren(
    ...list("Further tables", tables.map(table)),
    ...list("Computed for each person", features.map(feature)),
  );
  $("related").hidden = !tables.length && !features.length;
}

function loadTable({ privacy_unit: unit, ...given }) {
  const each = EACH.includes(unit) && !named(unit);
  const column = unit.startsWith("column:") && !named(unit) ? unit.slice(7) : unit;
  $("privacy_unit").value = each ? eachRow() : spelled(column);
  for (const [key, id] of Object.entries(OPTIONS)) $(id).value = given[key] || "";
  chosenUnit();
}

// Whose row it is decides what else there is to say.
function chosenUnit() {
  const each = byRow();
  for (const id of ["max_rows_per_group", "max_groups"]) $(id).disabled = each;
  $("privacy_unit-note").textContent = each
    ? "Each row counts as a person of its own: right only if nobody has two rows."
    : unitChosen()
      ? ""
      : "Choose the column that says whose row it is. The promise is made to the people that it names.";
  if (!unitChosen() && perhaps.length) $("privacy_unit-note").textContent += ` Perhaps ${perhaps.join(" or ")}.`;
  $("declare").hidden = !unitChosen();
  renderColumns();
  renderQueries();
}

// Open a table: its columns, from the schema alone. Returns its draft, or null.
async function useTable(name) {
  clearErrors("table");
  tableColumns = [];
  declared = new Map();
  related = {};
  renderRelated();
  broken = null;
  $("source").value = name;
  $("table").hidden = true;
  $("people-hint").hidden = false;
  $("table-words").textContent = name && `Reading ${name} …`;
  $("whose").hidden = true;
  document.querySelector('input[name="look"][value="first"]').checked = true;
  for (const radio of document.querySelectorAll('input[name="whose"]')) radio.checked = false;
  $("look").replaceChildren();
  resetColumns();
  if (!name) {
    renderQueries();
    return null;
  }
  let draft = null;
  try {
    draft = await post("/api/draft", { source: name });
    tableColumns = draft.columns;
    openName = name;
  } catch (error) {
    $("table-words").textContent = "";
    broken = { ...inPageWords(error), field: "table.source" };
    showError(broken, "table.source");
    renderQueries();
    return null;
  }
  for (const column of tableColumns) declared.set(column.name, { ...EMPTY });
  perhaps = draft.privacy_units;
  const option = (value, text) => h("option", { value }, text);
  $("privacy_unit").replaceChildren(
    option("", "choose …"),
    option(eachRow(), "each row is one person"),
    ...tableColumns.map((column) => option(spelled(column.name), column.name)),
  );
  $("privacy_unit").value = "";
  for (const id of Object.values(OPTIONS)) $(id).value = "";
  $("table").hidden = false;
  $("people-hint").hidden = true;
  if (["", "Release", titled].includes($("title").value.trim())) $("title").value = titleOf(name);
  titled = titleOf(name);
  const count = tableColumns.length === 1 ? "1 column" : `${tableColumns.length} columns`;
  $("table-words").textContent = `${name} has ${count}.`;
  if (draft.registered) {
    $("table-words").textContent += ` It has a budget: whose rows they are, ${draft.registered.promise ? "what its columns may hold, and the promise," : "and what its columns may hold,"} is filled in as the ledger has it.`;
    loadTable(draft.registered);
    loadDomains(draft.registered.domains);
    renderQueries();
  } else chosenUnit();
  return draft;
}

// The table of a scenario; what is said of one that cannot be opened waits for the next one.
export async function openTable(loaded) {
  const { table, domains: given = {}, tables = [], features = [] } = loaded;
  if (await useTable(table.source)) {
    loadTable(table);
    await loadRelated(loaded);
    loadDomains(given);
  } else left = { table, related: { tables, features }, declared: Object.entries(given).map(([name, domain]) => [name, readDomain(domain)]) };
}

// Another table takes over what was said of the one before, as far as its columns are the same.
async function switchTable(name) {
  if (tableColumns.length) left = tableState();
  if (left && openName !== name) forgetOccasion();
  const opened = await useTable(name);
  if (opened && left) await takeOver(opened.registered);
  if (opened?.registered?.promise) takePromise(opened.registered.promise);
  changed();
}

async function takeOver(registered) {
  const { table, related: before, declared: said } = left;
  left = null;
  const kept = [];
  const missing = said.filter(([column, { kind }]) => kind !== "none" && !declared.has(column)).map(([column]) => column);
  if (!registered) {
    await fillTable({ table: { ...table, people: "" }, related: before, declared: said });
    const count = said.filter(([column, { kind }]) => kind !== "none" && declared.has(column)).length;
    if (unitChosen()) kept.push("whose row it is");
    if (count) kept.push(`what ${count === 1 ? "1 column" : `${count} columns`} may hold`);
  }
  if (countAsked()) kept.push(countAsked() === 1 ? "1 question" : `${countAsked()} questions`);
  renderQueries();
  if (kept.length) $("table-words").textContent += ` Kept from ${table.source}: ${kept.join(", ")}.`;
  if (missing.length) $("table-words").textContent += ` It has no ${missing.join(", ")}.`;
}

async function fillTable({ table, related: before, declared: said }) {
  const units = [...$("privacy_unit").options].map(({ value }) => value);
  $("privacy_unit").value = units.includes(table.privacy_unit) ? table.privacy_unit : "";
  for (const [key, id] of Object.entries(OPTIONS)) $(id).value = table[key] ?? "";
  const further = [...(before?.features ?? []), ...(before?.tables ?? [])].map((each) => each.name);
  const spelled = said.filter(([name, domain]) => complete(domain) && (declared.has(name) || further.includes(name.split(".")[0]))).map(([name, domain]) => [name, domainKeys(name, domain)]);
  if (before && Object.keys(before).length) await loadRelated({ table: tableKeys(), domains: Object.fromEntries(spelled), ...before }).catch(() => {});
  for (const [name, domain] of said) if (declared.has(name)) declared.set(name, { ...EMPTY, ...domain });
  chosenUnit();
}

// What of this step survives a reload.
export const tableState = () => (!tableColumns.length && left) || ({
  table: { source: openName, privacy_unit: $("privacy_unit").value, ...Object.fromEntries(Object.entries(OPTIONS).map(([key, id]) => [key, $(id).value])) },
  related,
  declared: [...declared],
});

// What was said of a table that is not there any more waits for the next one.
export async function restoreTable(kept) {
  if (!kept.table?.source) return;
  const there = [...$("source").options].some((option) => option.value === kept.table.source);
  if (there && (await useTable(kept.table.source))) await fillTable(kept);
  else left = kept;
}

// Domains of a data dictionary, for the columns of which it says something.
async function fillIn(file) {
  clearErrors("dictionary");
  $("dictionary-status").textContent = "";
  try {
    const draft = await post("/api/draft", { source: $("source").value, dictionary: await file.text() });
    const said = draft.columns.filter((column) => column.domain !== null && declared.has(column.name));
    for (const { name, domain } of said) declared.set(name, readDomain(domain));
    tableColumns = tableColumns.map((column) => ({ ...column, about: draft.columns.find((each) => each.name === column.name)?.about ?? "" }));
    $("dictionary-status").textContent = `It says what ${said.length} of ${tableColumns.length} columns may hold.`;
    renderColumns();
    renderQueries();
    changed();
  } catch (error) {
    showError({ ...inPageWords(error), field: "dictionary" }, "dictionary");
  }
}

// What is not a number of people or rows is said before anything is asked, too.
export function showNumbers() {
  for (const [key, id] of Object.entries(OPTIONS)) {
    const text = key === "part" ? "" : $(id).value.trim();
    if (text && !/^\d+$/.test(text)) showError(inPageWords({ field: `table.${key}`, message: `${key} must be a whole number, such as ${EXAMPLES[key]}` }), "table");
  }
}

let lookedAt = ""; // the declaration that the curator's look was of
const declaration = () => JSON.stringify([tableKeys(), domains(), related]);

export function forgetLook() {
  if ($("look").childElementCount && lookedAt !== declaration()) $("look").replaceChildren();
}

// The curator's own look at the rows, where this page may have it.
async function look() {
  clearErrors("look");
  $("look").replaceChildren(h("p", { class: "note" }, "Looking at the rows …"));
  try {
    lookedAt = declaration();
    const seen = await post("/api/inspect", { table: tableKeys(), domains: domains(), ...related });
    const lines = seen.figures.map(({ what, rows }) => [rows.toLocaleString("en"), inLabels(what)]);
    $("look").replaceChildren(h("p", { class: "caution" }, seen.warning), dataTable("Figures about the rows", [], lines, { right: (index) => !index }));
  } catch (error) {
    $("look").replaceChildren();
    showError({ ...inPageWords(error), field: "look" }, "look");
  }
}

let listedFiles = null;

// What is in the served folder, as often as somebody comes back to it.
export async function files() {
  const listing = await get("/api/files");
  const newest = JSON.stringify(listing);
  if (newest === listedFiles) return;
  listedFiles = newest;
  const option = (name) => h("option", { value: name }, name);
  const empty = (text) => h("option", { value: "" }, text);
  const before = $("source").value;
  if (before && !listing.tables.some(({ name }) => name === before)) listing.tables.push({ name: before }); // gone, as its price says
  const none = listing.tables.length ? "choose …" : "the folder has no tables yet";
  $("source").replaceChildren(empty(none), ...listing.tables.map((file) => option(file.name)));
  $("source").value = before;
  $("scenario-pick").replaceChildren(empty("choose …"), ...listing.scenarios.map(option));
}

// The name for a file whose own is taken: another table's rows stay what was released from them.
async function otherName(file) {
  const [, stem, ending] = file.name.match(/^(.*?)((?:\.[^.]*){0,1})$/s);
  const field = h("input", { id: "upload-name", class: "long", value: `${stem}-${new Date().toISOString().slice(0, 10)}${ending}`, autocomplete: "off", autocapitalize: "none" });
  const words = `There is a table ${file.name} already, which is not replaced. Bring this one under another name; Release then asks whether these are the same people.`;
  const answer = await ask("Bring it under another name?", [words, labelled("Its name here", field, "upload-name")], "Bring it in");
  return answer === "yes" ? field.value.trim() : null;
}

async function upload(file, name = file.name) {
  clearErrors("name");
  clearErrors("table");
  $("upload-status").textContent = `Bringing ${file.name} in …`;
  try {
    const made = await call("POST", `/api/files?name=${encodeURIComponent(name)}`, file);
    await files();
    $("upload-status").textContent = `${made.name} is in the served folder now.`;
    await switchTable(made.name);
  } catch (error) {
    $("upload-status").textContent = "";
    if (error.status === 409) {
      const other = await otherName(file);
      if (other) await upload(file, other);
      return;
    }
    showError({ field: "name", message: error.message.replace(/^name must/, "The name must") }, "name");
  }
}

export function startData(register, curator) {
  $("upload-field").hidden = !register;
  $("look-field").hidden = !curator;
  $("look-button").addEventListener("click", look);
  startColumns(curator);
  onFile("dictionary", fillIn);
  $("source").addEventListener("change", () => switchTable($("source").value));
  for (const [place, event] of [[window, "focus"], [window, "hashchange"], [$("source"), "focus"]]) {
    place.addEventListener(event, () => $("step-data").checkVisibility() && files().catch(() => {})); // `call` says that the server is gone
  }
  onFile("upload", (file) => upload(file));
  $("privacy_unit").addEventListener("change", () => {
    chosenUnit();
    changed();
  });
  for (const id of Object.values(OPTIONS)) $(id).addEventListener("input", changed);
}
