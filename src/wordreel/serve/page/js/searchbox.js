// The box, the second box for "then…", the filters and the switches.
import { button, h, icon, replace } from "./dom.js";
import { chips, panel } from "./filters.js";
import { failure } from "./notice.js";
import { norms } from "./norms.js";
import { pictureButton } from "./picture.js";
import { FILTERS, go, here } from "./router.js";

const PAUSE = 180; // ms after the last letter

/** `{element, show(route)}`. */
export function box(app) {
  const first = line("query", "q", "A man lifts a car, a red boat, somebody says hello…", "Search for");
  const second = line("then", "then", "and later in the same video…", "Then");
  const thenButton = button({ class: "tool" }, "Then…");
  const filterButton = button({ class: "tool", "aria-expanded": "false", "aria-controls": "filters" }, icon("filter"), "Filters");
  const sideButton = button({ class: "tool", "aria-pressed": "false" }, icon("split"), "Side by side");
  const allButton = button({ class: "tool", "aria-pressed": "false", title: "Every matching moment, not only the best of each video" }, "All moments");
  const tools = h("div", { class: "tools" });
  const set = h("div", { class: "set" });
  const chosen = h("div", { class: "chips" });
  let open = false;
  const trouble = h("div", {});
  const element = h("form", { class: "ask", role: "search", on: { submit } });
  const picture = pictureButton(element, (error) => replace(trouble, failure(error)));

  const change = (name, value) => go({ ...here(), [name]: value });
  const redraw = () => show(here());
  thenButton.addEventListener("click", () => {
    second.label.hidden = !second.label.hidden;
    if (second.label.hidden) change("then", "");
    else second.input.focus();
    thenButton.setAttribute("aria-expanded", String(!second.label.hidden));
  });
  filterButton.addEventListener("click", () => { open = !open; redraw(); });
  for (const [name, toggle] of [["compare", sideButton], ["moments", allButton]]) {
    toggle.addEventListener("click", () => change(name, here()[name] ? "" : "1"));
  }

  function show(route) {
    for (const { input, name, label, pending } of [first, second]) {
      const words = route[name] ?? "";
      if (!pending() && input.value.trim() !== words) input.value = words;
      if (name === "then" && words) label.hidden = false;
    }
    thenButton.setAttribute("aria-expanded", String(!second.label.hidden));
    filterButton.setAttribute("aria-expanded", String(open));
    sideButton.setAttribute("aria-pressed", String(Boolean(route.compare)));
    allButton.setAttribute("aria-pressed", String(Boolean(route.moments)));
    keepingFocus(set, () => replace(set, open && panel(route, change, app)));
    keepingFocus(tools, () => replace(tools, thenButton, picture, filterButton, allButton, sideButton, norms(route, app, change)));
    replace(trouble);
    replace(chosen, source(route), ...chips(route, change));
  }

  second.label.hidden = true;
  element.append(h("h1", {}, "Find the moment with words"), first.label, second.label, tools, set, chosen, trouble);
  return { element, show };
}

/** A field of words that puts itself into the address after a short pause. */
function line(id, name, placeholder, title) {
  const input = h("input", { id, type: "search", placeholder, autocomplete: "off", spellcheck: "false", enterkeyhint: "search", maxlength: "2000" });
  const label = h("label", { class: `line ${name}` }, h("span", { class: name === "q" ? "unseen" : "word" }, title), input, name === "q" && icon("search"));
  let timer = 0;
  let fresh = true; // the first letter after a pause is a step to go back to, the others replace it
  const put = (replaceIt) => {
    clearTimeout(timer);
    timer = 0;
    const route = { ...here(), [name]: input.value.trim() };
    if (name === "q") for (const part of ["like", "name", "start", "end", "image"]) delete route[part];
    go(route, { replace: replaceIt });
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { put(!fresh); fresh = false; }, PAUSE);
  });
  input.addEventListener("blur", () => { fresh = true; });
  input.addEventListener("keydown", (event) => keys(event, input, put));
  return { input, label, name, pending: () => timer !== 0 };
}

function keys(event, input, put) {
  if (event.key === "ArrowDown") {
    const link = document.querySelector(".results a.open");
    if (link) { event.preventDefault(); link.focus(); }
  } else if (event.key === "Enter") {
    put(true);
  } else if (event.key === "Escape" && !input.value) {
    input.blur();
  }
}

function submit(event) {
  event.preventDefault();
}

/** What is searched with in the place of words: a picture, or a moment that others are to be like. */
function source(route) {
  if (!route.like && !route.image) return null;
  const clear = () => go({ view: "search", ...Object.fromEntries(FILTERS.filter((name) => route[name]).map((name) => [name, route[name]])) });
  return button({ class: "chip strong", "aria-label": "Stop looking for similar ones", on: { click: clear } }, `Like ${route.name ?? "this"}`, icon("close"));
}

/** Redraws `parent` and gives the focus back to the control of the same id. */
function keepingFocus(parent, draw) {
  const id = parent.contains(document.activeElement) ? document.activeElement.id : "";
  const element = document.activeElement;
  draw();
  if (id) document.getElementById(id)?.focus();
  else if (element?.isConnected && element !== document.body && document.activeElement !== element) element.focus();
}
