// What the words and numbers of this page mean: a dialog, so that it works without a network.

import { $, h } from "./dom.js";

const WORDS = {
  epsilon: ["ε", "How much all answers together may change what anyone believes: the odds that a person is in the data change by a factor of at most e^ε. Smaller is safer, and noisier. ε = 0.4 is a factor of 1.5. Six digits are shown, rounded down; the ledger counts exactly."],
  relation: ["Neighbours", "Two tables that differ in one person. “Add-remove”: the person is in one and not in the other. “Replace”: someone else is there instead, so that both have the same size."],
  delta: ["δ", "The probability with which the promise may fail. Without one it never fails."],
  rho: ["ρ", "The cost of Gaussian noise (zero-concentrated differential privacy). Costs in ρ add up; an ε follows for each δ."],
  belief: ["How sure anyone can become", "The largest belief that a person is in the data after everything is published, by the belief before. The shaded part is what you said someone may believe already; the line “with this plan” is the most that they can believe after."],
  gamma: ["Beliefs grow by", "A belief before, multiplied by this, is the most that anyone can believe after, against the adversary that you described."],
  error: ["Expected error", "How far an answer is from the truth on average, because of the noise alone. What clamping and contribution bounds leave out comes on top."],
  within: ["95% within", "In 95 of 100 releases the noise moves an answer by no more than this. The interval covers the noise, not what clamping and contribution bounds leave out."],
  interval: ["95% interval", "Of 100 such intervals about 95 hold the value that would have been published without noise."],
  plain: ["Plain differential privacy", "The same promise kept against someone who may know everything but this person. The comparison says what your description of the adversary saves."],
  tests: ["What the best test reaches", "Any test that tries to tell who is in accuses some people by mistake. The curve is the most of those who are in that it can recognise, by how many others it accuses."],
  cost: ["What an answer costs", "The part of the budget that its noise uses up. Costs of all answers about the same people add up; the ledger keeps them for good."],
  budget: ["Budget", "The ε that your promise allows for all answers about the same people together, today and later. What is spent never comes back."],
  noisy: ["Too noisy to read", "The standard error of the noise is more than 30% of the number, so that the number says little."],
  sizes: ["By the size of a group", "How good some answers are depends on how many rows a group has, which is not looked up. The numbers are what 95% of the answers would be within if the values were spread evenly over the declared range; a star marks those too noisy to read. With a public number of people (under People) the size is known."],
  people: ["How many people are in it", "If the number is public, the expected errors are those of groups of that size, and the price says how many groups are too small to read. It must not come from the rows. Leave it empty if it is a secret."],
  parts: ["Parts side by side", "Each person is in one part, such as a region: by a column that is the same in all rows of a person, or by least(region), the first of a person’s values as they are declared. A question about one part pays there only; the total is that of the part that cost most."],
  together: ["The same people in several datasets", "Each dataset has a budget of its own, and budgets add up for somebody who is in several. What is stated is for someone who is in all of them."],
  margin: ["95% margin of error", "In 95 of 100 releases the noise moves a number by no more than this. “For all cells at once”: in 95 of 100 releases by no more than this in any cell of the table."],
  steps: ["Spent over time", "A step for each debit: what all answers until then used of the budget, which is the dashed line. It never goes down."],
  bars: ["By part, period and quota", "Parts are paid side by side: a question about one part pays there only, one about everyone pays everywhere. Periods allow so much until they end. A quota keeps a share of the budget for some people; all of them together never exceed it."],
  head: ["The head of the history", "A digest of everything that the ledger has recorded of this dataset. Whoever has written it down notices if the history is ever rewritten."],
  unit: ["Privacy unit", "Whom the promise is made to: the people, or households, that the chosen column names. All rows of one of them are protected together."],
  bounds: ["Contribution bounds", "How many rows of a person count in a group, and in how many groups a person counts. Rows beyond that are left out at random. Higher bounds need more noise."],
  domain: ["Domain", "What a column may hold, as it is publicly known. If it is read off the rows it tells something about them that the promise does not cover."],
  scale: ["Noise", "Laplace noise of scale s has a mean size of s; Gaussian noise is given by its standard deviation."],
  table: ["Standard error of a cell", "The standard deviation of the noise in one number of a table. About two thirds of the numbers are closer to the truth than this."],
};

// A word that can be asked about: `words` stand on the page, `key` says what they mean.
export const term = (key, words) =>
  h("button", { type: "button", class: "term", "aria-haspopup": "dialog", onclick: () => explain(key) }, words);

// A sentence whose numbers can be asked about.
const NUMBERS = /([εργδ] [=≤] [\d.,]*\d|(?:at most |be )?\d[\d.]*% sure|to at most \d[\d.]*%|head [0-9a-f]{16,})/u;
const KEYS = { ε: "epsilon", ρ: "rho", γ: "gamma", δ: "delta", h: "head" };
export const linkNumbers = (text) =>
  text.split(NUMBERS).map((part, index) => (index % 2 ? term(KEYS[part[0]] ?? "belief", part) : part)).filter((part) => part !== "");

function explain(only) {
  $("glossary-title").textContent = only ? WORDS[only][0] : "What the words mean";
  const all = Object.values(WORDS).flatMap(([word, meaning]) => [h("dt", {}, word), h("dd", {}, meaning)]);
  $("glossary-words").replaceChildren(only ? h("p", {}, WORDS[only][1]) : h("dl", {}, all));
  $("glossary").showModal();
}

export function startGlossary() {
  $("open-glossary").addEventListener("click", () => explain(null));
  for (const word of document.querySelectorAll("[data-term]")) word.addEventListener("click", () => explain(word.dataset.term));
  $("glossary-close").addEventListener("click", () => $("glossary").close());
}
