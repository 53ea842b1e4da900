// The round: the promise and what it needs, the cost of the questions, the release.

import { aboutKeys, loadAbout, missingAbout, startAbout } from "./about.js";
import { startAccuracy } from "./accuracy.js";
import { download, get, latest, lost, post } from "./api.js";
import { answers } from "./answers.js";
import { beliefChart, ratesChart } from "./charts.js";
import { showProblems } from "./columns.js";
import { amount, columns, declaredColumns, domains, forgetLook, showNumbers, unitChosen, openTable, problemOfTable, relatedKeys, restoreTable, tableKeys, tableState, unfinished } from "./data.js";
import { $, allowed, ask, atMost, clearErrors, debounce, h, number, onFile, reasons, sections, showError } from "./dom.js";
import { linkNumbers, term } from "./glossary.js";
import { allFinished, askable, costLines, countAsked, loadQueries, ofPromise, pageName, queries, questionState, questionTitled, removeQuestion, renderQueries, restoreQuestions, showEstimate } from "./questions.js";
import { declaredWords, foundWords, look } from "./look.js";
import { profileEditor } from "./profile.js";
import { forget, pending, remember, restore, saveSoon, startState } from "./state.js";
import { currentStep, go, refreshSteps, showStep, startSteps, visit, visitedSteps, wrongSteps } from "./steps.js";
import { capital, inPageWords, label as fieldLabel } from "./words.js";

const plan = latest();
const estimate = latest();
const WAITING = "Waiting for the server.";
let planned = null;
let priced = null; // the estimate of the questions as they are
let released = null; // what this form has released: the body, and where the ledger keeps the answers
let curator = false;
let accuracySoon = () => {};
let profile = null; // the editor of that target
let schedule = {}; // of a scenario that was loaded

const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
const values = () => chosen("secret") === "value"; // what rows say, of someone who is known to be in
const linked = () => chosen("linked") === "yes" && !values();
const candidates = () => chosen("target") === "rho"; // who is looking is part of that target
const uninformed = () => chosen("knows") === "nothing" && !values();
const fewKnown = () => chosen("knows") === "few" && !values();
const named = () => $("family").value.trim() !== "" && !candidates();
const asked = () => !candidates() && !linked() && !uninformed() && !named(); // the beliefs are asked for
const figure = (id) => amount($(id).value);
const targets = () => [...document.querySelectorAll('input[name="target"]')].map((radio) => radio.value);
const SLIDERS = ["posterior", "gamma", "gain"];
const PERCENT = ["posterior", "gain", "rho"];

function beliefWords(value) {
  if (value <= 0) return "certain that they are not";
  if (value < 2) return "hardly suspects it";
  if (value < 25) return "thinks it unlikely";
  if (value < 45) return "thinks it possible";
  if (value <= 55) return "as unsure as a coin toss";
  if (value < 80) return "thinks it likely";
  if (value < 98) return "nearly sure";
  return value < 100 ? "all but certain" : "certain";
}

// Scenario from the page

const whole = (id) => (/^\s*-?\d+\s*$/.test($(id).value) ? Number($(id).value) : $(id).value);

function adversary() {
  const secret = values() ? { secret: "value" } : {};
  if (candidates()) return secret;
  const people = Number($("delta").value) && $("people").value.trim() ? { people: whole("people") } : {};
  if (named()) return { family: $("family").value.trim(), ...people };
  if (linked()) return { linked: whole("group-size") };
  if (uninformed()) return { uninformed: true };
  const prior = `${$("low-text").value.trim()}%..${$("high-text").value.trim()}%`;
  if (values()) return { prior, ...secret };
  if (fewKnown()) return { prior, known: whole("known"), ...people };
  return chosen("size") === "yes" ? { prior, "size-known": true } : { prior };
}

function spelled(word, field) {
  const text = field.value.trim();
  if (PERCENT.includes(word)) return `${text}%`;
  return word === "candidates" && /^\d+$/.test(text) ? Number(text) : text;
}

function target() {
  const kind = chosen("target");
  const own = [...$(`target-${kind}`).querySelectorAll("[data-word]")];
  const wanted = {};
  if (SLIDERS.includes(kind)) wanted[kind] = spelled(kind, $(`${kind}-text`));
  else if (own.length) for (const field of own) wanted[field.dataset.word] = spelled(field.dataset.word, field);
  else wanted[kind] = true;
  for (const word of ["delta", "reserve"]) if ($(word).value.trim()) wanted[word] = $(word).value.trim();
  return wanted;
}

