// Small helpers to build elements and to show messages beside fields.

import { linkNumbers } from "./glossary.js";

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

// A field with its label, for what a request calls `path`.
export const labelled = (label, control, path) =>
  h("div", {}, h("label", { for: control.id }, label), control, h("p", { class: "error", "data-error": path }));

// Below each field of the page a place for what is wrong with it.
export function placeErrors() {
  for (const field of document.querySelectorAll("[data-field]")) {
    const name = field.dataset.field;
    if (document.querySelector(`[data-error="${CSS.escape(name)}"]`)) continue;
    (field.closest(".choices, .inline, .slide") ?? field).after(h("p", { class: "error", "data-error": name }));
  }
}

// A form: what `make` draws from its answer, or what is wrong, beside its fields.
export function onSubmit(form, place, waiting, make) {
  $(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    clearErrors(form);
    $(place).replaceChildren(h("p", { class: "note" }, waiting));
    try {
      $(place).replaceChildren(...[await make()].flat());
    } catch (error) {
      $(place).replaceChildren();
      const field = (error.field ?? "").replace(/\[.*$/, ""); // published[0][2]: its cell is in the message
      showError({ field: `${form}.${field}`, message: error.message }, form);
    }
  });
}

// A table that may be wider than its place. `right`: which columns are of numbers; `named`: whether
// the first column names the rows.
export function dataTable(label, heads, rows, { right = () => false, named = false, room = "wide" } = {}) {
  const side = (index) => (right(index) ? "r" : null);
  const head = (words, index) => h(words === "" ? "td" : "th", { scope: words === "" ? null : "col", class: side(index) }, words);
  const cell = (words, index) => (named && !index ? h("th", { scope: "row" }, words) : h("td", { class: side(index) }, words));
  return h("div", { class: room, tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      heads.length ? h("thead", {}, h("tr", {}, heads.map(head))) : null,
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

// Hand over the file of a field, also one that was chosen before the page was ready.
export function onFile(id, take) {
  const given = () => {
    const [file] = $(id).files;
    if (file) take(file);
  };
  $(id).addEventListener("change", given);
  given();
}

export function clearErrors(prefix = "") {
  for (const slot of document.querySelectorAll("[data-error]")) {
    if (!slot.dataset.error.startsWith(prefix)) continue;
    slot.textContent = "";
    slot.removeAttribute("role");
  }
  for (const field of document.querySelectorAll("[aria-invalid]")) {
    if (!(field.dataset.field ?? "").startsWith(prefix)) continue;
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
}

// Put a message beside its field: "queries.1.where", or the nearest part of it that has one.
export function showError(error, otherwise) {
  const parts = (error.field ?? "").split(".");
  const slots = [...document.querySelectorAll("[data-error]")];
  let target = null;
  for (let length = parts.length; length > 0 && !target; length -= 1) {
    const name = parts.slice(0, length).join(".");
    target = slots.find((slot) => slot.dataset.error === name && !slot.closest("[hidden]:not(.step)"));
  }
  target ??= slots.find((slot) => slot.dataset.error === otherwise);
  if (!target) return;
  for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  target.id ||= `error-${target.dataset.error.replace(/\W+/g, "-")}`;
  target.setAttribute("role", "alert");
  target.textContent = error.message;
  if (error.field) {
    for (const field of document.querySelectorAll(`[data-field="${CSS.escape(error.field)}"]`)) {
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-errormessage", target.id);
    }
  }
}

// Ask once more: "yes", or "other" where there is a third way; nothing for no, and for Escape.
export function ask(title, lines, yes, other = "") {
  const dialog = $("ask");
  $("ask-title").textContent = title;
  $("ask-words").replaceChildren(...lines.map((line) => (line instanceof Node ? line : h("p", {}, line))));
  $("ask-yes").textContent = yes;
  $("ask-other").textContent = other;
  $("ask-other").hidden = !other;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => {
    $("ask-yes").onclick = () => dialog.close("yes");
    $("ask-other").onclick = () => dialog.close("other");
    $("ask-no").onclick = () => dialog.close("");
    dialog.onclose = () => answer(dialog.returnValue);
  });
}

export const number = (value, digits = 4) =>
  value === "inf" ? "∞" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });

// A value of an answer: amounts have commas, points of a column (perhaps years) from five digits on.
export function valueWords(value, scale, options = { maximumFractionDigits: 4 }) {
  if (value === "inf") return "∞";
  if (scale === "name" || typeof value !== "number") return String(value ?? "–");
  return value.toLocaleString("en", { useGrouping: scale === "point" ? "min2" : "auto", ...options });
}

// A number of an answer with so many decimals; the ends of an interval are rounded outwards.
export function roundedWords(value, scale, decimals, name) {
  if (decimals === null || decimals === undefined || typeof value !== "number") return valueWords(value, scale);
  const steps = value * 10 ** decimals;
  const slack = 1e-5; // 0.3 * 10 is 3, though floats say a little more
  const whole = { low: Math.floor(steps + slack), high: Math.ceil(steps - slack) }[name] ?? Math.round(steps);
  const shown = whole / 10 ** decimals || 0; // no minus zero
  return valueWords(shown, scale, { minimumFractionDigits: Math.max(0, decimals), maximumFractionDigits: Math.max(0, decimals) });
}

// The same rounded up (way = 1) or down (way = −1), but for what floats round themselves.
function rounded(value, digits, way) {
  if (value === "inf" || !Number(value)) return number(value, digits);
  const near = Number(Number(value).toPrecision(digits));
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - digits + 1);
  const short = way * (value - near) > Math.abs(value) * 2 ** -50;
  return number(short ? near + way * unit : near, digits);
}

// What stands after "at most", and what may be spent: neither promises more than is kept.
export const atMost = (value, digits = 4) => rounded(value, digits, 1);
export const allowed = (value, digits = 6) => rounded(value, digits, -1);

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
    ...part.lines.map((line) => h("p", { class: "digest" }, linkNumbers(line))),
    ...(part.marks ? [people(part.marks)] : []),
  ]);
}

// A hundred marks, ten people each: full ones before, half ones at most after.
function people({ before, after, when: [first, then] }) {
  const kind = (index) => (index < before ? "full" : index < after ? "half" : "never");
  const words = `Each mark is 10 people: ${before} filled ${first}, ${after} filled or tinted at most ${then}.`;
  const marks = Array.from({ length: 100 }, (_, index) =>
    s("circle", { class: kind(index), cx: 8 + 15 * (index % 20), cy: 8 + 15 * Math.floor(index / 20), r: 5.5 }));
  return h("figure", { class: "people" },
    s("svg", { viewBox: "0 0 301 76", role: "img", "aria-label": words }, marks), h("figcaption", { class: "note" }, words));
}

export function reasons(theorems) {
  return h(
    "details",
    {},
    h("summary", {}, "Why this holds"),
    h("ul", { class: "reasons" }, theorems.map((text) => h("li", {}, text))),
  );
}
