// Saved searches: a query with its filters under a name, always up to date.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { sentence } from "./format.js";
import { say } from "./notice.js";
import { FILTERS, href } from "./router.js";

/** A button that asks for a name and saves `query`. */
export function saveSearch(query, suggested) {
  const { limit, offset, ...asked } = query;
  const box = h("span", { class: "saving" });
  const name = h("input", { type: "text", "aria-label": "Name of the search", value: suggested, maxlength: "100", autocomplete: "off" });
  const submit = async (event) => {
    event.preventDefault();
    if (!name.value.trim()) return;
    try {
      await api.saveSearch(name.value.trim(), asked);
      replace(box, h("span", { role: "status" }, "Saved. It is on the start page."));
    } catch (error) {
      replace(box, h("span", { class: "wrong", role: "alert" }, sentence(error.message)));
    }
  };
  const ask = () => {
    replace(box, h("form", { class: "row", on: { submit } }, name, h("button", { class: "tool", type: "submit" }, "Save")));
    name.select();
  };
  return replace(box, button({ class: "quiet", on: { click: ask } }, "Save this search"));
}

/** The saved searches as a row of links; null where there are none. */
export function savedRow(saved, readOnly) {
  if (!saved.length) return null;
  const list = h("ul", { class: "chips" });
  const row = h("section", { class: "suggestions", "aria-label": "Saved" }, h("h2", { class: "small" }, "Saved"), list);
  for (const { name, query } of saved) {
    const item = h("li", { class: "saved" }, h("a", { class: "chip", "data-route": true, href: href(routeOf(query)) }, name));
    const remove = () => api.removeSearch(name).then(() => { item.remove(); say(`${name} was removed`); if (!list.children.length) row.remove(); }, () => {});
    if (!readOnly) item.append(button({ class: "round", "aria-label": `Remove the saved search ${name}`, on: { click: remove } }, icon("close")));
    list.append(item);
  }
  return row;
}

/** The route of a saved query. */
function routeOf(query) {
  const { text, then, like, second, norm, bank, moments } = query;
  const filters = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, String(query[name])])); // lists with commas
  const moment = like ? { like, start: second ?? "" } : {};
  return { view: "search", q: text, then, norm: norm === "auto" ? "" : norm, bank, moments: moments ? "1" : "", ...filters, ...moment };
}
