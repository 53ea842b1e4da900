// A table before it is published: how sure anyone could become of each person, cell by cell.

import { post } from "./api.js";
import { $, clearErrors, h, onFile, showError } from "./dom.js";

const FIELDS = {
  "pub-table": "published",
  "pub-people": "population",
  "pub-prior": "prior",
  "pub-rule": "rule",
  "pub-before": "before",
  "pub-people-before": "population_before",
};
const MOST = 400; // rows that are drawn; --json has them all

function drawn(result) {
  const visible = result.rows.slice(0, MOST);
  const side = (index) => (index ? "r" : null);
  return h(
    "div",
    { class: "card" },
    h("p", { class: "fails" }, result.warning),
    result.summary.map((line) => h("p", {}, line)),
    h(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "cells, those that say most first" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, result.heads.map((head, index) => h("th", { scope: "col", class: side(index) }, head)))),
        h("tbody", {}, visible.map((row) => h("tr", {}, row.map((cell, index) => (index ? h("td", { class: "r" }, cell) : h("th", { scope: "row" }, cell)))))),
      ),
    ),
    result.rows.length > MOST ? h("p", { class: "note" }, `… and ${result.rows.length - MOST} cells that say less.`) : null,
    result.notes.map((line) => h("p", { class: "note" }, line)),
  );
}

function asked() {
  const body = { totals: $("pub-totals").value, secret: $("pub-secret").value };
  const further = $("pub-secondary").value;
  if (further) body.secondary = true;
  if (further.startsWith("next-smallest")) body.secondary_by = further;
  for (const [id, field] of Object.entries(FIELDS)) {
    if ($(id).value.trim() || field === "published" || field === "population" || field === "prior") body[field] = $(id).value;
  }
  return body;
}

export function startPublished() {
  for (const [id, field] of Object.entries(FIELDS)) $(id).dataset.field = field;
  for (const [id, target] of [["pub-table-file", "pub-table"], ["pub-people-file", "pub-people"]]) {
    onFile(id, async (file) => {
      $(target).value = await file.text();
    });
  }
  $("published").addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const field of [...Object.values(FIELDS), "totals", "secret", "secondary", "check"]) clearErrors(field);
    $("findings").replaceChildren(h("p", { class: "note" }, "Working it out …"));
    try {
      $("findings").replaceChildren(drawn(await post("/api/rules/check", asked())));
    } catch (error) {
      $("findings").replaceChildren();
      const field = (error.field ?? "").replace(/[[.].*$/, ""); // published[0][2]: its cell is in the message
      showError({ field, message: error.message }, "check");
    }
  });
}
