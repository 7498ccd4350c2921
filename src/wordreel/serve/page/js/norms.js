// How hits are ranked: by itself, plainly, or by a method against hubs.
import { h } from "./dom.js";
import { select } from "./filters.js";

export const METHODS = {
  auto: "automatic", none: "plain", is: "inverted softmax", dis: "dynamic inverted softmax", csls: "CSLS", nnn: "nearest neighbours", cent: "centring",
  sinkhorn: "Sinkhorn", gc: "globally corrected",
};

/** The rankings that the server knows, as options. */
export function methods(app) {
  return app.status.norms.map((name) => [name, METHODS[name] ?? name]);
}

/** The switch for the ranking and, where there are several, for the bank. */
export function norms(route, app, change) {
  const banks = app.banks();
  const ranked = select(methods(app), route.norm ?? "auto", { id: "norm" });
  ranked.addEventListener("change", () => change("norm", ranked.value === "auto" ? "" : ranked.value));
  const parts = [h("label", { for: "norm" }, "Ranking"), ranked];
  if (banks.length > 1 && route.norm && route.norm !== "none") parts.push(...bankChoice(route, banks, change));
  return h("span", { class: "choice" }, parts);
}

function bankChoice(route, banks, change) {
  const chosen = select([["", "default"], ...banks.map((name) => [name, name])], route.bank, { id: "bank" });
  chosen.addEventListener("change", () => change("bank", chosen.value));
  return [h("label", { for: "bank" }, "Bank"), chosen];
}
