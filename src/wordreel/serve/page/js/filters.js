// Which videos may answer: a panel of fields, and a chip for each that is set.
import { button, h, icon } from "./dom.js";
import { length } from "./format.js";
import { FILTERS } from "./router.js";

const YES_NO = [["", "any"], ["true", "yes"], ["false", "no"]];
const KINDS = [["", "anything"], ["video", "videos"], ["image", "pictures"], ["audio", "sounds"]];
const SURE = [["", "any"], ["0.1", "10 % sure"], ["0.25", "25 % sure"], ["0.5", "50 % sure"], ["0.75", "75 % sure"]];

const CHIP_TEXT = {
  kind: (value) => `only ${Object.fromEntries(KINDS)[value] ?? value}`,
  folder: (value) => `in ${value}`,
  after: (value) => `after ${value}`,
  before: (value) => `before ${value}`,
  min_duration: (value) => `at least ${length(value)}`,
  max_duration: (value) => `at most ${length(value)}`,
  has_speech: (value) => (value === "true" ? "with speech" : "without speech"),
  has_text: (value) => (value === "true" ? "with text on screen" : "without text on screen"),
  expert: (value) => `with ${value}`,
  min_confidence: (value) => `at least ${Math.round(100 * value)} % sure`,
};

/** The panel; `change(name, value)` is called when a field was set. */
export function panel(route, change, app) {
  const field = (name, title, control) => {
    control.id = `filter-${name}`;
    control.addEventListener("change", () => change(name, control.value));
    return h("div", { class: "field" }, h("label", { for: control.id }, title), control);
  };
  const input = (name, props) => h("input", { ...props, value: route[name] ?? "" });
  const number = { type: "number", min: "0", step: "any", inputmode: "decimal", placeholder: "seconds" };
  return h("div", { class: "filters", id: "filters" },
    field("kind", "What", select(KINDS, route.kind)),
    field("folder", "In folder", input("folder", { type: "text", placeholder: "any folder", list: "folders", autocomplete: "off" })),
    field("after", "Changed after", input("after", { type: "date" })),
    field("before", "Changed before", input("before", { type: "date" })),
    field("min_duration", "Not shorter than", input("min_duration", number)),
    field("max_duration", "Not longer than", input("max_duration", number)),
    field("has_speech", "Has speech", select(YES_NO, route.has_speech)),
    field("has_text", "Has text on screen", select(YES_NO, route.has_text)),
    field("expert", "With findings of", select([["", "any expert"], ...app.status.experts.map((name) => [name, name])], route.expert)),
    field("min_confidence", "Sure at least", select(SURE, route.min_confidence)),
    h("datalist", { id: "folders" }, app.status.folders.map((folder) => h("option", { value: folder }))));
}

export function select(options, chosen = "", props = {}) {
  return h("select", props, options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
}

/** The filters that are set, each with a button that removes it. */
export function chips(route, change) {
  return FILTERS.filter((name) => route[name]).map((name) => {
    const words = CHIP_TEXT[name](route[name]);
    return button({ class: "chip", "aria-label": `Remove the filter: ${words}`, on: { click: () => change(name, "") } }, words, icon("close"));
  });
}

/** The filters as the API takes them. */
export function filterFields(route) {
  const given = {};
  for (const name of FILTERS) if (route[name]) given[name] = typed(name, route[name]);
  return given;
}

function typed(name, value) {
  if (name.startsWith("has_")) return value === "true";
  return name.startsWith("min_") || name.startsWith("max_") ? Number(value) : value;
}
