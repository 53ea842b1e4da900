// An association study: sizes, what is secret and a promise; what will come back, advice, and for a
// curator the release of a study in the served folder.

import { get, latest, post, saveBlob } from "./api.js";
import { manhattanChart } from "./charts.js";
import { $, allowed, ask, clearErrors, dataTable, h, sections, showError } from "./dom.js";
import { linkNumbers } from "./glossary.js";
import { capital, inPageWords } from "./words.js";

const RELATIONS = [
  ["", "choose …", "It decides what is protected, and has no default. Advice compares all three."],
  ["genotype", "What someone’s genotype is", "Neighbouring studies: one participant has another genotype (genotype)."],
  ["label-swap", "Who is a case", "Neighbouring studies: a case and a control exchange labels (label-swap). Participants and genomes are taken as known."],
  ["label", "Whether one person is a case", "Neighbouring studies: one label changes, and the number of cases with it (label). Linear scores, names of SNPs alone."],
];
const SIZES = ["study-cases", "study-controls", "study-snps"];
const asking = latest();
let curator = false;

const keyOf = (id) => id.replace("study-", ""); // of a size
const value = (id) => $(id).value.trim();
const whole = (id) => (/^-?\d+$/.test(value(id)) ? Number(value(id)) : value(id));
const hopes = () => value("study-odds").split(",").filter((part) => part.trim()).length;

// The keys that every request about a study has; what is empty is left out.
function promise() {
  const body = {
    adversary: { prior: `${value("study-low")}%..${value("study-high")}%` },
    target: { posterior: `${value("study-posterior")}%` },
    top: value("study-top") ? whole("study-top") : Math.max(1, hopes()),
    numbers: value("study-numbers"),
    score: value("study-score"),
  };
  for (const [id, key] of [["study-relation", "relation"], ["study-threshold", "threshold"], ["study-share", "share"]]) {
    if (value(id)) body[key] = value(id);
  }
  return body;
}

function forecastBody() {
  const body = { ...promise(), odds_ratio: value("study-odds"), frequency: value("study-frequency") };
  if (value("study-name")) body.study = value("study-name");
  else for (const id of SIZES) if (value(id)) body[keyOf(id)] = whole(id);
  if (value("study-effective")) body.effective_snps = whole("study-effective");
  return body;
}

const whose = () => document.querySelector('input[name="study-whose"]:checked')?.value ?? null;

function releaseBody() {
  const body = { ...promise(), study: value("study-name") };
  if ($("study-none").checked) body.none_of_them = true;
  if ($("study-whose").hidden) return body;
  if (whose() === "continues") body.continues = $("study-continues").value;
  if (whose() === "new") body.new_people = true;
  return body;
}

function show(error, otherwise) {
  const said = inPageWords(error.field === "relation" ? { field: "relation", message: "Choose what is secret: it decides what is protected, and has no default" } : error);
  showError({ field: said.field ? `study.${said.field}` : null, message: said.message }, `study.${otherwise}`);
}

// Paragraphs and tables, as the report has them.
function drawn(parts, title) {
  return parts.map(({ text, aside, heads, rows, right }, place) => {
    if (!heads.length) return h("p", { class: aside ? "note" : null }, linkNumbers(text));
    const number = parts.slice(0, place + 1).filter((part) => part.heads.length).length;
    return dataTable(`${title}, table ${number}`, heads, rows, { right: (index) => right.includes(heads[index]) });
  });
}

// What comes back, and advice

async function forecast(kind, title, more = () => null) {
  clearErrors("study.");
  const place = $("study-forecast");
  place.classList.remove("stale");
  place.replaceChildren(h("p", { class: "note" }, "Working it out …"));
  try {
    const body = forecastBody();
    if (kind === "advice" && !value("study-top")) delete body.top; // how many is part of the advice
    const view = await asking(`/api/study/${kind}`, body);
    for (const id of SIZES) if (value("study-name")) $(id).value = String(view[keyOf(id)]);
    place.replaceChildren(h("section", { class: "card", "aria-label": title },
      h("h2", {}, title), h("p", { class: "lead" }, view.lead), ...drawn(view.parts, title), more(view)));
  } catch (error) {
    if (error.name === "AbortError") return;
    place.replaceChildren();
    show(error, "forecast");
  }
}

// The advice of one relation, put into the form.
function use({ relation, top, score, threshold, numbers, share }) {
  const chosen = { relation, top, score, threshold, numbers, share: numbers === "nothing" ? "" : share };
  for (const [key, word] of Object.entries(chosen)) $(`study-${key}`).value = String(word);
  relationChosen();
  forecast("forecast", "What comes back");
}

const offers = (view) => h("p", { class: "actions" }, view.forecast.advice.map(({ settings }) =>
  h("button", { type: "button", onclick: () => use(settings) }, `Use this: ${capital(RELATIONS.find(([name]) => name === settings.relation)?.[1] ?? settings.relation)}`)));

// The release

function askWhose(others) {
  if (others.length) {
    $("study-whose").hidden = false;
    $("study-whose-note").textContent = `The ledger knows ${others.join(" and ")}. The same people have one budget, and the ledger records what you say.`;
    $("study-continues").replaceChildren(...others.map((name) => h("option", { value: name }, name)));
  }
  return others.length && !whose();
}

