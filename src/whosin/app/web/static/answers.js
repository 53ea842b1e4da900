// The step Report: the answers with their error bars, the card, and files to keep.

import { aboutKeys, markMissing, missingAbout } from "./about.js";
import { download } from "./api.js";
import { answerChart } from "./charts.js";
import { $, ask, clearErrors, dataTable, h, roundedWords, sections, showError } from "./dom.js";
import { linkNumbers, term } from "./glossary.js";
import { go } from "./steps.js";
import { tables } from "./tables.js";
import { capital, inLabels } from "./words.js";

const plainName = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "answer";

// A value that is too noisy to read; the note below the answer says what the mark means.
const mark = (answer, index) => (answer.noisy?.[index] ? h("abbr", { title: "too noisy to read" }, "*") : null);

const numberColumns = (answer) => answer.columns.filter((name) => answer.scales[name] !== "name");

function table(answer) {
  const at = (name) => answer.columns.indexOf(name);
  const inWords = (row, name) => roundedWords(row[at(name)], answer.scales[name], answer.scales[name] === "name" ? null : answer.decimals, name);
  // An interval is one column, where its lower end stands.
  const end = (name, last) => ["", ...numberColumns(answer).map((each) => `${each}_`)].find((start) => name === `${start}${last}` && at(`${start}high`) >= 0 && at(`${start}low`) >= 0);
  const names = answer.columns.filter((name) => end(name, "high") === undefined);
  const right = (index) => answer.rows.every((row) => typeof row[at(names[index])] === "number");
  const heads = names.map((name) => (end(name, "low") === undefined ? name : term("interval", "95% interval")));
  const most = 200;
  const lines = answer.rows.slice(0, most).map((row, index) => names.map((name) => [
    name === "value" ? mark(answer, index) : null, inWords(row, name), end(name, "low") === undefined ? null : ` to ${inWords(row, `${end(name, "low")}high`)}`]));
  return [
    dataTable(`${answer.title}, table`, heads, lines, { right }),
    answer.rows.length > most ? h("p", { class: "note" }, `… ${answer.rows.length - most} more in the file`) : null,
  ];
}

function single(answer) {
  const row = Object.fromEntries(answer.columns.map((name, index) => [name, answer.rows[0][index]]));
  const inWords = (name) => roundedWords(row[name], answer.scales[name], answer.decimals, name);
  const between = row.low === undefined ? [] : [term("interval", "95%"), `: ${inWords("low")} to ${inWords("high")}`];
  return [h("p", { class: "single" }, mark(answer, 0), inWords("value")), h("p", { class: "soft" }, between)];
}

// A file that the server makes, which takes seconds: the button says so until the file is there.
// `body`: what is asked, by POST; by GET without one.
export async function keep(button, path, body, name, slot = "download") {
  if (button.getAttribute("aria-busy") === "true") return;
  const label = button.textContent;
  clearErrors(slot);
  button.setAttribute("aria-busy", "true");
  button.textContent = `${label}: being made …`;
  try {
    await download(path, body, name);
  } catch (error) {
    showError({ field: slot, message: error.message }, slot);
  } finally {
    button.textContent = label;
    button.removeAttribute("aria-busy");
  }
}

// What is to be signed says who answers for it: ask first, where that is not said.
async function isSigned(label, isNeeded) {
  const missing = missingAbout();
  if (!missing.length) return true;
  const lines = [`“${label}” would not say: ${missing.join(", ")}.`, "It is asked under Release, “Who answers for it, and why”."];
  const answer = await ask("Who answers for it?", lines, "Say it now", isNeeded ? "" : "Leave it open");
  if (answer === "yes") {
    go("release");
    setTimeout(markMissing); // once the step is there
  }
  return answer === "other";
}

let opened = 0; // answers that the ledger opened: each has switches of its own

