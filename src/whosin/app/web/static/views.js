// The further views: verify, notions, distortion, ledger.

import { keep, storedAnswers } from "./answers.js";
import { get, post } from "./api.js";
import { budgetChart, curveChart, meter } from "./charts.js";
import { $, ask, clearErrors, dataTable, h, labelled, number, onFile, onSubmit, reasons, s, sections, showError } from "./dom.js";
import { linkNumbers, term } from "./glossary.js";
import { studyResult } from "./study.js";
import { capital } from "./words.js";

// Verify

function verdict(result) {
  const { level } = result;
  const case_ = level.witness;
  const rows = [];
  if (case_) {
    rows.push(["about", case_.entity ?? `row ${case_.row}`], ["on seeing", case_.output]);
    rows.push(["belief before", result.belief[0]], ["belief after", result.belief[1]]);
    rows.push(["likelihood ratio", number(case_.ratio, 6)]);
  }
  const colours = { holds: "holds", refuted: "fails", undecided: "undecided" };
  const claim = result.verdict === null ? null : h("p", { class: colours[level.outcome] }, result.verdict);
  return h(
    "div",
    { class: "card" },
    h("p", { class: "soft" }, result.title),
    h("p", { class: "verdict-value" }, `${level.unit} ${level.exact ? "=" : "≤"} ${result.value}`),
    result.lower === null ? null : h("p", { class: "soft" }, `and at least ${result.lower}, by the case below`),
    level.note ? h("p", { class: "note" }, level.note) : null,
    claim,
    case_ ? h("h2", {}, result.lower === null ? "The case that proves it" : "The worst case found") : h("p", {}, "No single case stands behind it."),
    h("table", {}, h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(value)))))),
    case_ && !case_.attained ? h("p", { class: "note" }, "The level is a limit; this case is close to it.") : null,
    reasons(result.theorems),
  );
}

async function offerKinds() {
  const kinds = await get("/api/kinds");
  const against = new Set(kinds.notions.filter((notion) => notion.words.includes("family")).map((notion) => notion.name));
  $("verify-notion").replaceChildren(...kinds.notions.map((notion) => h("option", { value: notion.name }, notion.label)));
  $("families").replaceChildren(...kinds.families.map((family) => h("option", { value: family.example })));
  $("verify-notion").addEventListener("change", () => {
    $("verify-family").disabled = !against.has($("verify-notion").value);
  });
}

function startVerify() {
  offerKinds();
  onFile("channel-file", async (file) => {
    $("channel").value = await file.text();
  });
  onSubmit("verify", "verdict", "Measuring …", async () => {
    const body = { channel: $("channel").value, notion: $("verify-notion").value };
    if (!$("verify-family").disabled) body.family = $("verify-family").value;
    if ($("verify-claim").value.trim()) body.at_most = $("verify-claim").value.trim();
    return verdict(await post("/api/verify", body));
  });
}

// Notions

const [WIDTH, HEIGHT] = [1000, 680];
const onMap = ([x, y]) => [40 + ((x + 0.4) / 7.3) * (WIDTH - 80), HEIGHT - 30 - ((y - 0.3) / 5.8) * (HEIGHT - 60)];

function arrow(from, to, colour) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy);
  const [ux, uy] = [dx / length, dy / length];
  const tip = [to[0] - ux * 18, to[1] - uy * 18];
  const back = [tip[0] - ux * 11, tip[1] - uy * 11];
  const side = (sign) => `${back[0] - sign * uy * 5} ${back[1] + sign * ux * 5}`;
  return s("path", { class: colour, d: `M${tip[0]} ${tip[1]}L${side(1)}L${side(-1)}Z` });
}

function edge(item, aside, choose) {
  let [from, to] = [onMap(item.from), onMap(item.to)];
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const shift = [(-(to[1] - from[1]) / length) * aside, ((to[0] - from[0]) / length) * aside];
  [from, to] = [from, to].map(([x, y]) => [x + shift[0], y + shift[1]]);
  const at = { x1: from[0], y1: from[1], x2: to[0], y2: to[1] };
  const colour = { both: 0, one: 2, not: 1 }[item.kind];
  const label = item.label
    ? s("text", { x: from[0] * 0.45 + to[0] * 0.55, y: from[1] * 0.45 + to[1] * 0.55 + 4, "text-anchor": "middle" }, item.label)
    : null;
  const node = s(
    "g",
    // The name holds the text that is seen (WCAG 2.5.3).
    { class: "edge", role: "button", tabindex: "0", "aria-pressed": "false", "aria-label": [item.label, item.title].filter(Boolean).join(": ") },
    s("line", { class: "hit", ...at }),
    s("line", { class: `line c${colour}${item.kind === "not" ? " dashed" : ""}`, ...at }),
    arrow(from, to, `h${colour}`),
    item.kind === "both" ? arrow(to, from, `h${colour}`) : null,
    label,
  );
  node.addEventListener("click", () => choose(node, item));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(node, item);
  });
  return node;
}

