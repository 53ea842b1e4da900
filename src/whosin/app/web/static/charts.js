// Charts as plain SVG; colours come from the style sheet.

import { atMost, h, number, roundedWords, s, valueWords } from "./dom.js";

const path = (points) =>
  points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const key = (names) =>
  h("ul", { class: "key" }, names.map(([name, colour]) => h("li", { class: colour }, name)));

const percent = (value) => `${Math.round(value * 100)}%`;

// Round numbers from 0 up to a largest one, about five.
function round(most) {
  const rough = most / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * ten).find((size) => size >= rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
}

const isNarrow = () => innerWidth < 640; // letters keep their size: drawings are made for their place

// Posterior against prior; the beliefs that are assumed are shaded.
export function beliefChart(view) {
  const [width, height, left, bottom, top, right] = [290, 212, 62, 44, 8, 20];
  const x = (value) => left + value * (width - left - right);
  const y = (value) => height - bottom - value * (height - bottom - top);
  const order = view.curves.length === 3 ? ["c3", "c1", "c0"] : ["c3", "c0"];
  const lines = view.curves.map((curve, index) =>
    s("path", {
      class: `curve ${order[index]}`,
      d: path(curve.points.map(([a, b]) => [x(a), y(b)])),
    }),
  );
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((value) => [
    s("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    s("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)),
    s("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, percent(value)),
  ]);
  const [low, high] = view.band;
  const last = view.curves.at(-1).points;
  const after = last[Math.ceil(high * (last.length - 1) - 1e-9)][1]; // grows with the belief before
  const words = `Someone ${number(high * 100, 6)}% sure becomes at most ${atMost(after * 100, 3)}% sure.`;
  const drawing = s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Belief after against belief before. ${words}` },
    ticks,
    s("rect", {
      class: "band",
      x: x(low),
      y: y(1),
      width: Math.max(2, x(high) - x(low)),
      height: y(0) - y(1),
    }),
    lines,
    s("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, "belief before"),
    s("text", { transform: `translate(13 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "largest belief after"),
  );
  const names = view.curves.map((curve, index) => [curve.name, order[index]]).reverse();
  return [drawing, key(names)];
}

// What the best test reaches, on logarithmic axes as the literature on attacks draws it.
export function ratesChart({ points, promise }) {
  const [width, height, left, bottom, top, right] = [304, 212, 76, 44, 8, 20];
  const least = -5;
  const part = (rate) => Math.max(0, (Math.log10(Math.max(rate, 1e-300)) - least) / -least);
  const x = (rate) => left + part(rate) * (width - left - right);
  const y = (rate) => height - bottom - part(rate) * (height - bottom - top);
  const rates = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1];
  const share = (rate) => `${number(rate * 100)}%`;
  const ticks = rates.map((rate) => [
    s("line", { class: "grid", x1: left, x2: width - right, y1: y(rate), y2: y(rate) }),
    s("text", { x: left - 8, y: y(rate) + 4, "text-anchor": "end" }, share(rate)),
    rates.indexOf(rate) % 2 ? s("text", { x: x(rate), y: height - bottom + 18, "text-anchor": "middle" }, share(rate)) : null,
  ]);
  const line = (colour, spots) => s("path", { class: `curve ${colour}`, d: path(spots.map(([a, b]) => [x(a), y(b)])) });
  const [, reached] = points.find(([rate]) => rate >= 0.01 * (1 - 1e-9));
  return [
    s(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`, role: "img",
        "aria-label": `Largest true positive rate against false positive rate. A test that accuses 1% by mistake recognises at most ${atMost(reached * 100)}%.`,
      },
      ticks,
      line("c3", [[1e-5, 1e-5], [1, 1]]),
      line("c0", points),
      promise ? s("path", { class: "cross", d: `M${x(promise[0]) - 6} ${y(promise[1])}h12M${x(promise[0])} ${y(promise[1]) - 6}v12` }) : null,
      s("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "accused by mistake"),
      s("text", { transform: `translate(13 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "recognised, at most"),
    ),
    key([["the best test", "c0"], ["guessing", "c3"], ...(promise ? [["what is promised", "cross"]] : [])]),
  ];
}

// How wide a label is drawn, so that it is never cut.
let pen = null;
function widthOf(text) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// A label in lines of at most this width, broken at spaces and underscores where there are some.
function inLines(label, width) {
  const lines = [""];
  for (const word of label.split(/(?<=[ _])/)) {
    if (widthOf((lines.at(-1) + word).trimEnd()) <= width) lines[lines.length - 1] += word;
    else {
      if (lines.at(-1)) lines.push("");
      for (const letter of word) {
        if (widthOf(lines.at(-1) + letter) > width) lines.push("");
        lines[lines.length - 1] += letter;
      }
    }
  }
  return lines;
}

