// Who answers for a release, and why it promises what it does: what the report prints and a pack of
// evidence needs. The keys and their words are those of [about] in a scenario file.

import { $, clearErrors, h, labelled, showError } from "./dom.js";
import { labelOf } from "./words.js";

const LONG = ["reasons"]; // what takes more than a line
let keys = [], needed = []; // by a pack of evidence, and for pages that somebody signs

export function startAbout(words, changed) {
  keys = words.map(({ name }) => name);
  needed = words.filter(({ signed }) => signed).map(({ name }) => name);
  $("about").replaceChildren(
    ...words.map(({ name, help, signed }) => {
      const field = `about.${name}`;
      const typed = () => {
        clearErrors(field);
        changed();
      };
      const control = h(LONG.includes(name) ? "textarea" : "input", { id: `about-${name}`, rows: LONG.includes(name) ? 1 : null, title: help, placeholder: help.split(": ")[1]?.replace(/\.$/, ""), "data-field": field, autocomplete: "off", oninput: typed });
      return labelled(labelOf(name) + (signed ? " *" : ""), control, field);
    }),
  );
}

const typed = (key) => $(`about-${key}`).value.trim();

// The keys that something is said for.
export const aboutKeys = () => Object.fromEntries(keys.filter(typed).map((key) => [key, typed(key)]));

export function loadAbout(given = {}) {
  for (const key of keys) $(`about-${key}`).value = given[key] ?? "";
}

// Another file is from another time, and perhaps about other people.
export const forgetOccasion = () => {
  for (const key of ["population", "period"]) $(`about-${key}`).value = "";
};

// What the pages that somebody signs would lack, in this page's words.
export const missingAbout = () => needed.filter((key) => !typed(key)).map(labelOf);

// Mark what is missing, where it is asked.
export function markMissing() {
  clearErrors("about");
  for (const key of needed.filter((each) => !typed(each))) showError({ field: `about.${key}`, message: "Not said yet." }, `about.${key}`);
  $("about").querySelector("[aria-invalid]")?.focus();
}