async function showMap() {
  if ($("map").childElementCount) return;
  const notions = await get("/api/notions");
  const choose = (node, item) => {
    for (const other of $("map").querySelectorAll(".edge")) other.setAttribute("aria-pressed", String(other === node));
    $("theorem").replaceChildren(
      h("h2", {}, item.title),
      item.formula ? h("p", {}, `Level: ${item.formula}`) : null,
      h("p", {}, item.statement),
    );
  };
  const items = [
    ...notions.implications.map((line) => ({
      from: notions.places[line.source],
      to: notions.places[line.target],
      kind: line.both_ways ? "both" : "one",
      title: `${line.source} ${line.both_ways ? "⇔" : "⇒"} ${line.target}`,
      label: /^T\d/.test(line.theorem) ? line.theorem : line.theorem === "definition" || line.theorem === "subfamily" ? "⊇" : "⇒",
      formula: line.formula,
      statement: line.statement,
    })),
    ...notions.counterexamples.map((line) => ({
      from: notions.places[line.source],
      to: notions.places[line.target],
      kind: "not",
      title: `${line.source} ⇏ ${line.target}`,
      label: "",
      statement: `A counterexample: ${line.reason}.`,
    })),
  ];
  $("map").replaceChildren(
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Notions and the theorems between them" },
      items.map((item) => edge(item, item.kind === "not" ? 14 : 0, choose)),
      Object.entries(notions.places).map(([name, spot]) => {
        const [x, y] = onMap(spot);
        return s("text", { class: "node", x, y: y + 5, "text-anchor": "middle" }, name);
      }),
    ),
  );
}

// Distortion

const NAMES = { dp: ["differential privacy", "c0"], identifiability: ["identifiability", "c1"], "mutual-information": ["mutual information", "c2"] };

function startDistortion() {
  onSubmit("distortion", "curves", "Solving …", async () => {
    const whole = (id) => (/^\s*\d+\s*$/.test($(id).value) ? Number($(id).value) : $(id).value);
    return drawings(await post("/api/distortion", { rows: whole("to-rows"), values: whole("to-values"), prior: $("to-prior").value }));
  });
}

function drawings(tradeOff) {
  const curve = (notion) => {
    const points = tradeOff.curves[notion].map((point) => ({ ...point, level: point.epsilon }));
    const byLevel = notion !== "mutual-information";
    const bound = (side) => points.map((point) => (byLevel ? [point[side], point.level] : [point.distortion, point[side]]));
    // Before its threshold identifiability has no closed form from above.
    const bounds = notion === "identifiability" ? [bound("lower")] : [bound("lower"), bound("upper")];
    return { name: NAMES[notion][0], colour: NAMES[notion][1], points, bounds };
  };
  const panel = (notions, axis) => {
    const there = notions.filter((notion) => tradeOff.curves[notion]);
    return there.length ? h("div", { class: "card chart" }, curveChart(there.map(curve), axis)) : null;
  };
  return [
    h("div", { id: "answers-distortion", class: "pair" }, panel(["dp", "identifiability"], "ε"), panel(["mutual-information"], "nats")),
    h("p", { class: "note" }, "Solid: the optimum, certified. Dashed: what closed forms say. Further down and to the left is better."),
    ...Object.entries(tradeOff.skipped).map(([notion, why]) => h("p", { class: "note" }, `No curve for ${NAMES[notion][0]}: ${why}.`)),
  ];
}

// Ledger

async function history(name, where) {
  const recorded = await get(`/api/ledger/history?dataset=${encodeURIComponent(name)}`);
  const heads = ["no.", "when", "who", "what", "cost"];
  const waiting = recorded.unanswered ? ` ${recorded.unanswered} paid for and not answered yet.` : "";
  where.replaceChildren(
    h("p", { class: "holds" }, `The chain of digests is intact.${waiting}`),
    dataTable(`history of ${name}`, heads, recorded.entries, { room: "wide tall" }),
  );
}