async function release() {
  clearErrors("study.");
  $("study-go").disabled = true;
  $("study-progress").textContent = "Counting genotypes, to say what it would spend …";
  try {
    const body = releaseBody();
    const cost = await post("/api/study/estimate", body);
    $("study-progress").textContent = "";
    if (askWhose(cost.lookalikes)) {
      show({ field: "continues", message: "Say whose people these are; nothing was spent" }, "release");
      return;
    }
    const published = cost.card.find((part) => part.title === "What is published")?.lines ?? [];
    if (cost.paid) {
      $("study-progress").textContent = "Opening the answer that was paid for …";
      result(await post("/api/study/release", { ...body, spends: cost.spends }));
      return;
    }
    if (cost.lacks_budget) {
      show({ field: null, message: `${cost.spends} Only ε = ${allowed(cost.remaining)} is left; nothing was spent` }, "release");
      return;
    }
    const lines = [
      h("p", {}, h("strong", {}, cost.spends)),
      cost.remaining === null ? `“${cost.dataset}” is new to the ledger.` : `Before it, ε = ${allowed(cost.remaining)} is left for “${cost.dataset}”.`,
      ...cost.notes,
      ...published,
      "What is released cannot be taken back.",
    ];
    if (!(await ask("Release this study?", lines, "Release"))) return;
    $("study-progress").textContent = "Paying, choosing, adding noise …";
    result(await post("/api/study/release", { ...body, spends: cost.spends }));
  } catch (error) {
    show(error, "release");
  } finally {
    $("study-progress").textContent = "";
    $("study-go").disabled = !value("study-name");
  }
}

// What was published of a study, with files of it.
export function studyResult(made) {
  const picture = h("div", { class: "chart" });
  const name = made.dataset.replace(/\W+/g, "-");
  const file = (text, type, ending) => () => saveBlob(new Blob([text], { type }), `${name}.${ending}`);
  new ResizeObserver(() => picture.replaceChildren(...manhattanChart(made.picture, picture.clientWidth))).observe(picture);
  return [
    made.notes.map((line) => h("p", { class: "caution" }, line)),
    h("p", { class: "downloads" },
      h("button", { type: "button", onclick: file(made.table, "text/tab-separated-values", "tsv") }, "Table (TSV)"),
      made.report ? h("button", { type: "button", onclick: file(made.report, "text/html", "html") }, "HTML page") : null),
    h("h3", {}, made.picture.title), picture, drawn(made.parts, "Published SNPs"),
    h("details", {}, h("summary", {}, "What was promised and published"), sections(made.card)),
    h("p", { class: "note" }, `Ledger entry: ${made.dataset}, request ${made.request}.`),
  ];
}

function result(made) {
  $("study-result").replaceChildren(h("section", { class: "card", "aria-labelledby": "study-result-title" },
    h("h2", { id: "study-result-title", tabindex: "-1" }, "What is public now"), studyResult(made)));
  $("study-result-title").focus();
}

// The form

function relationChosen() {
  const [, , words] = RELATIONS.find(([name]) => name === value("study-relation"));
  $("study-relation-words").textContent = words;
  const single = value("study-relation") === "label";
  if (single) {
    $("study-score").value = "linear";
    $("study-numbers").value = "nothing";
  }
  for (const id of ["study-score", "study-numbers"]) $(id).disabled = single;
}

function studyChosen() {
  $("study-forecast").replaceChildren(); // it was of another one
  const chosen = Boolean(value("study-name"));
  for (const id of SIZES) $(id).disabled = chosen;
  $("study-go").disabled = !chosen;
  $("study-release-words").textContent = chosen
    ? `The settings above, for ${value("study-name")}. You see what it spends before anything is drawn; the study is paid from this server’s ledger.`
    : "Choose a study of the served folder first.";
  $("study-whose").hidden = true;
  for (const radio of document.querySelectorAll('input[name="study-whose"]')) radio.checked = false;
}

// The studies of the folder, each time that the view is shown: files may have come.
export async function showStudies() {
  if (!curator) return;
  const before = value("study-name");
  const { studies } = await get("/api/studies");
  $("study-pick").hidden = $("study-release").hidden = !studies.length;
  $("study-name").replaceChildren(h("option", { value: "" }, "none: sizes alone"), ...studies.map((name) => h("option", { value: name }, name)));
  if (studies.includes(before)) $("study-name").value = before;
  else studyChosen();
}

export function startStudy(mayRelease) {
  curator = mayRelease;
  $("study-relation").replaceChildren(...RELATIONS.map(([name, words]) => h("option", { value: name }, words)));
  relationChosen();
  $("study-relation").addEventListener("change", relationChosen);
  $("study-name").addEventListener("change", studyChosen);
  $("study").addEventListener("input", () => $("study-forecast").classList.add("stale"));
  $("study").addEventListener("submit", (event) => {
    event.preventDefault();
    forecast("forecast", "What comes back");
  });
  $("study-advise").addEventListener("click", () => forecast("advice", "Advice", offers));
  $("study-go").addEventListener("click", release);
}