function scenario() {
  const keys = {
    title: $("title").value,
    adversary: adversary(),
    target: target(),
    table: tableKeys(),
    domains: domains(),
    ...relatedKeys(),
    queries: queries(),
    ...whose(),
  };
  const about = aboutKeys();
  if (Object.keys(about).length) keys.about = about;
  if (Object.keys(schedule).length) keys.schedule = schedule;
  const budget = {};
  if ($("split").value !== "weights") budget.split = $("split").value;
  if ($("noise").value !== "laplace") budget.noise = $("noise").value;
  if ($("share").value.trim() !== "100") budget.share = `${$("share").value.trim()}%`;
  return Object.keys(budget).length ? { ...keys, budget } : keys;
}

// The promise

function priorWords(low, high) {
  if (candidates()) return "";
  if (linked()) return "Anything from certain that they are not to certain that they are.";
  if (uninformed()) return "As unsure as a coin toss.";
  if (named()) return "As the adversaries that are named below.";
  return Number.isNaN(low + high) ? "" : `From ${number(low)}% (${beliefWords(low)}) to ${number(high)}% (${beliefWords(high)}).`;
}

function words() {
  const [low, high] = [figure("low-text"), figure("high-text")];
  $("prior-words").textContent = priorWords(low, high);
  const kind = chosen("target");
  const after = figure("posterior-text");
  const most = asked() ? high : 50;
  const said = {
    posterior: `Nobody becomes more than ${number(after)}% sure (${beliefWords(after)}).`,
    gamma: `A belief of 10% may become ${atMost(Math.min(100, 10 * figure("gamma-text")))}%, and not more.`,
    gain: `A belief of ${most}% may become ${atMost(Math.min(100, most + figure("gain-text")))}%, and not more.`,
    rho: `Each of them is ${number(100 / figure("candidates"))}% likely before.`,
    epsilon: "The strength of plain differential privacy, given directly.",
  }[kind] ?? "";
  $("target-words").textContent = said.includes("NaN") ? "" : said;
  for (const name of targets()) $(`target-${name}`).hidden = kind !== name;
  const [few, chosenBelow] = [fewKnown(), candidates() || named()];
  $("group").hidden = $("linked-note").hidden = !linked() || chosenBelow;
  $("few").hidden = $("few-note").hidden = !few || linked() || chosenBelow;
  if (named()) $("family").closest("details").open = true; // it is what decides
  const failing = Boolean($("delta").value.trim());
  $("crowd").hidden = !failing || ($("few").hidden && !named());
  $("reserved").hidden = !failing && !$("reserve").value.trim();
  $("nothing-note").hidden = !uninformed() || linked() || chosenBelow;
  $("rho-note").hidden = !candidates();
  $("beliefs").disabled = !asked();
  $("secrets").disabled = named();
  $("knows").disabled = linked() || chosenBelow || values();
  $("sizes").disabled = !asked() || few || values();
  $("links").disabled = chosenBelow || values() || chosen("knows") !== "all";
}

function figures(view) {
  const { epsilon, baseline_epsilon: plain, relation, gamma, delta } = view.plan;
  const count = view.count[$("noise").value];
  const list = [["epsilon", "ε in all", allowed(epsilon), [`between ${relation} `, term("relation", "neighbours")]]];
  if (count) {
    list.push(["error", "error of one count", `±\u00a0${number(count.error, 3)}`, `95% within ±\u00a0${atMost(count.within, 3)}`]);
  }
  list.push(["gamma", "beliefs grow by", `× ${atMost(gamma)}`, delta ? `may fail: ${delta}` : "at most, always"]);
  if (plain === null) list.push(["plain", "with plain DP", "impossible", "no ε holds this against every belief"]);
  else if (delta) list.push(["plain", "with plain DP", `ε = ${allowed(plain)}`, "without a failure probability"]);
  else {
    const ratio = epsilon / plain;
    const times = ratio > 1 ? `${number(ratio, 3)} × less` : `${number(1 / ratio, 3)} × more`;
    const noise = Math.abs(ratio - 1) < 1e-6 ? "the same" : times;
    list.push(["plain", "noise, against plain DP", noise, `plain DP: ε = ${allowed(plain)}`]);
  }
  return list.map(([key, name, value, more]) =>
    h("div", {}, h("dt", {}, term(key, name)), h("dd", {}, value, h("small", {}, more))),
  );
}

