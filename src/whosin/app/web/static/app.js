// The page: which view is shown, who is there, whether the server is.

import { get, lost, post, watch } from "./api.js";
import { files, startData } from "./data.js";
import { startGlossary } from "./glossary.js";
import { $, clearErrors, h, placeErrors, showError } from "./dom.js";
import { startPublished } from "./published.js";
import { startQuestions } from "./questions.js";
import { start } from "./release.js";
import { currentStep, showStep, STEPS } from "./steps.js";
import { showStudies, startStudy } from "./study.js";
import { onShow, startViews } from "./views.js";

const VIEWS = ["release", "study", "rules", "verify", "notions", "distortion", "ledger"];

function show(name) {
  for (const view of [...VIEWS, "login"]) $(`view-${view}`).hidden = view !== name;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name === "release" ? STEPS[currentStep()] : name[0].toUpperCase() + name.slice(1)} · whosin`;
  ({ ...onShow, study: showStudies })[name]?.()?.catch(() => {}); // `call` shows what failed
}

// #ledger, or #release/people for a step of the guide.
function route(moved) {
  const [name, step] = location.hash.slice(1).split("/");
  if (name === "main") return;
  const view = VIEWS.includes(name) ? name : "release";
  if (view === "release") showStep(step, moved && step);
  show(view);
  scrollTo(0, 0);
}

let began = null; // as whom this page began

async function begin(hello) {
  const logOut = h("button", { type: "button", class: "quiet", onclick: () => post("/api/logout").then(() => location.reload(), () => {}) }, "Log out");
  $("foot").replaceChildren(`whosin ${hello.version} · `, ...(hello.user ? [`in the name of ${hello.user} `, logOut, " · "] : []), "no outside address is ever contacted");
  if (hello.login && !hello.user) {
    show("login");
    $("token").focus();
    return;
  }
  if (began && began.user !== hello.user) location.reload(); // what somebody else sees and may do
  else if (!began) {
    began = hello;
    startData(hello.register_datasets, hello.curator);
    startGlossary();
    startViews();
    startPublished();
    startStudy(hello.curator);
    await startQuestions();
    await files();
    await start(hello);
    window.addEventListener("hashchange", () => route(true)); // before, `route` below sees it
  }
  route(false);
}

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearErrors("token");
  try {
    await begin(await post("/api/login", { token: $("token").value }));
    $("token").value = "";
  } catch (error) {
    showError({ field: "token", message: error.status === 401 ? "Nobody has this token. Ask whoever runs this server for yours." : error.message }, "token");
  }
});
window.addEventListener("whosin-login", () => show("login"));
placeErrors();
watch();
get("/api/hello").then(begin).catch((error) => {
  if (!lost(error) && !error.status) throw error; // else `call` has said that the server is gone
});