// Values by cell with their 95% intervals.
export function answerChart(answer) {
  const at = (name) => answer.columns.indexOf(name);
  if (at("low") < 0 || answer.rows.length < 2 || answer.rows.length > 40) return null;
  const keys = answer.columns.filter((name) => answer.scales[name] === "name");
  const rows = answer.rows.map((row) => ({
    cell: keys.map((name) => row[at(name)]).join(", "),
    value: row[at("value")],
    low: row[at("low")],
    high: row[at("high")],
  }));
  const amounts = rows.map(({ value }, index) => `${answer.noisy?.[index] ? "*" : ""}${roundedWords(value, answer.scales.value, answer.decimals)}`);
  const most = Math.max(0, ...rows.map((row) => row.high));
  const least = Math.min(0, ...rows.map((row) => row.low));
  const width = isNarrow() ? Math.max(240, innerWidth - 100) : 380;
  const room = Math.min(0.4 * width, Math.max(40, ...rows.map((row) => widthOf(row.cell) + 2)));
  const labels = rows.map((row) => inLines(row.cell, room));
  const tallest = Math.max(...labels.map((lines) => lines.length));
  const [left, step, bottom] = [room + 14, 13 + 13 * tallest, 26];
  const right = 22 + Math.max(...amounts.map(widthOf)); // the amounts stand there
  const height = rows.length * step + bottom;
  const x = (value) => left + ((value - least) / (most - least || 1)) * (width - left - right);
  const bars = rows.map((row, index) => {
    const y = index * step + step / 2;
    const top = y + 4 - 6.5 * (labels[index].length - 1);
    return [
      labels[index].map((line, number) =>
        s("text", { class: "label", x: left - 8, y: top + 13 * number, "text-anchor": "end" }, line)),
      s("rect", {
        class: "bar",
        x: Math.min(x(0), x(row.value)),
        y: y - 8,
        width: Math.abs(x(row.value) - x(0)),
        height: 16,
        rx: 2,
      }),
      s("line", { class: "whisker", x1: x(row.low), x2: x(row.high), y1: y, y2: y }),
      s("line", { class: "whisker", x1: x(row.low), x2: x(row.low), y1: y - 4, y2: y + 4 }),
      s("line", { class: "whisker", x1: x(row.high), x2: x(row.high), y1: y - 4, y2: y + 4 }),
      s("text", { class: "amount", x: width - 2, y: y + 4, "text-anchor": "end" }, amounts[index]),
    ];
  });
  const zero = s("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: height - bottom });
  const ends = [least, most].filter((value) => Math.abs(x(value) - x(0)) > 40);
  const scale = [0, ...ends].map((value) =>
    s("text", { x: x(value), y: height - 8, "text-anchor": value === most ? "end" : "middle" }, valueWords(value, answer.scales.value, { maximumSignificantDigits: 4 })),
  );
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${answer.title}, bars with 95% intervals; the table below has the numbers` },
    zero,
    bars,
    scale,
  );
}

export function meter(share, words) {
  const bar = h("div", { class: "meter", role: "img", "aria-label": words }, h("span", {}));
  bar.style.setProperty("--share", `${share * 100}%`);
  return bar;
}

// What was spent after each debit, as steps up to the total.
export function budgetChart({ total, steps }) {
  const [width, height, left, bottom, top, right] = [isNarrow() ? 310 : 520, 170, 48, 26, 22, 12];
  const x = (index) => left + (index / steps.length) * (width - left - right);
  const y = (share) => height - bottom - share * (height - bottom - top);
  let line = `M${x(0)} ${y(0)}`;
  for (const [index, { share }] of steps.entries()) line += `V${y(share).toFixed(1)}H${x(index + 1).toFixed(1)}`;
  const [first, last] = [steps[0], steps.at(-1)];
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Spent by debit, from ${first.day} to ${last.day}: ${last.words} of ${total}` },
    [0, 0.5, 1].map((share) => [
      s("line", { class: share === 1 ? "curve dashed c1" : "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      s("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share)),
    ]),
    s("path", { class: "curve c0", d: line }),
    s("text", { x: width - right, y: y(1) - 7, "text-anchor": "end" }, `budget ${total}`),
    s("text", { x: left, y: height - 7 }, first.day),
    last.day === first.day ? null : s("text", { x: width - right, y: height - 7, "text-anchor": "end" }, last.day),
  );
}

