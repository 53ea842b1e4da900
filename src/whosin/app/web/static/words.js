// Refusals in the words of this page: routes speak those of scenario files.

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
  "target.delta": "The probability δ",
  "budget.noise": "Noise",
  "budget.share": "The share of the budget",
  "budget.split": "How the budget is divided",
  title: "The title",
};
const OF_QUESTION = {
  name: "The name",
  column: "The column",
  by: "What to group by",
  columns: "The columns",
  where: "“Only rows where”",
  weight: "The weight in the budget",
  quantile: "The share of the rows below",
  k: "How many",
  path: "The name of the file",
  max_rows_per_group: "Rows of a person that count in a group",
  max_groups: "Groups a person counts in",
  order: "Columns of a table, at most",
  ranges: "Ranges, for ranges(…)",
  sets: "Only these tables",
  weights: "How much each table counts",
  goal: "What to make small",
  magnitudes: "How large cells are thought to be",
  method: "How it is made",
  prior: "What is believed of a row",
  choose: "Choose tables privately",
  choosing: "Part of the budget for choosing",
  length: "How many rows to draw",
  points: "How many points",
};

// What this page calls a key of a question.
export const labelOf = (key) => OF_QUESTION[key] ?? capital(key.replaceAll("_", " "));

const PHRASES = [
  [/one with edges, to group by it, not none/, "given bins in step 3, to group by it"],
  [/one with a declared domain, not '(.*)'/, "one that was declared in step 3; $1 was not"],
  [/a range, for numbers, not a list of values/, "declared as numbers in a range, in step 3"],
  [/at least one column, not none/, "at least one column"],
  [/an object with '(lower|upper)', not none/, "given with both ends, from and to"],
  [/values, or a range, not both, not both/, "a list of values, or a range, not both"],
  [/laplace, under a plan without a delta, not gaussian/, "Laplace, unless the promise may fail with a probability δ (step 2, Advanced)"],
  [/asked under a plan with a delta, which they need, not none/, "asked where the promise may fail with a probability δ (step 2, Advanced)"],
  [/asked under a plan whose size is known \(replace\): its length shows the size, not add-remove/, "asked where they know how many people are in the data (step 1): its length shows the number"],
  [/asked under a plan against uninformed adversaries only, not .*/, "asked where they know nothing at all (step 1)"],
  [/one of (.+), not '([^']*)'/, "one of $1; “$2” is none of them"],
  [/small enough for two steps within the range/, "small enough that the range has two steps"],
  [/large enough to get any budget, not .*/, "large enough to get a part of the budget"],
  [/\bprivacy units\b/g, "people"],
  [/\bprivacy unit\b/g, "person"],
  [/\bdelta\b/g, "δ"],
  [/\bepsilon\b/g, "ε"],
  [/\bedges\b/g, "bins"],
  [/'(column:row|each row)'/g, "“$1”"],
];

// Which field of the page a refusal is about.
function label(field, before) {
  if (LABELS[field]) return LABELS[field];
  const parts = (field ?? "").split(".");
  if (parts[0] === "domains" && parts.length > 1) return `What ${parts.slice(1).join(".")} may hold`;
  if (parts[0] === "queries" && parts.length === 3) return OF_QUESTION[parts[2]] ?? before;
  if (parts[0] === "queries" && parts.length === 2) return "This question";
  return before;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Shares of one, which this page shows in per cent.
const IN_PERCENT = ["adversary.prior", "target.posterior", "target.gain", "target.rho"];
const percent = (text) =>
  text.replace(/(?<![\w./])(-?\d+(?:\.\d+)?)(?:\/(\d+))?(?![\w/]|\.\d)/g, (spelled, top, bottom) => {
    const share = Number(top) / Number(bottom ?? 1);
    return bottom === undefined && share > 1 ? spelled : `${Number((100 * share).toPrecision(12))}%`;
  });

// `asking`: where the questions of the request stand on the page.
export function inPageWords(error, asking = []) {
  const parts = (error.field ?? "").split(".");
  if (parts[0] === "queries" && parts.length > 1) parts[1] = String(asking[Number(parts[1])] ?? parts[1]);
  const field = error.field ? parts.join(".") : error.field;
  const sentence = /^([^;]*?) must be (.*)$/s.exec(error.message);
  let message = error.message;
  if (sentence) {
    const said = PHRASES.reduce((text, [from, to]) => text.replace(from, to), sentence[2]);
    message = `${capital(label(field, sentence[1]))} must be ${IN_PERCENT.includes(field) ? percent(said) : said}`;
  }
  return { field, message: /[.?!)]$/.test(message) ? message : `${message}.` };
}
