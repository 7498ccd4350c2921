// How hits are ranked: by itself, by similarity alone, or by a method against files that turn up too often.
import { button, h, icon, select } from "./dom.js";

export const METHODS = {
  auto: "automatic", none: "similarity alone", is: "inverted softmax", dis: "dynamic inverted softmax", csls: "CSLS", nnn: "nearest neighbours", cent: "centring",
  sinkhorn: "Sinkhorn", gc: "globally corrected",
};

/** The rankings that the server knows, as options. */
export function methods(app) {
  return app.status.norms.map((name) => [name, METHODS[name] ?? name]);
}

/** The folded part of the panel that is about the ranking. */
export function rankingFields(route, app, change, field) {
  const choices = methods(app).map(([name, words]) => [name === "auto" ? "" : name, words]);
  const banks = app.banks();
  const aside = button({ class: "tool", "aria-pressed": String(Boolean(route.compare)), on: { click: () => change("compare", route.compare ? "" : "1") } }, icon("split"), "Side by side");
  return h("details", { class: "ranking-fields", open: Boolean(route.norm || route.compare) }, h("summary", {}, "How results are ranked"),
    h("p", { class: "small" }, "Some files turn up for almost any words. Rankings differ in how they hold those back. ",
      h("a", { href: "/?view=ranking", "data-route": true }, "What is this?")),
    h("div", { class: "row" }, field("norm", "Ranking", select(choices, route.norm)),
      banks.length > 1 && route.norm && route.norm !== "none" && field("bank", "Sample queries", select([["", "automatic"], ...banks.map((name) => [name, name])], route.bank)),
      aside));
}
