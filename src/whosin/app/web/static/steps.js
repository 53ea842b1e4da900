// The steps of the guide: which one is shown, what is done, and what is missing.

import { $, h } from "./dom.js";

export const STEPS = {
  data: "Data",
  people: "People",
  promise: "Promise",
  questions: "Questions",
  price: "Price",
  release: "Release",
  report: "Report",
};
const NAMES = Object.keys(STEPS);
let current = "data";
let statusOf = () => ({});
let visited = new Set(); // steps that somebody saw, or that a scenario filled in: others have no tick

export const visitedSteps = () => [...visited];
export const visit = (names) => {
  visited = new Set([...visited, ...names]);
};

export const currentStep = () => current;
export const go = (name) => {
  location.hash = `#release/${name}`;
};

// `moved`: whether somebody came here by a link, so that the heading is read out.
export function showStep(name, moved) {
  current = NAMES.includes(name) ? name : current;
  visited.add(current);
  for (const each of NAMES) $(`step-${each}`).hidden = each !== current;
  refreshSteps();
  if (moved) $(`step-${current}`).querySelector("h2").focus({ preventScroll: true });
}

const isWrong = (name) => [...$(`step-${name}`).querySelectorAll(".error")].some((slot) => slot.textContent);

// What the steps are called on which something is wrong.
export const wrongSteps = () => NAMES.filter(isWrong).map((name) => STEPS[name]);

// done: true, false, or null where nothing can be said yet.
export function refreshSteps() {
  const status = statusOf();
  for (const name of NAMES) {
    const { done: filled = null, words = "" } = status[name] ?? {};
    const done = filled && !visited.has(name) ? null : filled;
    const wrong = visited.has(name) && isWrong(name);
    const link = $(`link-${name}`);
    link.classList.toggle("done", done === true && !wrong);
    link.classList.toggle("wrong", wrong);
    link.querySelector(".number").textContent = wrong ? "!" : done === true ? "✓" : String(NAMES.indexOf(name) + 1);
    link.querySelector("small").textContent = wrong ? "needs another look" : words;
    link.querySelector(".hidden-words").textContent = wrong ? "" : done === true ? "done" : done === false ? "missing" : "";
    if (name === current) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
}

function pager(index) {
  const [before, after] = [NAMES[index - 1], NAMES[index + 1]];
  return h(
    "p",
    { class: "pager" },
    before ? h("a", { class: "button", href: `#release/${before}` }, `← ${STEPS[before]}`) : h("span", {}),
    after ? h("a", { class: "button next", href: `#release/${after}` }, `${STEPS[after]} →`) : null,
  );
}

export function startSteps(status) {
  statusOf = status;
  $("steplist").replaceChildren(
    ...NAMES.map((name, index) =>
      h("li", {}, h("a", { id: `link-${name}`, href: `#release/${name}` },
        h("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
        h("span", { class: "step-name" }, STEPS[name], " ", h("span", { class: "hidden-words" }), h("small", {}))))),
  );
  NAMES.forEach((name, index) => $(`step-${name}`).append(pager(index)));
}
