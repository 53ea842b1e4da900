// A profile: the most that may be believed after, by the belief before, edited as a curve.
// The text of the field is what is sent; points are moved by hand, by keys, or typed in the table.

import { h, s } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [400, 330, 62, 46, 12, 20];
const x = (share) => LEFT + share * (WIDTH - LEFT - RIGHT);
const y = (share) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
const percent = (share) => `${Number((share * 100).toPrecision(12))}%`;
const START = "1%:5%, 10%:30%, 50%:65%";
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// A share as it is spelled: 0.1, 10% or 1/10; NaN if it is none.
function share(text) {
  const spelled = text.trim();
  if (!spelled) return NaN;
  if (spelled.endsWith("%")) return Number(spelled.slice(0, -1)) / 100;
  const [top, bottom] = spelled.split("/");
  return bottom === undefined ? Number(top) : Number(top) / Number(bottom);
}

const pointsOf = (text) =>
  text.split(",").filter((part) => part.trim()).map((part) => {
    const [before, after = ""] = part.split(":");
    return { before: before.trim(), after: after.trim() };
  });
const textOf = (points) => points.map(({ before, after }) => `${before}:${after}`).join(", ");
const placed = ({ before, after }) => [share(before), share(after)];
const drawable = (point) => placed(point).every((each) => each >= 0 && each <= 1);

// `field`: the input that holds the text. Returns the editor, and what shows a plan's own curve in it.
export function profileEditor(field, changed) {
  let points = pointsOf(START);
  let own = null; // what the plan allows, once it is known
  field.value = textOf(points);
  const drawing = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "profile", role: "group", "aria-label": "The most that may be believed after, by the belief before. Points move with the arrow keys." });
  const table = h("tbody", {});

  function say(focus) {
    field.value = textOf(points);
    draw(focus);
    changed();
  }

  function move(index, before, after, focus) {
    const limit = (value, low, high) => Math.min(Math.max(value, low), high);
    const [left, right] = [points[index - 1], points[index + 1]].map((each) => each && share(each.before));
    const spot = limit(before, left === undefined ? 0 : left + 0.001, right === undefined ? 1 : right - 0.001);
    const rounded = (value) => percent(Math.round(value * 1000) / 1000);
    points[index] = { before: rounded(spot), after: rounded(limit(after, 0, 1)) };
    say(focus);
  }

  function remove(index) {
    if (points.length < 2) return;
    points.splice(index, 1);
    say(Math.min(index, points.length - 1));
  }

  // Between the two points that are furthest apart, on the line between them; or after the last.
  function add() {
    const spots = points.filter(drawable).map(placed).sort(([a], [b]) => a - b);
    const gaps = spots.slice(1).map(([a], index) => a - spots[index][0]);
    const last = spots.at(-1) ?? [0, 0];
    const widest = gaps.indexOf(Math.max(...gaps));
    const [from, to] = gaps.length && gaps[widest] >= 1 - last[0] ? spots.slice(widest, widest + 2) : [last, [1, 1]];
    const middle = [0, 1].map((side) => percent(Math.round((from[side] + to[side]) * 500) / 1000));
    points.push({ before: middle[0], after: middle[1] });
    points.sort((a, b) => share(a.before) - share(b.before));
    say(points.findIndex(({ before }) => before === middle[0]));
  }

  function drag(event, index) {
    event.preventDefault();
    const handle = event.currentTarget;
    const box = drawing.getBoundingClientRect();
    const at = (moved) => [
      (((moved.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT),
      (HEIGHT - BOTTOM - ((moved.clientY - box.top) / box.height) * HEIGHT) / (HEIGHT - BOTTOM - TOP),
    ];
    handle.focus();
    const follow = (moved) => move(index, ...at(moved), index);
    const stop = () => window.removeEventListener("pointermove", follow);
    window.addEventListener("pointermove", follow);
    window.addEventListener("pointerup", stop, { once: true });
    window.addEventListener("pointercancel", stop, { once: true });
  }

  function pressed(event, index) {
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      remove(index);
    }
    const step = KEYS[event.key];
    if (!step) return;
    event.preventDefault();
    const size = event.shiftKey ? 0.05 : 0.01;
    const [before, after] = placed(points[index]);
    move(index, before + step[0] * size, after + step[1] * size, index);
  }

  function handle(point, index) {
    if (!drawable(point)) return null;
    const [before, after] = placed(point);
    return s(
      "circle",
      {
        class: "handle", cx: x(before), cy: y(after), r: 8, tabindex: 0, role: "button",
        "aria-label": `Point ${index + 1}: from ${percent(before)} to at most ${percent(after)}; arrow keys move it, Delete removes it`,
        onpointerdown: (event) => drag(event, index),
        onkeydown: (event) => pressed(event, index),
      },
    );
  }

  function row(point, index) {
    const cell = (side, words) => {
      const input = h("input", { class: "short", value: point[side], "aria-label": `${words}, point ${index + 1}`, inputmode: "decimal" });
      input.addEventListener("change", () => {
        points[index] = { ...points[index], [side]: /^[\d.]+$/.test(input.value.trim()) ? `${input.value.trim()}%` : input.value.trim() };
        points.sort((a, b) => share(a.before) - share(b.before));
        say();
      });
      return h("td", {}, input);
    };
    return h("tr", {}, cell("before", "Belief before"), cell("after", "At most after"),
      h("td", {}, h("button", { type: "button", class: "quiet", disabled: points.length < 2, "aria-label": `Remove point ${index + 1}`, onclick: () => remove(index) }, "×")));
  }

  function draw(focus) {
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((value) => [
      s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)),
      s("text", { x: x(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, percent(value)),
    ]);
    const line = (spots) => spots.map(([a, b], index) => `${index ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
    drawing.replaceChildren(
      ...ticks.flat(),
      s("path", { class: "curve dashed c3", d: line([[0, 0], [1, 1]]) }),
      ...(own ? [s("path", { class: "curve c0", d: line(own) })] : []),
      s("path", { class: "curve c2", d: line(points.filter(drawable).map(placed)) }),
      ...points.map(handle).filter(Boolean),
      s("text", { x: x(0.5), y: HEIGHT - 6, "text-anchor": "middle" }, "belief before"),
      s("text", { transform: `translate(13 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "largest belief after"),
    );
    table.replaceChildren(...points.map(row));
    if (focus !== undefined) drawing.querySelectorAll(".handle")[focus]?.focus();
  }

  const read = () => {
    points = pointsOf(field.value);
    own = null;
    draw();
  };
  field.addEventListener("input", read);
  draw();
  const editor = h(
    "div",
    { class: "profile-editor" },
    h("div", { class: "chart" }, drawing,
      h("ul", { class: "key" }, h("li", { class: "c2" }, "what you allow: drag the points"), h("li", { class: "c0" }, "what the plan lets anyone believe"), h("li", { class: "c3" }, "learning nothing"))),
    h("table", { class: "points" }, h("thead", {}, h("tr", {}, h("th", {}, "before"), h("th", {}, "at most after"), h("th", {}))), table),
    h("button", { type: "button", class: "quiet", onclick: add }, "Add a point"),
  );
  return { editor, read, show: (curve) => { own = curve; draw(focused()); } };

  function focused() {
    const index = [...drawing.querySelectorAll(".handle")].indexOf(document.activeElement);
    return index < 0 ? undefined : index;
  }
}