// Level of privacy against the number of changed rows, with the closed-form bounds dashed.
export function curveChart(curves, axis) {
  const [width, height, left, bottom, top, right] = [isNarrow() ? 310 : 440, isNarrow() ? 260 : 340, 58, 46, 12, 18];
  const finite = (value) => typeof value === "number" && Number.isFinite(value);
  const all = curves.flatMap((curve) => curve.points.filter((point) => finite(point.level)));
  const across = Math.max(1e-9, ...all.map((point) => point.distortion)) * 1.04;
  const up = Math.max(1e-9, ...all.map((point) => point.level)) * 1.04;
  const x = (value) => left + (value / across) * (width - left - right);
  const y = (value) => height - bottom - (value / up) * (height - bottom - top);
  const ticks = [
    round(up).map((value) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      s("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, number(value)),
    ]),
    round(across).map((value) =>
      s("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, number(value)),
    ),
  ];
  const inside = ([a, b]) => finite(a) && finite(b) && a <= across && b <= up;
  const lines = curves.map((curve) => {
    const solid = curve.points.map((point) => [point.distortion, point.level]).filter(inside);
    const bounds = curve.bounds.map((bound) => bound.filter(inside));
    return [
      bounds.map((bound) =>
        s("path", { class: `curve dashed ${curve.colour}`, d: path(bound.map(([a, b]) => [x(a), y(b)])) }),
      ),
      s("path", { class: `curve ${curve.colour}`, d: path(solid.map(([a, b]) => [x(a), y(b)])) }),
      solid.map(([a, b]) => s("circle", { class: curve.colour, cx: x(a), cy: y(b), r: 3 })),
    ];
  });
  return [
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${axis} against the number of changed rows` },
      ticks,
      lines,
      s("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "expected number of changed rows"),
      s("text", { transform: `translate(13 ${height / 2 - 10}) rotate(-90)`, "text-anchor": "middle" }, axis),
    ),
    key(curves.map((curve) => [curve.name, curve.colour])),
  ];
}

// −log10 P along the genome: the published SNPs, and ticks where others were looked at. Drawn as
// wide as its place, so that letters keep their size.
export function manhattanChart(picture, room) {
  const width = Math.max(300, Math.min(1100, room));
  const [height, left, bottom, top, right] = [300, 44, 48, 24, 12];
  const span = Math.max(1, ...picture.chromosomes.map(([, , end]) => end));
  const most = Math.max(8.5, ...picture.points.map((point) => point.height * 1.08));
  const x = (place) => left + (place / span) * (width - left - right);
  const y = (value) => height - bottom - (value / most) * (height - bottom - top);
  const levels = round(most).map((value) => [
    s("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    s("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, number(value)),
  ]);
  let free = -Infinity; // chromosomes are named where there is room
  const names = picture.chromosomes.map(([name, start, end]) => {
    const [middle, half] = [x((start + end) / 2), widthOf(name) / 2 + 3];
    if (middle - half < free) return null;
    free = middle + half;
    return s("text", { x: middle, y: height - bottom + 22, "text-anchor": "middle" }, name);
  });
  const looked = picture.looked_at.map((place) => `M${x(place).toFixed(1)} ${height - bottom}v6`).join("");
  const taken = [];
  const points = picture.points.map((point) => {
    const [px, py] = [x(point.position), y(point.height)];
    const wide = widthOf(point.name);
    const anchor = px - wide / 2 < left ? "start" : px + wide / 2 > width ? "end" : "middle";
    const from = { start: px, middle: px - wide / 2, end: px - wide }[anchor];
    const meets = (at) => taken.some((other) => Math.abs(other.at - at) < 14 && from < other.to + 4 && other.from < from + wide + 4);
    const at = [py - 10, py + 20, py - 24].find((each) => each < height - bottom && !meets(each));
    if (at !== undefined) taken.push({ at, from, to: from + wide });
    return [
      s("circle", { class: "c0", cx: px, cy: py, r: 5 }, s("title", {}, `${point.name}: ${number(point.height, 3)}`)),
      at === undefined ? null : s("text", { class: "label", x: px, y: at, "text-anchor": anchor }, point.name),
    ];
  });
  const said = picture.points.map((point) => `${point.name} at ${number(point.height, 3)}`).slice(0, 5).join(", ");
  return [
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `${picture.title}: −log10 P along the genome. ${said || "no SNP"}` },
      levels,
      s("path", { class: "axis", d: looked }),
      s("line", { class: "curve dashed c1", x1: left, x2: width - right, y1: y(picture.line), y2: y(picture.line) }),
      names,
      points,
      s("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "chromosome"),
      s("text", { x: 4, y: 13 }, "−log10 P"),
    ),
    key([["published", "c0"], ["genome-wide significance", "c1"], ["SNPs that were looked at", "c3"]]),
  ];
}
