// What was typed survives a reload: kept in this browser for the served folder and the user, without
// answers, tokens or what a look at the rows found. Domains that a curator had read off the rows are
// part of the form, as they are of a scenario file.

const VERSION = 1;
let home = "";
let key = null;
let take = null;
let timer = 0;

// The fields of the promise, of the price and of the release; those of the table and of the
// questions have their own ways.
const fields = () =>
  [...document.querySelectorAll("#step-promise :is(input, select)[id], #step-price :is(input, select)[id], #about :is(input, textarea), #title")].filter(
    (field) => field.type !== "file" && field.type !== "radio",
  );
const radios = () => [...document.querySelectorAll('#step-promise input[type="radio"]')];

export function startState(folder, user, collect) {
  home = `${folder}:${user ?? ""}`;
  key = `whosin-form:${home}`;
  const nobodys = `whosin-form:${folder}:`; // typed before there were users
  if (localStorage.getItem(key) === null && localStorage.getItem(nobodys) !== null) {
    localStorage.setItem(key, localStorage.getItem(nobodys));
    localStorage.removeItem(nobodys);
  }
  take = collect;
  window.addEventListener("pagehide", save);
}

export const saveSoon = () => {
  clearTimeout(timer);
  timer = setTimeout(save, 200);
};

function save() {
  if (!key) return;
  const typed = Object.fromEntries(fields().map((field) => [field.id, field.value]));
  const chosen = Object.fromEntries(radios().filter((radio) => radio.checked).map((radio) => [radio.name, radio.value]));
  try {
    localStorage.setItem(key, JSON.stringify({ version: VERSION, typed, chosen, ...take() }));
  } catch {
    // a browser that keeps nothing, or is full: the form works all the same
  }
}

export function forget() {
  clearTimeout(timer);
  localStorage.removeItem(key);
  key = null; // what is still on the page is not saved again
}

// A release that is under way, until it is known how it ended.
export function remember(body) {
  if (body) localStorage.setItem(`whosin-pending:${home}`, JSON.stringify(body));
  else localStorage.removeItem(`whosin-pending:${home}`);
}

export function pending() {
  try {
    return JSON.parse(localStorage.getItem(`whosin-pending:${home}`));
  } catch {
    return null;
  }
}

// What was kept, with the plain fields filled in; null if there is nothing.
export function restore() {
  let kept = null;
  try {
    kept = JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
  if (kept?.version !== VERSION) return null;
  for (const field of fields()) if (typeof kept.typed?.[field.id] === "string") field.value = kept.typed[field.id];
  for (const radio of radios()) if (kept.chosen?.[radio.name] === radio.value) radio.checked = true;
  return kept;
}