// What was paid for, request by request; each can be opened again, which spends nothing.
async function requests(name, curator) {
  const { requests: paid, picture } = await get(`/api/ledger/requests?dataset=${encodeURIComponent(name)}`);
  const heads = ["questions", "when", "who", term("cost", "cost")];
  const several = paid.some(({ table: file }) => file && file !== name); // next month’s file, a correction
  const line = ({ request, when, who, questions, table: file, cost, answered, study, opens }) => {
    const words = `${capital(questions.join("; "))}${several && file ? ` (of ${file})` : ""}`;
    const open = answered && opens
      ? h("button", { type: "button", class: "quiet", "aria-label": `Open ${words} of ${when}`, onclick: () => opened(name, request, words, study) }, words)
      : `${words} (${answered ? "published" : "not answered yet"})`;
    return [open, when, who, cost];
  };
  const table = paid.length
    ? dataTable(`paid requests of ${name}`, heads, paid.map(line), { room: "wide tall" })
    : h("p", { class: "note" }, curator ? "Nothing has been paid for yet." : "You have asked nothing yet. What others asked is not shown.");
  return { table, picture: budgetPicture(picture) };
}

// The budget over time, and by part, period and quota where it has them.
function budgetPicture(picture) {
  const row = ({ name, share, words }) => h("li", {}, h("span", {}, name), h("span", {}, linkNumbers(words)), meter(share, `${name}: ${words}`));
  return h("div", { class: "spending" },
    h("div", { class: "chart" }, h("h3", {}, term("steps", "Over time")), budgetChart(picture)),
    picture.bars.map(({ title, rows }) => h("div", {}, h("h3", {}, term("bars", title)), h("ul", { class: "bars tall", tabindex: "0", "aria-label": title }, rows.map(row)))));
}

async function opened(name, request, words, study) {
  clearErrors("ledger");
  const asked = `dataset=${encodeURIComponent(name)}&request=${encodeURIComponent(request)}`;
  try {
    const made = await get(`/api/${study ? "study" : "ledger"}/answers?${asked}`);
    const report = (label, reader, file) => h("button", { type: "button", onclick: ({ currentTarget }) => keep(currentTarget, `/api/ledger/report?${asked}${reader}`, undefined, file, "ledger") }, label);
    $("stored").replaceChildren(
      h("header", {}, h("h2", { tabindex: "-1" }, words),
        h("p", { class: "actions" },
          ...(study ? [] : [report("HTML report", "", `${name}.html`), report("Officer’s two pages", "&reader=officer", `${name}-officer.html`)]),
          h("button", { type: "button", class: "quiet", onclick: () => $("stored").replaceChildren() }, "Close"))),
      h("p", { class: "note" }, `Stored answers from ${name}, request ${request}. Opening them spends nothing.`),
      ...(study ? [h("section", { class: "card" }, studyResult(made))] : storedAnswers(made)),
    );
    $("stored").querySelector("h2").focus();
    $("stored").scrollIntoView({ block: "start" });
  } catch (error) {
    showError({ field: "ledger", message: error.message }, "ledger");
  }
}

// What was spent and is left, and a line each on parts and periods; the bars say it of quotas.
function budgetLines([{ lines }]) {
  const isFact = (line) => /^(Budget|Privacy unit|Spent|Left|State): /.test(line);
  return [
    h("p", {}, linkNumbers(lines.filter(isFact).join(" ")), " ", term("budget", "What is a budget?")),
    lines.filter((line) => !isFact(line) && !line.startsWith("Quota ")).map((line) => h("p", { class: "digest" }, linkNumbers(line))),
  ];
}

// Datasets with the same columns that are said to be about other people.
function apart({ registration }) {
  const others = Object.keys(registration?.apart_from ?? {});
  return others.length
    ? h("p", { class: "note" }, `By the curator’s word nobody is in ${others.join(" or ")} too. Of somebody who is, all of these answers together say more than each budget allows.`)
    : null;
}

// What a curator does for next month’s file; elsewhere than here with the command.
function goingOn(command) {
  if (!command) return null;
  return h(
    "details",
    {},
    h("summary", {}, "Go on with another file, other domains or bounds"),
    h("p", {}, "The budget stays: next month’s file is paid from what this month’s left. Choose the file, the domains and the bounds in the guide, and say under Release that these are the people of this dataset. Whose rows they are can never change. With a scenario in the served folder a command does the same:"),
    h("pre", {}, h("code", {}, command)),
  );
}

