// The curator's look at the rows before a release, and what the dialog says of it and of what is
// declared.

import { post } from "./api.js";
import { $, h, showError } from "./dom.js";
import { askable, pageName } from "./questions.js";
import { inLabels, inPageWords } from "./words.js";

// What the look found, for the one who decides now.
export const foundWords = (found) => (found.length ? [h("p", { class: "caution" }, "The look at the rows found this, for your eyes only:"), h("ul", { class: "caution" }, found.map((line) => h("li", {}, line)))] : []);

// Whoever releases says where the declared values are from; the report prints it.
export function declaredWords(declared, curator) {
  const [looked, known] = [[], []];
  for (const [name, domain] of Object.entries(declared)) (domain.from_rows ? looked : known).push(name);
  const listed = (names) => (names.length > 6 ? `${names.slice(0, 5).join(", ")} and ${names.length - 5} more columns` : names.join(", "));
  return [
    known.length ? `By releasing you say that this is publicly known${curator ? ", and was not chosen by looking at the rows (tick it under People where it was)" : ""}: what may be in ${listed(known)}.` : null,
    looked.length ? `Chosen by looking at the rows, as the report will say: what may be in ${listed(looked)}.` : null,
  ];
}

// Whether the release may `go` on (always where the look is not `wanted`), what the look says that it
// `spends`, and what it `found`. What stops a release stays on the page.
export async function look(asking, priced, wanted) {
  $("look-found").replaceChildren();
  if (!wanted) return { go: true };
  $("progress").textContent = "Looking at the rows, for your eyes only …";
  try {
    const found = await post("/api/preflight", asking);
    const lines = found.lines.map((line) => lookWords(line, priced));
    if (found.stops) {
      $("look-found").replaceChildren(h("div", { class: "pending" },
        h("p", { class: "fails" }, `Stopped before anything was spent, because of ${found.causes.join("; ")}.`),
        h("ul", {}, lines.map((line) => h("li", {}, line))),
        h("p", { class: "note" }, found.warning, " Correct what the columns may hold, or how much of a person counts, under ", h("a", { href: "#release/people" }, "People"), " or “Only rows where” under ", h("a", { href: "#release/questions" }, "Questions"), ", or skip the look if they are as they should be.")));
      $("look-found").scrollIntoView({ block: "nearest" });
    }
    return { go: !found.stops, spends: found.spends, found: lines };
  } catch (error) {
    showError(inPageWords(error, askable()), "release");
    return { go: false };
  } finally {
    $("progress").textContent = "";
  }
}

// A line of the look with this page's names of questions and fields.
function lookWords(line, priced) {
  const about = ({ title }) => line.startsWith(`${title}: `) && /^(max_|there are |no row in |the (95% interval|rows of) |[\d,]+ of [\d,]+ groups )/.test(line.slice(title.length + 2));
  const { title } = priced.estimates.find(about) ?? {};
  return inLabels(title ? `“${pageName(priced, title)}”${line.slice(title.length)}` : line);
}
