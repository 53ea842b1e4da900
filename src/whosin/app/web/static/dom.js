// Small helpers to build elements and to show messages beside fields.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export const h = (tag, attributes, ...children) =>
  build(document.createElement(tag), attributes, children);

export const s = (tag, attributes, ...children) =>
  build(document.createElementNS(SVG, tag), attributes, children);

export function clearErrors(prefix = "") {
  for (const place of document.querySelectorAll("[data-error]")) {
    if (!place.dataset.error.startsWith(prefix)) continue;
    place.textContent = "";
    place.removeAttribute("role");
  }
  for (const field of document.querySelectorAll("[aria-invalid]")) {
    if (!(field.dataset.field ?? "").startsWith(prefix)) continue;
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
}

// Put a message beside its field: "queries.1.where", or the nearest part of it that has a place.
export function showError(error, otherwise) {
  const parts = (error.field ?? "").split(".");
  const places = [...document.querySelectorAll("[data-error]")];
  let found = null;
  for (let length = parts.length; length > 0 && !found; length -= 1) {
    const name = parts.slice(0, length).join(".");
    found = places.find((place) => place.dataset.error === name && !place.closest("[hidden]"));
  }
  found ??= places.find((place) => place.dataset.error === otherwise);
  if (!found) return;
  const details = found.closest("details");
  if (details) details.open = true;
  found.id ||= `error-${found.dataset.error.replace(/\W+/g, "-")}`;
  found.setAttribute("role", "alert");
  found.textContent = error.message;
  if (error.field) {
    for (const field of document.querySelectorAll(`[data-field="${CSS.escape(error.field)}"]`)) {
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-errormessage", found.id);
    }
  }
}

export const number = (value, digits = 4) =>
  value === "inf" ? "∞" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });

export function debounce(action, wait = 250) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

export function sections(parts) {
  return parts.map((part) => [
    h("h3", {}, part.title),
    ...part.lines.map((line) => h("p", { class: "digest" }, line)),
  ]);
}

export function reasons(theorems) {
  return h(
    "details",
    {},
    h("summary", {}, "Why this holds"),
    h("ul", { class: "reasons" }, theorems.map((text) => h("li", {}, text))),
  );
}
