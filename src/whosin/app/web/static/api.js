// Talking to the server. A refusal becomes an `ApiError` with the field it is about.

import { $ } from "./dom.js";

export class ApiError extends Error {
  // `hint`: how the message ends; `mistakes`: all that is wrong, where it is several things.
  constructor(status, field, message, { hint = null, mistakes = null } = {}) {
    super(message);
    Object.assign(this, { status, field, hint, mistakes });
  }
}

export const lost = (error) => error instanceof ApiError && error.status === 0;

function online(there) {
  const back = there && !$("offline").hidden;
  $("offline").hidden = there;
  if (back) window.dispatchEvent(new Event("whosin-back"));
}

export async function call(method, path, body, options = {}) {
  const headers = { "X-Whosin": "page" };
  let content = body;
  if (body !== undefined && !(body instanceof Blob)) {
    headers["Content-Type"] = "application/json";
    content = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: content, signal: options.signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    online(false);
    throw new ApiError(0, null, "The server cannot be reached. Nothing you typed is lost.");
  }
  online(true);
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => null))?.error;
    if (answer.status === 401 && path !== "/api/login") {
      window.dispatchEvent(new Event("whosin-login"));
    }
    throw new ApiError(answer.status, problem?.field ?? null, problem?.message ?? "That failed.", problem ?? {});
  }
  return options.blob ? answer.blob() : answer.json();
}

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body, options) => call("POST", path, body, options);

const pause = (wait) => new Promise((go) => setTimeout(go, wait));

// Where the server still works on other requests, it is asked again.
async function patiently(send, tries, wait) {
  for (let left = tries; ; left -= 1) {
    try {
      return await send();
    } catch (error) {
      if (error.status !== 429 || !left) throw error;
      await pause(wait);
    }
  }
}

// The newest of several calls of one kind: an older one is dropped.
export function latest(tries = 5, wait = 1000) {
  let running = null;
  return async (path, body) => {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    return patiently(() => {
      signal.throwIfAborted();
      return post(path, body, { signal });
    }, tries, wait);
  };
}

// Notice when the server stops, and when it is back.
export function watch(wait = 3000) {
  setInterval(async () => {
    if (document.hidden) return;
    try {
      await get("/api/hello");
    } catch {
      // `call` has said so already
    }
  }, wait);
}

// Without a body it is asked for by GET.
export async function download(path, body, name) {
  saveBlob(await patiently(() => call(body === undefined ? "GET" : "POST", path, body, { blob: true }), 30, 1000), name);
}

export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
