// A table before it is published: how sure anyone could become of each person, cell by cell.

import { post } from "./api.js";
import { $, dataTable, h, onFile, onSubmit } from "./dom.js";

const MOST = 400; // rows that are drawn; --json has them all

function drawn(result) {
  return h(
    "div",
    { class: "card" },
    h("p", { class: "fails" }, result.warning),
    result.summary.map((line) => h("p", {}, line)),
    dataTable("cells, those that say most first", result.heads, result.rows.slice(0, MOST), { right: Boolean, named: true }),
    result.rows.length > MOST ? h("p", { class: "note" }, `… and ${result.rows.length - MOST} cells that say less.`) : null,
    result.notes.map((line) => h("p", { class: "note" }, line)),
  );
}

function asked() {
  const fields = [...$("published").querySelectorAll("[data-field]")].map(({ dataset, value }) => [dataset.field.split(".")[1], value]);
  const needed = ["published", "population", "prior"];
  const body = Object.fromEntries(fields.filter(([name, text]) => text.trim() || needed.includes(name)));
  if (body.secondary?.startsWith("next-smallest")) body.secondary_by = body.secondary;
  if (body.secondary) body.secondary = true;
  return body;
}

export function startPublished() {
  for (const [id, target] of [["pub-table-file", "pub-table"], ["pub-people-file", "pub-people"]]) {
    onFile(id, async (file) => {
      $(target).value = await file.text();
    });
  }
  onSubmit("published", "findings", "Working it out …", async () => drawn(await post("/api/rules/check", asked())));
}
