// The box, the second box for "then…", the filters and the switches.
import { button, h, icon, replace } from "./dom.js";
import { chips, panel } from "./filters.js";
import { failure } from "./notice.js";
import { pictureButton, question } from "./question.js";
import { go, here } from "./router.js";

const PAUSE = 180; // ms after the last letter
const DWELT = 3000; // ms after which results count as looked at

/** `{element, chosen, show(route), settled()}`; `down()` is called for an arrow that leaves the box. */
export function box(app, down) {
  const first = line("query", "q", "A man lifts a car, a red boat, somebody says hello…", "Search for", down);
  const second = line("then", "then", "and later in the same video…", "Then", down);
  const thenButton = button({ class: "tool", title: "One thing, and later in the same video another" }, "Then…");
  const filterButton = button({ class: "tool", "aria-expanded": "false", "aria-controls": "filters" }, icon("filter"), "Filters");
  const allButton = button({ class: "tool", "aria-pressed": "false", title: "Every matching moment, not only the best of each video" }, "All moments");
  const tools = h("div", { class: "tools" });
  const set = h("div", { class: "set" });
  const chosen = h("div", { class: "chips chosen", "aria-label": "Chosen" });
  let open = false;
  const trouble = h("div", {});
  const element = h("form", { class: "ask", role: "search", on: { submit: (event) => event.preventDefault() } });
  const picture = pictureButton(element, (error) => replace(trouble, failure(error)));

  const change = (name, value) => go({ ...here(), [name]: value });
  thenButton.addEventListener("click", () => {
    second.label.hidden = !second.label.hidden;
    if (second.label.hidden) change("then", "");
    else second.input.focus();
    thenButton.setAttribute("aria-expanded", String(!second.label.hidden));
  });
  filterButton.addEventListener("click", () => { open = !open; show(here()); });
  allButton.addEventListener("click", () => change("moments", here().moments ? "" : "1"));

  function show(route) {
    for (const { input, name, label, pending } of [first, second]) {
      const words = route[name] ?? "";
      if (!pending() && input.value.trim() !== words) input.value = words;
      if (name === "then" && words) label.hidden = false;
    }
    thenButton.setAttribute("aria-expanded", String(!second.label.hidden));
    filterButton.setAttribute("aria-expanded", String(open));
    allButton.setAttribute("aria-pressed", String(Boolean(route.moments)));
    keepingFocus(set, () => replace(set, open && panel(route, change, app)));
    replace(trouble);
    replace(chosen, question(route), ...chips(route, change));
  }

  second.label.hidden = true;
  replace(tools, thenButton, picture, filterButton, allButton);
  element.append(h("h1", {}, "Find the moment with words"), first.label, second.label, tools, set, trouble);
  return { element, chosen, show, settled: () => { first.settled(); second.settled(); } };
}

/** A field of words that puts itself into the address after a short pause. */
function line(id, name, placeholder, title, down) {
  const input = h("input", { id, type: "search", placeholder, autocomplete: "off", spellcheck: "false", enterkeyhint: "search", maxlength: "2000" });
  const label = h("label", { class: `line ${name}` }, h("span", { class: name === "q" ? "unseen" : "word" }, title), input, name === "q" && icon("search"));
  let timer = 0;
  let seen = null; // when the results of what is in the address were shown
  const put = () => {
    clearTimeout(timer);
    timer = 0;
    const route = here();
    const [before, now] = [route[name] ?? "", input.value.trim()];
    if (before === now) return;
    const { like, name: called, start, end, image, ...words } = route;
    const isStep = step(before, now, seen);
    seen = null;
    go({ ...(name === "q" ? words : route), [name]: now }, { replace: !isStep, state: { editing: before.startsWith(now) } });
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(put, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      put();
      down();
    } else if (event.key === "Enter") {
      put();
    } else if (event.key === "Escape" && !input.value) {
      input.blur();
    }
  });
  return { input, label, name, pending: () => timer !== 0, settled: () => { seen = performance.now(); } };
}

/**
 * Whether going from the words `before` to `now` is a step to go back to. Letters that are typed on or taken back
 * are not; other words are, once the results of those before were shown, and so is anything after a longer look.
 */
function step(before, now, seen) {
  const dwelt = seen !== null && performance.now() - seen > DWELT;
  if (dwelt) return true;
  if (history.state?.editing) return false;
  return !before || (seen !== null && !now.startsWith(before));
}

/** Redraws `parent` and gives the focus back to the control of the same id. */
function keepingFocus(parent, draw) {
  const id = parent.contains(document.activeElement) ? document.activeElement.id : "";
  const unfolded = parent.querySelector("details")?.open;
  draw();
  if (unfolded) parent.querySelector("details")?.setAttribute("open", "");
  if (id) document.getElementById(id)?.focus();
}
