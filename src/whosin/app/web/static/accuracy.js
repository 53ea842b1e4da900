// The other way round: how exact answers have to be, and what must be promised for it.

import { latest } from "./api.js";
import { $, atMost, clearErrors, dataTable, debounce, h, number, showError } from "./dom.js";
import { term } from "./glossary.js";
import { askWithin } from "./questions.js";
import { capital, inPageWords, labelOf } from "./words.js";

const ask = latest();
const HINT = "95% of answers then lie that close to the truth. What must be promised for it?";
const whole = (id) => (/^\d+$/.test($(id).value.trim()) ? Number($(id).value) : 1);

const percent = (share, round = number) => `${round(share * 100, 3)}%`;

function shown(found, kind, within) {
  const cost = found.rho === null ? [term("epsilon", "ε"), ` = ${atMost(found.epsilon)}`] : [term("rho", "ρ"), ` = ${atMost(found.rho)} (ε = ${atMost(found.epsilon)} at δ = ${found.delta})`];
  const [first, ...others] = found.adversaries;
  // The surest of those whom you describe; someone as unsure as a coin toss where nothing is said.
  const last = ({ posteriors }) => (found.target ? posteriors.at(-1) : posteriors.findLast(({ prior }) => prior <= 0.5)) ?? posteriors[0];
  const line = (each) => [capital(each.words), percent(last(each).prior), percent(last(each).posterior, atMost)];
  const enough = found.target?.enough;
  const allows = enough ? "What you promise allows it. " : "";
  return [
    h("p", {}, "It takes ", ...cost, `, ${capital(found.noise)} noise of `, term("scale", "scale"), ` ${number(found.scale)}. Someone ${percent(last(first).prior)} sure then becomes at most `, h("strong", {}, `${percent(last(first).posterior, atMost)} sure`), ", whatever else they know of others."),
    found.target && !enough
      ? h("p", { class: "fails" }, `What you promise does not allow it: promise at least ${percent(last(first).posterior, atMost)}, or ask for less.`)
      : [h("p", { class: enough ? "holds" : null }, `${allows}A question takes just that if it says so: Questions → More about this question → “${labelOf("within")}”.`),
        h("p", {}, h("button", { type: "button", onclick: () => askWithin(kind, within) }, `Ask for ±\u00a0${within}`))],
    h("details", {}, h("summary", {}, "Against someone who knows more"),
      dataTable("How sure anyone can become", ["", "before", "after"], others.map(line), { right: Boolean, named: true })),
  ].flat();
}

// `promise`: gives the adversary and the target as the page has them.
export function startAccuracy(promise) {
  const asked = async () => {
    clearErrors("within");
    const within = $("within").value.trim();
    if (!within) {
      $("within-words").replaceChildren(h("p", { class: "note" }, HINT));
      return;
    }
    const query = $("within-query").value;
    const bounds = { max_rows_per_group: whole("max_rows_per_group"), max_groups: whole("max_groups") };
    try {
      $("within-words").replaceChildren(...shown(await ask("/api/plan/accuracy", { ...promise(), within, query, ...bounds }), query, within));
    } catch (error) {
      if (error.name === "AbortError") return;
      $("within-words").replaceChildren();
      showError({ ...inPageWords(error), field: "within" }, "within");
    }
  };
  const soon = debounce(asked, 200);
  $("within").addEventListener("input", soon);
  $("within-query").addEventListener("change", soon);
  return soon;
}
