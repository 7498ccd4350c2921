// Which files may answer, and how: a panel of fields, and a chip for each that is set.
import { api } from "./api.js";
import { button, h, icon, select } from "./dom.js";
import { length, percent, readable } from "./format.js";
import { METHODS, rankingFields } from "./norms.js";
import { FILTERS } from "./router.js";
import { expertWords } from "./why.js";

const YES_NO = [["", "does not matter"], ["true", "yes"], ["false", "no"]];
const KINDS = [["", "anything"], ["video", "videos"], ["image", "pictures"], ["audio", "sounds"]];
const SURE = [["", "everything"], ["0.1", "possible ones (10% sure)"], ["0.25", "fair chances (25% sure)"], ["0.5", "likely ones (50% sure)"], ["0.75", "very likely ones (75% sure)"]];
const MODES = ["moments", "compare", "norm", "bank"];

const CHIP_TEXT = {
  kind: (value) => `only ${Object.fromEntries(KINDS)[value] ?? value}`,
  folder: (value) => `in ${readable(value)}`,
  after: (value) => `changed after ${value}`,
  before: (value) => `changed before ${value}`,
  min_duration: (value) => `at least ${length(value)} long`,
  max_duration: (value) => `at most ${length(value)} long`,
  has_speech: (value) => (value === "true" ? "with speech" : "without speech"),
  has_text: (value) => (value === "true" ? "with text on screen" : "without text on screen"),
  expert: (value) => `with ${expertWords(value)}`,
  tags: (value) => `tagged ${value}`,
  people: (value) => `with ${value}`,
  min_confidence: (value) => `at least ${percent(value)} sure`,
  moments: () => "all moments",
  compare: () => "side by side",
  norm: (value) => `ranking: ${METHODS[value] ?? value}`,
  bank: (value) => `sample queries: ${value}`,
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
    field("min_duration", "At least this long", input("min_duration", number)),
    field("max_duration", "At most this long", input("max_duration", number)),
    field("has_speech", "Somebody speaks", select(YES_NO, route.has_speech)),
    field("has_text", "Text on screen", select(YES_NO, route.has_text)),
    field("expert", "Contains", select([["", "anything"], ...app.status.experts.map((name) => [name, expertWords(name)])], route.expert)),
    field("min_confidence", "Show", select(SURE, route.min_confidence)),
    field("tags", "Tagged", offering(input("tags", { type: "text", placeholder: "any tag", list: "all-tags", autocomplete: "off" }),
      () => api.tags().then(({ tags }) => tags.map(({ tag }) => tag)))),
    field("people", "Person", offering(input("people", { type: "text", placeholder: "anybody", list: "all-people", autocomplete: "off" }),
      () => api.people().then(({ people }) => people.map(({ name }) => name).filter(Boolean)))),
    rankingFields(route, app, change, field),
    h("datalist", { id: "folders" }, app.status.folders.map((folder) => h("option", { value: folder }))),
    h("datalist", { id: "all-tags" }), h("datalist", { id: "all-people" }));
}

/** A field that offers words to choose from once it has the focus. */
function offering(input, load) {
  input.addEventListener("focus", async () => {
    const known = await load().catch(() => []);
    input.list?.replaceChildren(...known.map((value) => h("option", { value })));
  });
  return input;
}

/** What is set, each with a button that removes it. */
export function chips(route, change) {
  return [...FILTERS, ...MODES].filter((name) => route[name]).map((name) => {
    const words = CHIP_TEXT[name](route[name]);
    return button({ class: "chip", data: { filter: name }, "aria-label": `Remove: ${words}`, on: { click: () => change(name, "") } }, words, icon("close"));
  });
}

/** The filters as the API takes them. */
export function filterFields(route) {
  const given = {};
  for (const name of FILTERS) if (route[name]) given[name] = typed(name, route[name]);
  return given;
}

function typed(name, value) {
  if (name === "tags" || name === "people") return value.split(",").map((one) => one.trim()).filter(Boolean);
  if (name.startsWith("has_")) return value === "true";
  return name.startsWith("min_") || name.startsWith("max_") ? Number(value) : value;
}