// `body`: the release, for files of it; null for answers that the ledger opened.
function card(answer, index, body) {
  const alone = answer.rows.length === 1 && answer.columns.includes("value");
  const file = answer.columns[0] === "file" ? answer.rows[0][0] : null;
  const several = Boolean(answer.tables);
  const chart = several ? null : answerChart(answer);
  const button = (label, words, path, name) =>
    h("button", { type: "button", class: "quiet", "aria-label": words, onclick: (event) => keep(event.currentTarget, path, body, name) }, label);
  const csv = (one, number) =>
    button("CSV", `Download ${one.title} as CSV`, `/api/release/csv?answer=${index}&table=${number}`, `${plainName(one.title)}.csv`);
  return h(
    "article",
    { class: several ? "answer full" : "answer" },
    h(
      "header",
      {},
      h("h3", {}, answer.title === answer.question.query ? capital(answer.named) : answer.named),
      body && several ? button("All as Parquet", `Download ${answer.title} as Parquet`, `/api/release/parquet?answer=${index}`, `${plainName(answer.title)}.parquet`) : null,
      body && file ? button("Parquet", `Download ${file}`, `/api/release/file?answer=${index}`, file) : null,
      file || !body ? null : button(several ? "All as CSV" : "CSV", `Download ${answer.title} as CSV`, `/api/release/csv?answer=${index}`, `${plainName(answer.title)}.csv`),
    ),
    h("p", { class: "note" }, term("cost", answer.paid), ...(answer.noise ? [". ", term("scale", `${capital(answer.noise)}.`)] : [])),
    alone && !several ? single(answer) : null,
    several ? tables(answer, body ? index : `stored-${(opened += 1)}`, body ? csv : () => null) : null,
    chart ? h("div", { class: "chart" }, chart) : null,
    chart || alone || several ? null : table(answer),
    answer.noisy_note ? h("p", { class: "note" }, answer.noisy_note, " ", term("noisy", "What is too noisy?")) : null,
    more(answer, chart),
  );
}

// The numbers of a chart as a table, and what counts: folded, so that several answers fit a screen.
function more(answer, chart) {
  const statement = answer.statement ? h("p", { class: "note" }, answer.statement) : null;
  if (!chart && !statement) return null;
  const words = chart ? "Numbers, and what counts" : "What counts";
  return h("details", {}, h("summary", {}, words), chart ? table(answer) : null, statement);
}

// A card for each answer, and that those which contain each other do not add up, where there are such.
const cards = (made, body) => [
  ...made.answers.map((answer, index) => card(answer, index, body)),
  ...(made.independent ? [h("p", { class: "note independent" }, capital(inLabels(made.independent)))] : []),
];

// `stored`: they were paid for before.
export function answers(made, body, stored) {
  const file = plainName(made.title);
  // Who answers for it may be said after the release, while the form is still about these people.
  const isOpen = () => $("source").value === body.scenario.table.source;
  const scenario = () => (isOpen() ? { ...body.scenario, about: aboutKeys() } : body.scenario);
  const whole = () => ({ ...body, scenario: scenario() });
  const files = [
    ["HTML report", "/api/release/report", whole, `${file}.html`],
    ["Officer’s two pages", "/api/release/report?reader=officer", whole, `${file}-officer.html`, (label) => !isOpen() || isSigned(label, false)],
    ["Evidence pack (ZIP)", "/api/evidence", scenario, `${file}-evidence.zip`, (label) => !isOpen() || isSigned(label, true)],
    ["Scenario (TOML)", "/api/scenario/toml", scenario, `${file}.toml`],
    ["Python script", "/api/scenario/script", whole, `${file}.py`],
  ];
  $("results-title").textContent = made.title;
  $("downloads").replaceChildren(
    ...files.map(([label, path, what, name, may = () => true]) =>
      h("button", { type: "button", onclick: async ({ currentTarget }) => (await may(label)) && keep(currentTarget, path, what(), name) }, label),
    ),
  );
  $("paid-before").textContent = stored ? `Paid for on ${made.when}; nothing more was spent.` : "";
  $("answers").replaceChildren(...cards(made, body));
  const [who, promise, ...rest] = made.card;
  $("release-promise").replaceChildren(...[...who.lines, ...promise.lines].flatMap((line) => [...linkNumbers(line), " "]));
  $("release-card").replaceChildren(...sections(rest).flat());
  $("results").hidden = false;
  $("report-hint").hidden = true;
}

// The stored answers of a paid request, as the ledger opens them; nothing is spent.
export const storedAnswers = (made) => [
  h("div", { class: "answers" }, cards(made, null)),
  h("details", {}, h("summary", {}, "What all answers together allow, and the ledger"), sections(made.card).flat()),
];
