// Empty, waiting and failed: each tells the next step.
import { button, h } from "./dom.js";

/** A quiet box with a heading, some words and what to do. */
export function notice(title, words, ...given) {
  const actions = given.filter(Boolean);
  return h("section", { class: "notice" }, h("h2", {}, title), words && h("p", {}, words),
    actions.length > 0 && h("div", { class: "actions" }, ...actions));
}

/** What went wrong, with a button that tries again. */
export function failure(error, again) {
  const title = error.status ? "That did not work" : "The server is away";
  const box = notice(title, error.message, again && button({ class: "primary", on: { click: again } }, "Try again"));
  box.setAttribute("role", "alert");
  return box;
}

/** Grey cards where pictures will be. */
export function waiting(cards = 8) {
  return h("div", { class: "grid", "aria-hidden": "true" },
    Array.from({ length: cards }, () => h("div", { class: "card ghost" }, h("div", { class: "thumb" }))));
}

/** True for the error of a request that a newer one replaced. */
export function stale(error) {
  return error.name === "AbortError";
}