// What a curator keeps for some people, as `whosin ledger quota` does.
function quotaForm(dataset, { quotas = [] }, index) {
  const at = (key) => `quota-${index}.${key}`;
  const typed = (key) => document.getElementById(at(key)).value.trim();
  const cell = (key, label, control) => labelled(label, control, at(key));
  const input = (key, label, more) => cell(key, label, h("input", { id: at(key), "data-field": at(key), autocomplete: "off", autocapitalize: "none", ...more }));
  const open = quotas.filter(({ members }) => members.length).map(({ quota }) => quota);
  const send = async (done, body) => {
    clearErrors(`quota-${index}`);
    $(`quotas-${index}`).querySelector('[role="status"]').textContent = "";
    try {
      await post("/api/ledger/quota", { dataset, quota: typed("quota"), ...body });
      await showLedger();
      $(`quotas-${index}`).open = true;
      $(`quotas-${index}`).querySelector('[role="status"]').textContent = done;
      document.getElementById(at("quota")).focus();
    } catch (error) {
      showError({ field: at(error.field), message: error.message }, `quota-${index}`);
    }
  };
  const keepShare = (event) => {
    event.preventDefault();
    const [name, share, to] = [typed("quota"), `${typed("share")}%`, typed("to")];
    const members = typed("members").split(",").map((each) => each.trim()).filter(Boolean);
    const said = { ...(typed("until") ? { until: typed("until") } : {}), ...(members.length ? { members } : {}), ...(to ? { to } : {}) };
    send(to ? `${share} of the budget is moved from ${name} to ${to}.` : `${share} of the budget is kept for ${name}.`, { share, ...said });
  };
  const revoke = async () => {
    const name = typed("quota");
    const sure = await ask(`Revoke the quota of ${name}?`, ["What is unspent of it is everyone’s again, and its members ask like everyone else."], "Revoke");
    if (sure) await send(`The quota of ${name} is revoked.`, { revoke: true });
  };
  return h("details", { id: `quotas-${index}` },
    h("summary", {}, "Keep a share for some people"),
    h("p", {}, "Until the last day, if there is one, nobody but the members can spend what is kept, and they spend nothing else. All quotas together never exceed the budget, which is what protects people: analysts who put their answers together are one adversary."),
    h("form", { onsubmit: keepShare },
      h("div", { class: "fields" },
        input("quota", "Person, group or project", { list: `quota-names-${index}`, required: true }),
        input("share", "Share of the budget, in %", { inputmode: "decimal", placeholder: "25", required: true }),
        input("until", "Last day", { placeholder: "2027-12-31, or none" }),
        input("members", "Names of its members, if several", { placeholder: "ann, bob" }),
        cell("to", "Move the share to", h("select", { id: at("to"), "data-field": at("to") }, ["", ...open].map((name) => h("option", { value: name }, name || "nobody: it is kept"))))),
      h("datalist", { id: `quota-names-${index}` }, open.map((name) => h("option", { value: name }))),
      h("p", { class: "actions" }, h("button", { type: "submit" }, "Keep it"), open.length ? h("button", { type: "button", class: "quiet", onclick: revoke }, "Revoke this quota") : null)),
    h("p", { class: "note", role: "status" }),
    h("p", { class: "error", "data-error": `quota-${index}` }));
}

async function showLedger() {
  clearErrors("ledger");
  try {
    const { datasets, together, curator } = await get("/api/ledger");
    if (!datasets.length) {
      $("datasets").replaceChildren(h("p", { class: "card" }, "Nothing has been released from here yet."));
      return;
    }
    const paid = await Promise.all(datasets.map(({ dataset }) => requests(dataset, curator)));
    $("datasets").replaceChildren(
      ...together.map((part) => h("section", { class: "card dataset", "aria-label": part.title }, h("h2", {}, term("together", part.title)), ...part.lines.map((line) => h("p", {}, linkNumbers(line))))),
      ...datasets.map(({ dataset, card, budget_state, amend }, index) => {
        const share = Math.min(1, Number(budget_state.spent_epsilon) / Number(budget_state.budget_epsilon) || 0);
        const bar = meter(share, `${Math.round(share * 100)}% of the budget is spent`);
        const entries = h("div", {});
        const button = h("button", {
          type: "button",
          "aria-label": `History of ${dataset}`,
          onclick: async () => {
            try {
              await history(dataset, entries);
              button.hidden = true;
            } catch (error) {
              showError({ field: "ledger", message: error.message }, "ledger");
            }
          },
        }, "History");
        return h("section", { class: "card dataset", "aria-label": dataset }, h("h2", {}, dataset), bar, budgetLines(card), apart(budget_state), sections(card.slice(1)), paid[index].picture, h("h3", {}, "Paid for"), paid[index].table, goingOn(amend), curator ? quotaForm(dataset, budget_state, index) : null, button, entries);
      }),
    );
  } catch (error) {
    showError({ field: "ledger", message: error.message }, "ledger");
  }
}

export const onShow = { notions: showMap, ledger: showLedger };

export function startViews() {
  startVerify();
  startDistortion();
}
