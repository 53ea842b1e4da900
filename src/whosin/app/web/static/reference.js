// The reference of the routes, drawn from the OpenAPI description that the server itself makes.

import { get } from "./api.js";
import { $, h } from "./dom.js";

const description = await get("/api/openapi.json").catch(() => null);

// Text with `code` in it.
const prose = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

const resolve = (schema) =>
  schema?.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)] : schema;

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(kind).filter((name) => name !== "null").join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items) || "values"}`;
  return schema.format === "binary" ? "bytes" : [schema.type ?? "any"].flat().join(" or ");
}

function fields(schema) {
  const whole = resolve(schema);
  return Object.entries(whole?.properties ?? {}).map(([name, part]) => {
    const about = part.description ?? (part.$ref ? resolve(part).description : "") ?? "";
    return [name, type(part), whole.required?.includes(name) ? "needed" : "", about];
  });
}

// A type; one of the shapes below is a link to it.
function type(schema) {
  const name = kind(schema);
  const shape = name.replace("list of ", "");
  return description.components.schemas[shape] ? h("a", { href: `#${shape}` }, name) : name;
}

const shape = (name) => {
  const whole = description.components.schemas[name];
  return h("section", { class: "card route", id: name }, h("h3", {}, name), h("p", {}, whole.description ?? ""), table(fields(whole)));
};

function table(rows) {
  if (!rows.length) return null;
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": "fields" },
    h("table", {}, h("tbody", {}, rows.map(([name, type, needed, about]) =>
      h("tr", {}, h("td", {}, h("code", {}, name)), h("td", {}, type), h("td", { class: "soft" }, needed), h("td", { class: "soft" }, about))))),
  );
}

function route(path, method, operation) {
  const content = operation.requestBody?.content ?? {};
  const body = Object.values(content)[0]?.schema;
  const parameters = (operation.parameters ?? []).map((one) => [`?${one.name}`, kind(one.schema), one.required ? "needed" : "", one.description ?? ""]);
  const answer = Object.entries(operation.responses).find(([code]) => code.startsWith("2"));
  const returned = Object.values(answer?.[1].content ?? {})[0]?.schema;
  return h(
    "section",
    { class: "card route" },
    h("h3", {}, h("span", { class: "method" }, method.toUpperCase()), path),
    h("p", {}, prose(operation.description ?? operation.summary)),
    parameters.length || body ? h("h4", {}, "Takes") : null,
    table([...parameters, ...(body?.$ref ? [["body", type(body), "needed", resolve(body).description ?? ""]] : fields(body))]),
    h("h4", {}, "Returns"),
    table([[answer?.[0] ?? "", returned?.$ref ? type(returned) : Object.keys(answer?.[1].content ?? {}).join(", "), "", resolve(returned)?.description ?? ""]]),
  );
}

if (description) {
  $("about").replaceChildren(...description.info.description.split("\n\n").map((text) => h("p", {}, prose(text))));
  const example = `import httpx\n\nserver = httpx.Client(base_url="${location.origin}", headers={"X-Whosin": "notebook"})\nplan = {"adversary": {"prior": "0.05..0.5"}, "target": {"posterior": "0.6"}}\nserver.post("/api/plan", json=plan).json()["plan"]["epsilon"]`;
  $("routes").replaceChildren(
    h("pre", { tabindex: "0" }, example),
    h("h2", {}, "Routes"),
    ...Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => route(path, method, operation))),
    h("h2", { id: "shapes" }, "Shapes"),
    ...Object.keys(description.components.schemas).map(shape),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
} else {
  $("routes").replaceChildren(h("p", {}, "The routes cannot be read from here: ", h("a", { href: "/#release" }, "say who you are"), " first."));
}
