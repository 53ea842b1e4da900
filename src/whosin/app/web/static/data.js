// Step 3: the table, whose rows they are, and what its columns may hold.

import { get, call } from "./api.js";
import { $, clearErrors, h, showError } from "./dom.js";
import { changed } from "./release.js";
import { renderQueries, reset } from "./questions.js";

let found = []; // columns of the chosen table
let declared = new Map(); // column → {kind: "none" | "values" | "numbers", values, lower, upper, edges}

export const columns = () => found;
export const declaredColumns = (kind) =>
  found.map((column) => column.name).filter((name) => {
    const domain = declared.get(name)?.kind ?? "none";
    return name !== $("entity").value && domain !== "none" && (!kind || domain === kind);
  });
export const hasCells = (name) =>
  declared.get(name)?.kind === "values" || Boolean(declared.get(name)?.edges.trim());

export function tableKeys() {
  const keys = { source: $("source").value, entity: $("entity").value };
  for (const id of ["rows", "groups"]) {
    const value = Number($(id).value);
    keys[id] = Number.isInteger(value) ? value : $(id).value;
  }
  return keys;
}

const numeric = (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text.trim());
const listed = (text) => text.split(",").map((part) => part.trim()).filter((part) => part);

export function domains() {
  const result = {};
  for (const name of declaredColumns()) {
    const domain = declared.get(name);
    if (domain.kind === "values") {
      const values = listed(domain.values);
      const whole = found.find((column) => column.name === name).numeric;
      result[name] = whole ? values.map(numeric) : values;
    } else {
      const range = { lower: numeric(domain.lower), upper: numeric(domain.upper) };
      if (domain.edges.trim()) range.edges = listed(domain.edges).map(numeric);
      result[name] = range;
    }
  }
  return result;
}

export function loadDomains(given) {
  for (const [name, domain] of Object.entries(given)) {
    const empty = { kind: "none", values: "", lower: "", upper: "", edges: "" };
    if (Array.isArray(domain)) declared.set(name, { ...empty, kind: "values", values: domain.join(", ") });
    else if (typeof domain === "string") {
      const [lower, upper] = domain.split("..");
      declared.set(name, { ...empty, kind: "numbers", lower, upper });
    } else if (domain.values) {
      declared.set(name, { ...empty, kind: "values", values: domain.values.join(", ") });
    } else {
      const edges = domain.edges ?? [];
      declared.set(name, {
        kind: "numbers",
        values: "",
        lower: String(domain.lower ?? edges[0] ?? ""),
        upper: String(domain.upper ?? edges.at(-1) ?? ""),
        edges: edges.join(", "),
      });
    }
  }
  renderColumns();
}

// The fields of a declared domain are complete enough to ask for a price.
export const domainsReady = () =>
  declaredColumns().every((name) => {
    const domain = declared.get(name);
    return domain.kind === "values" ? domain.values.trim() : domain.lower.trim() && domain.upper.trim();
  });

function field(name, key, label, placeholder, more = {}) {
  return h("input", {
    value: declared.get(name)[key],
    placeholder,
    "aria-label": `${label} of ${name}`,
    "data-field": `domains.${name}`,
    autocomplete: "off",
    oninput: (event) => {
      declared.get(name)[key] = event.target.value;
      if (key === "edges") renderQueries();
      changed();
    },
    ...more,
  });
}

function bounds(name, domain) {
  if (domain.kind === "values") return [field(name, "values", "values", "surgery, medicine, …")];
  if (domain.kind === "numbers") {
    return [
      field(name, "lower", "lower end", "from", { inputmode: "decimal" }),
      field(name, "upper", "upper end", "to", { inputmode: "decimal" }),
      field(name, "edges", "bins", "bins: 0, 18, 65 (optional)", {}),
    ];
  }
  return [h("span", { class: "note" }, "may be used in conditions only")];
}

export function renderColumns() {
  const entity = $("entity").value;
  const shown = found.filter((column) => column.name !== entity);
  $("columns").replaceChildren(
    ...shown.map((column) => {
      const domain = declared.get(column.name);
      const kinds = [["none", "not used"], ["values", "a list of values"], ["numbers", "numbers in a range"]];
      return h(
        "div",
        { class: "column" },
        h("span", { class: "name" }, column.name, h("small", {}, column.type)),
        h(
          "select",
          {
            "aria-label": `What ${column.name} may hold`,
            onchange: (event) => {
              domain.kind = event.target.value;
              renderColumns();
              renderQueries();
              changed();
              $("columns").querySelector(`[data-kind="${CSS.escape(column.name)}"]`).focus();
            },
            "data-kind": column.name,
          },
          kinds.map(([value, text]) => h("option", { value, selected: value === domain.kind }, text)),
        ),
        h("div", { class: "bounds" }, bounds(column.name, domain)),
        h("p", { class: "error", "data-error": `domains.${column.name}` }),
      );
    }),
  );
}

// Open a table: its columns, from the schema alone. Returns whether that worked.
export async function useTable(name) {
  clearErrors("table");
  found = [];
  declared = new Map();
  $("source").value = name;
  $("table").hidden = true;
  reset();
  if (!name) return false;
  try {
    found = (await get(`/api/columns?file=${encodeURIComponent(name)}`)).columns;
  } catch (error) {
    showError({ field: "table.source", message: error.message }, "table.source");
    renderQueries();
    return false;
  }
  for (const column of found) {
    declared.set(column.name, { kind: "none", values: "", lower: "", upper: "", edges: "" });
  }
  $("entity").replaceChildren(...found.map((column) => h("option", { value: column.name }, column.name)));
  $("table").hidden = false;
  renderColumns();
  renderQueries();
  return true;
}

export async function files() {
  const listing = await get("/api/files");
  const option = (name) => h("option", { value: name }, name);
  const empty = (text) => h("option", { value: "" }, text);
  const before = $("source").value;
  const none = listing.tables.length ? "choose …" : "the folder has no tables yet";
  $("source").replaceChildren(empty(none), ...listing.tables.map((file) => option(file.name)));
  $("source").value = before;
  $("scenario-pick").replaceChildren(empty("choose …"), ...listing.scenarios.map(option));
}

async function upload(file) {
  clearErrors("name");
  clearErrors("table");
  $("upload-status").textContent = `Bringing ${file.name} in …`;
  try {
    const made = await call("POST", `/api/files?name=${encodeURIComponent(file.name)}`, file);
    await files();
    $("upload-status").textContent = `${made.name} is in the served folder now.`;
    await useTable(made.name);
    changed();
  } catch (error) {
    $("upload-status").textContent = "";
    showError({ field: "name", message: error.message }, "name");
  }
}

export function startData(register) {
  $("upload-field").hidden = !register;
  $("source").addEventListener("change", async () => {
    await useTable($("source").value);
    changed();
  });
  $("upload").addEventListener("change", () => {
    if ($("upload").files[0]) upload($("upload").files[0]);
  });
  $("entity").addEventListener("change", () => {
    renderColumns();
    renderQueries();
    changed();
  });
  for (const id of ["rows", "groups"]) {
    $(id).dataset.field = `table.${id}`;
    $(id).addEventListener("input", changed);
  }
}