async function needs() {
  words();
  clearErrors("adversary");
  clearErrors("target");
  const panel = document.querySelector(".needs");
  try {
    planned = await plan("/api/plan", { adversary: adversary(), target: target() });
  } catch (error) {
    if (error.name === "AbortError") return;
    panel.classList.add("stale");
    if (lost(error)) { // nothing is wrong with the promise
      $("needs-words").textContent = WAITING;
      return;
    }
    planned = null;
    $("needs-words").textContent = "Something above needs another look.";
    $("target-words").textContent = "";
    showError(inPageWords(error), "target");
    refreshSteps();
    return;
  }
  panel.classList.remove("stale");
  warnOfSize();
  $("needs-words").replaceChildren(...linkNumbers(planned.card[1].lines.join(" ")));
  $("figures").replaceChildren(...figures(planned));
  const pictures = [["belief", "How sure anyone can become", beliefChart(planned)], ["tests", "What the best test reaches", ratesChart(planned.rates)]];
  if (planned.rates.first) pictures.reverse();
  $("belief-chart").replaceChildren(...pictures.map(([key, title, drawing], index) =>
    h("details", { open: openPictures[index] }, h("summary", {}, title), ...drawing, h("p", { class: "note" }, term(key, "What does this picture show?")))));
  for (const [index, each] of [...$("belief-chart").children].entries()) each.addEventListener("toggle", () => {
    openPictures[index] = each.open;
  });
  if (chosen("target") === "profile") profile.show(planned.curves.at(-1).points);
  const more = planned.card.filter((part) => /^(Out of|If they know|Compared|More than)/.test(part.title));
  $("needs-card").replaceChildren(h("details", {}, h("summary", {}, "In people, and if they know more"), ...sections(more).flat()), reasons(planned.theorems));
  refreshSteps();
}

const openPictures = [true, false];

// A public number of people is known to whoever is looking: not to the adversary of a promise that
// compares worlds of other sizes, of whom T12 and T18 say less (the fallback D_B).
function warnOfSize() {
  const stated = $("table-people").value.trim() && planned?.plan.relation === "add-remove" && chosen("target") !== "epsilon";
  const ratio = planned?.plan.fallback.find(({ family }) => family === "D_B")?.gamma;
  const most = !ratio || ratio === "inf" ? "nothing is promised of them" : `they may go from 50% to ${atMost((100 * ratio) / (1 + ratio), 3)}% sure`;
  const mend = asked() && chosen("knows") === "all" ? "Say “Yes, the exact number”, or leave the number out." : "Leave the number out if it is not public.";
  $("size-note").textContent = stated ? `Under People the number of people is stated as public. This promise is against someone who does not know it; of those who do, ${most}. ${mend}` : "";
}

// What it costs

