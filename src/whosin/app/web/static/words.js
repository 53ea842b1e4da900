// What this page calls the fields of a request, in labels and in refusals.


const LABELS = {
  "adversary.prior": "What they believe already",
  "adversary.known": "How many they know",
  "adversary.people": "How many could be in",
  "adversary.linked": "How many come and go together",
  "target.posterior": "How sure they may become",
  "target.gamma": "The factor",
  "target.gain": "How much surer they may become",
  "target.rho": "How sure they may become of one",
  "target.candidates": "The number of candidates",
  "target.profile": "The profile",
  "target.tpr": "The share of members that a test may recognise",
  "target.fpr": "The share of others that it may accuse",
  "table.privacy_unit": "Whose row it is",
  "table.max_rows_per_group": "Rows of a person that count in a group",
  "table.max_groups": "Groups a person counts in",
  "table.people": "How many people are in it",
  "table.part": "The column of parts",
  "target.delta": "The probability δ",
  "budget.noise": "Noise",
  "budget.share": "The share of the budget",
  "budget.split": "How the budget is divided",
  title: "The title",
};
const OF_DOMAIN = { lower: "The lower end", upper: "The upper end", edges: "The list of bins" };
const OF_QUESTION = {
  name: "The name",
  column: "The column",
  by: "What to group by",
  columns: "The columns",
  where: "“Only rows where”",
  weight: "The weight in the budget",
  within: "95% of answers within ±",
  quantile: "The share of the rows below",
  k: "How many",
  path: "The name of the file",
  max_rows_per_group: "Rows of a person that count in a group",
  max_groups: "Groups a person counts in",
  upto: "The last period to count",
  max_periods: "Periods a person counts in, at most",
  min_gap: "Periods between two of them, at least",
  order: "Columns of a table, at most",
  ranges: "Ranges, for ranges(…)",
  sets: "Only these tables",
  weights: "How much each table counts",
  goal: "Which error to make small",
  magnitudes: "How large cells are thought to be",
  method: "How it is made",
  prior: "What is believed of a row",
  choose: "Choose tables privately",
  choosing: "Part of the budget for choosing",
  length: "How many rows to draw",
  points: "How many points",
  controller: "Who publishes",
  contact: "Where people can ask",
  population: "Whom it is about",
  period: "When the data are from",
  replaces: "What it replaces",
  purpose: "What it is for",
  region: "Country or region",
  decided_by: "Who chose the promise",
  reasons: "Why this promise",
};

// A sentence about a scenario in the words of this page: labels for keys, people for privacy units.
export const inLabels = (text) =>
  text
    .replace(/\b(max_rows_per_group|max_groups) = (\d+)/g, (_, key, most) => `“${OF_QUESTION[key]}” (${most})`)
    .replace(/\bhave no privacy unit\b/g, "do not say whose they are")
    .replace(/\bprivacy units\b/g, "people")
    .replace(/\bprivacy unit\b/g, "person")
    .replace(/split = "optimal"/g, "dividing the budget for the least error")
    .replace(/^where /, "“Only rows where” ");

// What this page calls the choices of a question's keys.
const CHOICES = {
  mean: "on average over the tables",
  cells: "on average over all cells",
  worst: "of the worst table",
  responses: "a randomised row for each person",
  marginals: "rows drawn from a model of noisy tables",
  adaptive: "in rounds, where the model is most wrong",
  tree: "pairs that join all columns",
};
export const choiceWords = (word) => CHOICES[word] ?? word;

// What this page calls a key of a question.
export const labelOf = (key) => OF_QUESTION[key] ?? capital(key.replaceAll("_", " "));

// What this page calls the field of a refusal; nothing where it has no word of its own.
export function label(field) {
  if (LABELS[field]) return LABELS[field];
  const parts = field.split(".");
  if (parts[0] === "domains" && OF_DOMAIN[parts.at(-1)]) return OF_DOMAIN[parts.at(-1)];
  if (parts[0] === "domains" && parts.length > 1) return `What ${parts.slice(1).join(".")} may hold`;
  return parts[0] === "queries" && parts.length === 3 ? OF_QUESTION[parts[2]] : undefined;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Shares of one, which this page shows in per cent.
const IN_PERCENT = ["adversary.prior", "target.posterior", "target.gain", "target.rho", "budget.share"];
const percent = (text) =>
  text.replace(/(?<![\w./])(-?\d+(?:\.\d+)?)(?:\/(\d+))?(?![\w/]|\.\d)/g, (spelled, top, bottom) => {
    const share = Number(top) / Number(bottom ?? 1);
    return bottom === undefined && share > 1 ? spelled : `${Number((100 * share).toPrecision(12))}%`;
  });

// Where this page asks for what a scenario file has in a section.
const PLACES = { domains: "People", table: "People", adversary: "Promise", target: "Promise", budget: "Price", about: "Release" };
const inPlaces = (text) =>
  text
    .replace(/ \bin \[(\w+)\]/g, (spelled, section) => (PLACES[section] ? ` under ${PLACES[section]}` : spelled))
    .replace(/a share of \S+ of the plan would fit: share = "(\d+)\/(\d+)"/, (_, top, bottom) => `${Math.floor((1000 * top) / bottom) / 10}% fits`)
    .replace(/say --continues (\S+) to go on under that budget/, "say under Release that these are the people of “$1”")
    .replace(/say --continues \S+ if people may be in both \(.*?\), or --new-people if nobody is/, "say under Release whose people these are")
    .replace(/(which needs )?a plan with a delta and noise = "gaussian"(; plan with a delta|; say noise = "gaussian")?/, "$1a failure probability δ (under Promise) and Gaussian noise (under Price)");

// A sentence that begins with its field begins with the page's word for it instead. How a file spells
// a share is no help where it is typed in per cent.
function sentence({ field, message: given, hint }) {
  const spelling = IN_PERCENT.includes(field) && hint?.startsWith("write ") ? `; ${hint}` : "";
  const message = inPlaces(spelling && given.endsWith(spelling) ? given.slice(0, -spelling.length) : given);
  if (!field) return message;
  const name = [field, field.split(".").at(-1)].find((each) => message.startsWith(`${each} `));
  const known = name && label(field);
  const said = known ? known + message.slice(name.length) : message;
  return IN_PERCENT.includes(field) ? percent(said) : said;
}

// `asking`: where the questions of the request stand on the page.
export function inPageWords(error, asking = []) {
  const parts = (error.field ?? "").split(".");
  if (parts[0] === "queries" && parts.length > 1) parts[1] = String(asking[Number(parts[1])] ?? parts[1]);
  const message = capital(sentence(error));
  return { field: error.field ? parts.join(".") : error.field, message: /[.?!]\)?$/.test(message) ? message : `${message}.` };
}
