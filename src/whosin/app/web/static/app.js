// The page: which view is shown, who is there, whether the server is.

import { get, post, watch } from "./api.js";
import { files, startData } from "./data.js";
import { $, clearErrors, showError } from "./dom.js";
import { startPublished } from "./published.js";
import { startQuestions } from "./questions.js";
import { start } from "./release.js";
import { onShow, startViews } from "./views.js";

const VIEWS = ["release", "rules", "verify", "notions", "distortion", "ledger"];

function show(name) {
  for (const view of [...VIEWS, "login"]) $(`view-${view}`).hidden = view !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = name === "release" ? "whosin" : `${name} · whosin`;
  onShow[name]?.()?.catch(() => {}); // `call` shows what failed
}

function route() {
  const name = location.hash.slice(1);
  if (name === "main") return;
  show(VIEWS.includes(name) ? name : "release");
  scrollTo(0, 0);
}

let began = false;

async function begin(hello) {
  $("foot").textContent = `whosin ${hello.version}${hello.user ? ` · in the name of ${hello.user}` : ""} · no outside address is ever contacted`;
  if (hello.login && !hello.user) {
    show("login");
    $("token").focus();
    return;
  }
  if (!began) {
    began = true;
    startData(hello.register_datasets, hello.curator);
    startViews();
    startPublished();
    window.addEventListener("hashchange", route);
    await startQuestions();
    await Promise.all([files(), start()]);
  }
  route();
}

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearErrors("token");
  try {
    await begin(await post("/api/login", { token: $("token").value }));
    $("token").value = "";
  } catch (error) {
    showError({ field: "token", message: error.message }, "token");
  }
});
window.addEventListener("whosin-login", () => show("login"));
watch();
get("/api/hello").then(begin).catch(() => {}); // `call` has said that the server is gone