async function cost() {
  clearErrors("table");
  clearErrors("domains");
  clearErrors("queries");
  for (const step of ["budget", "release"]) clearErrors(step);
  showProblems();
  warnOfSize();
  showNumbers();
  if (problemOfTable()) showError(problemOfTable(), "table.source");
  const ready = columns().length > 0 && unitChosen() && askable().length > 0 && planned !== null;
  $("save-scenario").disabled = !ready;
  $("save-hint").textContent = ready ? "" : `To save it: ${hint()}`;
  if (!ready) {
    priced = null;
    showEstimate(null);
    showRelease();
    return;
  }
  const asking = askable();
  try {
    priced = await estimate("/api/estimate", scenario());
    showEstimate(priced, apply, undecided() && !priced.amends);
    if (priced.refusal && !priced.stored && !undecided()) {
      showError({ field: "budget", message: `${refusalWords()}${priced.lacks_budget ? " Release says what can be done." : ""}` }, "budget");
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    priced = null;
    showEstimate(null);
    // All mistakes, the first last: it stays where two have one place.
    if (!lost(error)) for (const each of [...(error.mistakes ?? [error])].reverse()) showError(inPageWords(withColumn(each), asking), "budget");
  }
  showRelease();
}

// The server never names the columns of a file that may have no header. This page lists them.
function withColumn(error) {
  const typed = error.message.match(/^the table has no column '(.+?)'(?!.*did you mean)/)?.[1];
  const meant = typed && columns().find(({ name }) => {
    const same = [...name, ""].findIndex((letter, place) => letter !== typed[place]);
    const [left, rest] = [name.slice(same), typed.slice(same)];
    return name.length > 1 && (left.slice(1) === rest || left === rest.slice(1) || left.slice(1) === rest.slice(1));
  });
  return meant ? { ...error, field: error.field, message: `the table has no column “${typed}”; did you mean “${meant.name}”?` } : error;
}

// What the suggestions of an estimate do to this form.
const CHANGES = {
  "ask-once": ({ about }) => removeQuestion(questionTitled(priced, about[0])),
  gaussian: ({ delta }) => {
    $("noise").value = "gaussian";
    if (delta !== undefined) $("delta").value = String(delta);
    changedPlan();
  },
  optimal: () => {
    $("split").value = "optimal";
    changed();
  },
};
const apply = Object.fromEntries(Object.entries(CHANGES).map(([change, make]) => [change, (suggestion) => {
  $("better").replaceChildren(); // they are about the questions as they were
  make(suggestion);
  $("price-title").focus();
}]));

// The step Release: whose people they are, whether it was asked before, and whether it can go.

const undecided = () => priced !== null && (priced.amends ? chosenOr("whose") !== "continues" : priced.lookalikes.length > 0 && !chosenOr("whose"));
const chosenOr = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value ?? null;

// What the curator says of people whom the ledger may know.
function whose() {
  if ($("whose").hidden) return {};
  const said = chosenOr("whose");
  if (said === "continues") return { continues: $("continues").value };
  return said === "new" ? { new_people: true } : {};
}

function showRelease() {
  const others = priced?.amends ? [priced.dataset] : (priced?.lookalikes ?? []);
  // Once it is said that this continues a dataset, that one is known, and nothing is alike any more.
  if (others.length) {
    $("whose").hidden = false;
    $("new-people").hidden = priced.amends;
    $("whose-note").textContent = priced.amends ? `${capital(priced.refusal.split("; ")[0])}.` : `The ledger knows ${others.join(" and ")}, with the same privacy unit and columns.`;
    const before = $("continues").value;
    $("continues").replaceChildren(...others.map((name) => h("option", { value: name }, name)));
    if (others.includes(before)) $("continues").value = before;
  } else if (priced && chosenOr("whose") !== "continues") $("whose").hidden = true;
  const again = $("again").checked;
  $("before").hidden = !priced?.stored;
  $("before-words").textContent = `These questions about these rows were paid for before. ${again ? "They are asked anew, and paid for again." : "Showing the stored answers spends nothing."}`;
  const shows = Boolean(priced?.stored) && !again;
  const refused = priced?.refusal && !shows;
  $("refused").replaceChildren(...(refused && priced.lacks_budget && !undecided() ? waysOut() : []));
  showShare();
  $("look-choice").hidden = !curator || shows;
  const together = shows ? [] : (priced?.together ?? []);
  $("together").replaceChildren(...(together.length ? [h("div", { class: "pending" }, h("p", {}, term("together", "What these datasets allow together")), ...together.map((line) => h("p", { class: "note" }, linkNumbers(line))))] : []));
  const empty = shows ? [] : (priced?.meaningless ?? []);
  $("empty").hidden = !empty.length;
  $("empty-words").textContent = empty.length ? `${empty.map((title) => `“${pageName(priced, title)}”`).join(", ")}: the 95% interval would be the whole declared range. Nothing would be learned, and it is paid for all the same.` : "";
  $("go").disabled = !priced || !allFinished() || undecided() || Boolean(refused);
  $("go").textContent = shows ? "Show the stored answers" : "Release";
  $("go-words").hidden = shows;
  $("go-hint").textContent = hint(refused);
  if (!priced && !$("total").textContent) $("total").textContent = hint();
  refreshSteps();
}

function hint(refused) {
  if (!$("offline").hidden) return WAITING;
  if (!columns().length) return "Choose a table first.";
  if (!unitChosen()) return "Say under People whose row it is.";
  if (!planned) return "The promise needs another look.";
  if (!countAsked()) return "Ask something first.";
  if (!allFinished()) return "A question is not finished.";
  if (!priced) return `${wrongSteps().map((name) => `“${name}”`).join(" and ") || "Something"} needs another look.`;
  if (undecided()) return "Say whose budget it is.";
  return refused ? refusalWords() : "";
}

// Why the ledger would say no, and what can be done where that is for want of budget.
function refusalWords() {
  if (!priced.lacks_budget || priced.total_epsilon === null) return inPageWords({ message: `The ledger would refuse this: ${priced.refusal}` }).message;
  const left = priced.today > 0 ? `ε = ${allowed(priced.today)}` : "nothing";
  return `The ledger would refuse this: it needs ${priced.total}, and ${left} is left ${isDivided() ? "to you today" : `for “${priced.dataset}”`}.`;
}

function waysOut() {
  const fits = priced.today_percent; // of the plan
  const button = (words, onclick) => h("button", { type: "button", onclick }, words);
  const paid = paidBefore();
  const ways = [
    [h("a", { href: "#ledger" }, "Open the stored answers"), " of what was paid for; that spends nothing."],
    ...(fits >= 1 && paid.length && paid.length < priced.paid.length ? [[button(`Leave out the ${paid.length === 1 ? "question" : `${paid.length} questions`} paid for before`, leavePaid), " and ask the others alone, with a smaller share."]] : []),
    ...(fits >= 1 ? [[spendLeft(), " which is what is left. Fewer questions then stay more exact."]] : []),
    [curator ? "More does not fit this promise. A further promise to the same people adds to it: whoever answers for the data decides that." : "Ask the curator, who decides whether these people can be promised less."],
  ];
  return [h("div", { class: "pending" }, h("p", {}, h("strong", {}, "What can be done")), h("ul", { class: "ways" }, ways.map((way) => h("li", {}, way))))];
}

const spendLeft = () => h("button", { type: "button", onclick: () => setShare(priced.today_percent) }, `Spend ${priced.today_percent}% of the promise`);

// Where in the form the questions are whose very answers are stored.
const paidBefore = () => (!priced || priced.stored ? [] : askable().filter((_, place) => priced.paid[place]));

function leavePaid() {
  for (const index of paidBefore().reverse()) removeQuestion(index);
  go("price");
}

function setShare(percent) {
  $("share").value = String(percent);
  changed();
  go("price");
}

// How much of the promise is spent, and what stays.
function showShare() {
  const dated = Object.keys(schedule).length > 0;
  const words = dated ? `The budget has a schedule: ${Object.entries(schedule).map(([key, value]) => `${key} ${value}`).join(", ")}. ` : "";
  const period = priced?.period_percent ?? null;
  const spends = period === null || $("share").value.trim() !== "100" ? "" : `These questions spend the share of today’s period, ${number(period)}% of the promise; a share of your own is of the whole.`;
  $("schedule-words").textContent = words + spends;
  $("schedule-drop").hidden = !dated;
  const fits = !undecided() && priced?.refusal && priced.lacks_budget && priced.today_percent > 0;
  $("share-words").replaceChildren(staysWords(), ...(fits ? [" ", spendLeft()] : []));
}

// Whose budget pays is not known before somebody says so, and then neither is what stays of it.
function staysWords() {
  if ((priced?.total_epsilon ?? null) === null || (priced.stored && !$("again").checked)) return "";
  if (undecided()) return "What stays for later depends on whose budget pays: Release asks.";
  if (priced.refusal) return priced.lacks_budget ? `This does not fit what is left for “${priced.dataset}”.` : "";
  const left = stays() > 0 ? `ε = ${allowed(stays())}` : "Nothing";
  return `${left} stays ${isDivided() ? "of what you can spend on such questions today" : "for later questions about these people"}.`;
}

// Whether quotas, periods or parts decide what is left of the budget to whoever asks.
const isDivided = () => priced.today !== priced.remaining;

// What is left after this release; what is less than a thousandth of the promise is nothing.
const stays = () => {
  const left = (priced.today ?? priced.epsilon) - priced.total_epsilon;
  return left > priced.epsilon / 1000 ? left : 0;
};

function status() {
  const declared = declaredColumns().filter((name) => !unfinished(name)).length;
  const open = countAsked() - askable().length;
  const questions = countAsked() === 1 ? "1 question" : `${countAsked()} questions`;
  return {
    data: { done: columns().length > 0, words: $("source").value || "choose a table" },
    people: { done: columns().length > 0 && unitChosen(), words: !columns().length ? "" : unitChosen() ? `${declared} ${declared === 1 ? "column" : "columns"} declared` : "whose row is it?" },
    promise: { done: planned !== null, words: planned ? `ε = ${allowed(planned.plan.epsilon)}` : "" },
    questions: { done: allFinished(), words: open ? `${open} not finished` : countAsked() ? questions : "ask something" },
    price: { done: priced !== null && allFinished(), words: priced ? `${priced.total}` : "" },
    release: { done: Boolean(priced?.stored) && allFinished(), words: priced?.stored && allFinished() ? "paid for" : $("go").disabled ? "not ready yet" : "ready" },
    report: { done: released !== null, words: released?.title ?? "" },
  };
}

let pricing = Promise.resolve(); // the newest estimate
const priceNow = () => {
  pricing = cost();
  return pricing;
};
const costSoon = debounce(priceNow, 300);

// Whether what is asked now may go: the price that is shown before a release is that of this form.
async function isReady() {
  priceNow();
  for (let last = null; last !== pricing; ) {
    last = pricing;
    await last;
  }
  return !$("go").disabled;
}
const needsSoon = debounce(needs, 120);

export function changed() {
  if ($("look-found").childElementCount) $("look-found").replaceChildren();
  forgetLook();
  saveSoon();
  costSoon();
  refreshSteps();
}

function changedPlan() {
  words();
  needsSoon();
  accuracySoon();
  changed();
}

// Paying

const freshId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// The curator's look, the question, the release: nothing is paid before the answer is yes.
async function releaseNow() {
  if ($("go").getAttribute("aria-busy") === "true") return; // once is enough
  $("go").setAttribute("aria-busy", "true");
  try {
    await lookAskRelease();
  } finally {
    $("go").removeAttribute("aria-busy");
  }
}

async function lookAskRelease() {
  clearErrors("release");
  $("progress").textContent = "Seeing whether the price still holds …";
  const ready = await isReady();
  $("progress").textContent = "";
  if (!ready) return;
  const fresh = $("again").checked && priced.stored;
  const body = { scenario: scenario(), ...(fresh ? { request: freshId() } : {}) };
  if (!priced.stored || fresh) {
    const { go: may, spends, found = [] } = await look(body.scenario, priced, curator && chosen("look") !== "skip");
    if (!may) return;
    Object.assign(body, { preflight: false, accept: true }, spends ? { spends } : {}); // this page has looked, or was told not to, and the dialog says all of it
    const all = priced.total_epsilon !== null && stays() === 0; // nothing is kept for later
    const repeated = fresh ? "all of these" : paidBefore().length ? `${paidBefore().length} of these` : "";
    const lines = [
      priced.promise,
      h("ul", { class: "asked" }, costLines(priced).map((line) => h("li", {}, line))),
      h("p", {}, h("strong", {}, `${priced.estimates.length === 1 ? "1 answer" : `${priced.estimates.length} answers`} will spend ${priced.total}${ofPromise(priced)}, for good.`)),
      $("share-words").textContent,
      priced.together.length ? priced.together.find((line) => line.includes("after this release")) : null,
      repeated ? `You have paid for ${repeated} questions before. They are asked anew, and paid for again.` : null,
      ...(found.length ? foundWords(found) : [$("empty-words").textContent]),
      ...declaredWords(body.scenario.domains, curator),
      missingAbout().length ? `Not said yet: ${missingAbout().map((label) => `“${label}”`).join(", ")}. The ledger records what is said now; what is said after the release is marked as such.` : null,
      "What is released cannot be taken back.",
    ];
    const answer = await ask("Release?", lines.filter(Boolean), "Release", all && priced.remaining === null ? "Keep half for later" : "");
    if (answer === "other") setShare(50);
    if (answer !== "yes") return;
  }
  await release(body, Boolean(priced.stored) && !fresh);
}

async function release(body, stored = false) {
  clearErrors("release");
  remember(body); // before anything is sent: a closed page can continue it
  $("go").disabled = true;
  $("pending").hidden = true;
  $("progress").textContent = "Paying, scanning, adding noise …";
  try {
    const made = await post("/api/release", body);
    remember(null);
    showAnswers(made, { ...body, request: made.request }, stored);
    $("again").checked = false;
    $("progress").textContent = "";
    go("report");
    priceNow(); // the next click need not wait for it
  } catch (error) {
    $("progress").textContent = "";
    const certain = !lost(error) && error.status < 500;
    if (certain) remember(null); // refused before anything was paid for
    $("pending").hidden = certain;
    showError(inPageWords(error, askable()), "release");
    $("go").disabled = !certain;
  }
}

function showAnswers(made, body, stored) {
  answers(made, body, stored);
  released = { title: made.title, dataset: made.budget_state.dataset, body };
  saveSoon();
}

// After a reload the answers come from the ledger, which spends nothing.
async function reopen({ title, dataset, body }) {
  try {
    const made = await get(`/api/ledger/answers?dataset=${encodeURIComponent(dataset)}&request=${encodeURIComponent(body.request)}`);
    showAnswers({ ...made, title, request: body.request }, body, true);
  } catch (error) {
    if (lost(error)) released = { title, dataset, body }; // asked again when the server is back
  }
}

// Loading a scenario

// A share of one in per cent; 1/3 is 100/3, since a promise that was rounded is another one.
const asPercent = (text) => {
  const spelled = String(text).trim();
  if (spelled.endsWith("%")) return spelled.slice(0, -1);
  const [top, bottom = 1] = spelled.split("/").map(Number);
  const percent = Number(((100 * top) / bottom).toPrecision(15));
  return bottom === 1 || percent * bottom === 100 * top ? String(percent) : `${100 * top}/${bottom}`;
};

const choose = (name, value) => {
  document.querySelector(`input[name="${name}"][value="${value}"]`).checked = true;
};

const both = (id, text) => {
  $(`${id}-text`).value = text;
  $(id).value = amount(text);
};

// As people type it: in per cent, or a profile as 0.1:0.3,0.5:0.6.
function spelledOut(word, value) {
  if (PERCENT.includes(word)) return asPercent(value);
  if (typeof value !== "object") return String(value);
  return Object.entries(value).map(([prior, most]) => `${prior}:${most}`).join(",");
}

function loadPromise({ adversary: who = {}, target: { delta, reserve, candidates: several, ...wanted } }) {
  const kind = targets().find((each) => each in wanted);
  if (!kind) throw new Error("The scenario does not say how sure anyone may become: its [target] needs a line such as posterior = 0.6.");
  const value = wanted[kind];
  if (wanted.rho !== undefined && Object.keys(who).some((word) => word !== "secret")) {
    throw new Error("With several candidates this page takes no [adversary]; whosin release does.");
  }
  choose("secret", who.secret ?? "membership");
  choose("knows", who.uninformed ? "nothing" : who.known === undefined ? "all" : "few");
  if (who.known !== undefined) $("known").value = who.known;
  $("people").value = who.people ?? "";
  $("family").value = who.family ?? "";
  choose("linked", who.linked ? "yes" : "no");
  if (who.linked) $("group-size").value = who.linked;
  choose("size", who["size-known"] ? "yes" : "no");
  const [low, high] = String(who.prior ?? "0..1").split("..");
  both("low", asPercent(low));
  both("high", asPercent(high ?? low));
  choose("target", kind);
  const text = PERCENT.includes(kind) ? asPercent(value) : String(value);
  if (SLIDERS.includes(kind)) both(kind, text);
  else for (const [word, each] of Object.entries(wanted)) if ($(word)) $(word).value = spelledOut(word, each);
  if (kind === "profile") profile.read();
  if (several !== undefined) $("candidates").value = several;
  $("target-rho").closest("details").open = !SLIDERS.includes(kind) || Boolean(delta);
  $("delta").value = delta ?? "";
  $("reserve").value = reserve ?? "";
}

// The promise of the table that was chosen, as the ledger has it.
export function takePromise(promise) {
  loadPromise(promise);
  changedPlan();
}

async function load(view) {
  const loaded = view.scenario;
  loadPromise(loaded);
  for (const radio of document.querySelectorAll('input[name="whose"]')) radio.checked = false;
  $("title").value = loaded.title ?? "Release";
  loadAbout(loaded.about);
  const { noise, share, split } = loaded.budget ?? {};
  $("noise").value = noise ?? "laplace";
  $("split").value = split ?? "weights";
  $("share").value = share === undefined ? "100" : asPercent(share);
  schedule = loaded.schedule ?? {};
  await openTable(loaded);
  loadQueries(loaded.queries);
  visit(["data", "people", "promise", "questions"]); // whoever wrote it has seen them
  $("scenario-notes").textContent = ["Loaded.", ...view.notes].join(" ");
  saveSoon();
  await needs();
  await priceNow();
}

async function loading(reading) {
  clearErrors("scenario");
  $("scenario-notes").textContent = "";
  try {
    await load(await reading());
  } catch (error) {
    showError({ field: "scenario", message: error.message }, "scenario");
  }
}

// Targets that this page has no slider for, as /api/kinds lists them.
function offerTargets(kinds) {
  const help = Object.fromEntries(kinds.words.target.map((word) => [word.name, word]));
  const label = (word) => fieldLabel(`target.${word}`) ?? capital(help[word].help.replace(/^Or (the )?|\.$/g, ""));
  for (const words of kinds.targets) {
    const [kind] = words;
    if (targets().includes(kind)) continue;
    const radio = h("input", { type: "radio", name: "target", value: kind });
    const curved = help[kind].takes === "profile";
    $("more-targets").append(h("label", {}, radio, curved ? "By how sure they are already: a curve" : label(kind)));
    const fields = words.filter((word) => help[word].takes !== "flag").map((word) =>
      h("div", { class: "inline" }, h("label", { for: word }, curved ? "The same as text" : label(word)),
        h("input", { id: word, class: curved ? "long" : "short", "data-word": word, "data-field": `target.${word}`, oninput: changedPlan })));
    const own = h("div", { id: `target-${kind}`, hidden: true }, fields, h("p", { class: "error", "data-error": `target.${kind}` }));
    $("target-epsilon").after(own);
    if (curved) {
      profile = profileEditor($(kind), changedPlan);
      own.prepend(profile.editor);
    }
  }
}

const formState = () => ({ ...tableState(), asked: questionState(), step: currentStep(), visited: visitedSteps(), released, schedule });

async function startOver() {
  const sure = await ask("Start over?", ["Everything on this form is forgotten. What was released stays in the ledger."], "Start over");
  if (!sure) return;
  forget();
  location.hash = "#release/data";
  location.reload();
}

export async function start(hello) {
  curator = hello.curator;
  startSteps(status);
  const kinds = await get("/api/kinds");
  offerTargets(kinds);
  startAbout(kinds.words.about, saveSoon); // it changes no price
  accuracySoon = startAccuracy(() => ({ adversary: adversary(), target: target() }));
  for (const id of ["low", "high", ...SLIDERS]) {
    $(id).addEventListener("input", () => {
      $(`${id}-text`).value = $(id).value;
      changedPlan();
    });
    $(`${id}-text`).addEventListener("input", () => {
      $(id).value = figure(`${id}-text`);
      changedPlan();
    });
  }
  for (const id of ["epsilon", "delta", "reserve", "group-size", "known", "people", "family", "rho", "candidates"]) $(id).addEventListener("input", changedPlan);
  for (const radio of document.querySelectorAll('#step-promise input[type="radio"]')) {
    radio.addEventListener("change", () => {
      if (radio.name === "linked" && linked() && chosen("target") === "posterior") {
        choose("target", "gamma");
      }
      changedPlan();
    });
  }
  for (const id of ["title", "share"]) $(id).addEventListener("input", changed);
  $("split").addEventListener("change", changed);
  $("noise").addEventListener("change", changedPlan);
  for (const radio of document.querySelectorAll('input[name="whose"]')) radio.addEventListener("change", priceNow);
  $("continues").addEventListener("change", () => {
    choose("whose", "continues");
    priceNow();
  });
  $("again").addEventListener("change", showRelease);
  $("schedule-drop").addEventListener("click", () => {
    schedule = {};
    changed();
    $("share").focus();
  });
  for (const radio of document.querySelectorAll('input[name="look"]')) radio.addEventListener("change", () => $("look-found").replaceChildren());
  $("leave-paid").addEventListener("click", leavePaid);
  $("start-over").addEventListener("click", startOver);
  $("go").addEventListener("click", releaseNow);
  $("continue").addEventListener("click", () => release(pending()));
  $("forget").addEventListener("click", () => {
    remember(null);
    $("pending").hidden = true;
    priceNow();
  });
  $("save-scenario").addEventListener("click", async () => {
    try {
      await download("/api/scenario/toml", scenario(), "scenario.toml");
    } catch (error) {
      showError(inPageWords(error, askable()), "release");
    }
  });
  $("scenario-pick").addEventListener("change", () => {
    const name = $("scenario-pick").value;
    if (name) loading(() => get(`/api/scenario?file=${encodeURIComponent(name)}`));
  });
  onFile("scenario-file", (file) =>
    loading(async () => post("/api/scenario/read", { text: await file.text() })));
  window.addEventListener("whosin-back", async () => {
    if (released && $("results").hidden) await reopen(released);
    await needs();
    await priceNow();
  });
  renderQueries();
  startState(hello.folder, hello.user, formState);
  $("pending").hidden = pending() === null;
  const kept = restore();
  if (kept) {
    schedule = kept.schedule ?? {};
    profile?.read();
    visit(kept.visited ?? []);
    if (kept.step) showStep(kept.step);
    await restoreTable(kept);
    restoreQuestions(kept.asked ?? []);
    accuracySoon();
    if (kept.released) await reopen(kept.released);
  }
  await needs();
  await priceNow();
}
