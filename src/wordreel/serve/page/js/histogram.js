// How many files are found how often, before and after: the number of files by logarithm, since there are few hubs.
import { s } from "./dom.js";
import { count } from "./format.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [640, 310, 52, 56, 12, 12];
const LEAST = 0.7; // the foot of the logarithmic axis, below one item

/** `series` is `{name: items per bin}`; bin i holds what is retrieved from `edges[i]` to below the next edge. */
export function histogram(series, edges, k) {
  const top = Math.max(2, ...Object.values(series).flat());
  const x = (bin) => LEFT + ((WIDTH - LEFT - RIGHT) * bin) / edges.length;
  const rise = (items) => Math.log(Math.max(items, LEAST) / LEAST) / Math.log(top / LEAST);
  const y = (items) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * rise(items);
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": description(series) },
    axisY(top, y), axisX(edges, x, k),
    Object.entries(series).map(([name, held], at) => [bars(name, held, edges, at + 1, x, y), outline(held, at + 1, x, y)]));
}

function bars(name, held, edges, number, x, y) {
  return held.map((items, bin) => items > 0 && s("rect", {
    class: `fill${number}`, x: x(bin), y: y(items), width: x(bin + 1) - x(bin), height: y(0) - y(items), "fill-opacity": 0.16,
  }, s("title", {}, `${name}, ${times(bin, edges)}: ${count(items)}`)));
}

function outline(held, number, x, y) {
  const points = held.flatMap((items, bin) => [`${x(bin)},${y(items)}`, `${x(bin + 1)},${y(items)}`]);
  return s("polyline", { class: `line${number}`, points: [`${x(0)},${y(0)}`, ...points, `${x(held.length)},${y(0)}`].join(" ") });
}

function times(bin, edges) {
  if (edges[bin] === 0) return "never";
  const last = (edges[bin + 1] ?? edges[bin] + 1) - 1;
  return last === edges[bin] ? `${last} times` : `${edges[bin]} to ${last} times`;
}

function axisY(top, y) {
  const powers = Array.from({ length: 9 }, (_, power) => 10 ** power);
  const ticks = top < 1000 ? powers.flatMap((power) => [power, 2 * power, 5 * power]) : powers;
  return ticks.filter((tick) => tick <= top).map((tick) => [
    s("line", { class: "grid-line", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
    s("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, count(tick))]);
}

function axisX(edges, x, k) {
  const every = Math.ceil(edges.length / 10);
  return [s("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    edges.map((edge, bin) => bin % every === 0 && s("text", { x: (x(bin) + x(bin + 1)) / 2, y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, count(edge))),
    s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, `how often a file is ${k === 1 ? "the best" : `among the best ${k}`}; height: how many files (logarithmic)`)];
}

function description(series) {
  return Object.entries(series).map(([name, [never]]) => `${name}: ${count(never)} files are never found`).join("; ");
}
