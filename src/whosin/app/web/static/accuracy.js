// The other way round: how exact answers have to be, and what must be promised for it.

import { latest } from "./api.js";
import { $, atMost, clearErrors, debounce, h, number, showError } from "./dom.js";
import { term } from "./glossary.js";
import { inPageWords } from "./words.js";

const ask = latest();
const HINT = "95% of answers then lie that close to the truth. What must be promised for it?";
const whole = (id) => (/^\d+$/.test($(id).value.trim()) ? Number($(id).value) : 1);

function verdict({ enough, words }) {
  return h("p", { class: enough ? "holds" : "fails" }, enough ? "The promise on the left allows it." : "The promise on the left does not allow it. ", enough ? null : words.slice(2).join(" "));
}

function shown(found) {
  const cost = found.rho === null ? [term("epsilon", "ε"), ` = ${atMost(found.epsilon)}`] : [term("rho", "ρ"), ` = ${atMost(found.rho)}, or ε = ${atMost(found.epsilon)} at δ = ${found.delta}`];
  const line = ({ words, posteriors }) => {
    const last = posteriors.at(-1);
    return h("tr", {}, h("td", {}, `Someone who ${words}`), h("td", { class: "r" }, `${number(last.prior * 100, 3)}%`), h("td", { class: "r" }, `${atMost(last.posterior * 100, 3)}%`));
  };
  return [
    h("p", {}, "It takes ", ...cost, `: ${found.noise} noise of scale ${number(found.scale)}. How sure anyone can become then, at most:`),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "How sure anyone can become" },
      h("table", {},
        h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col", class: "r" }, "before"), h("th", { scope: "col", class: "r" }, "after"))),
        h("tbody", {}, found.adversaries.map(line)))),
    found.target ? verdict(found.target) : null,
  ].filter(Boolean);
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
    const bounds = { max_rows_per_group: whole("max_rows_per_group"), max_groups: whole("max_groups") };
    try {
      $("within-words").replaceChildren(...shown(await ask("/api/plan/accuracy", { ...promise(), within, query: $("within-query").value, ...bounds })));
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
