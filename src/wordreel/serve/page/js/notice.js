// What the page says and asks: notices, questions, words for screen readers, and boxes that open over it.
import { button, h } from "./dom.js";
import { sentence } from "./format.js";

/** A quiet box with a heading, some words and what to do. */
export function notice(title, words, ...given) {
  const actions = given.filter(Boolean);
  return h("section", { class: "notice" }, h("h2", {}, title), words && h("p", {}, words),
    actions.length > 0 && h("div", { class: "actions" }, ...actions));
}

const NEXT = {
  not_media: "Choose a video, a sound or a picture.",
  broken_media: "See whether it plays elsewhere, then send it again.",
  too_large: "Put it into a folder of the computer that holds the library, and add that folder.",
};

const LOST = [404, 410]; // it would not be there the next time either

/** What went wrong and the next step, with a button that tries again where that can help. */
export function failure(error, again) {
  const lost = LOST.includes(error.status);
  const title = lost ? "That is not here" : error.status ? "That did not work" : "wordreel is not running";
  const next = again && (lost ? h("a", { class: "button", href: "/?view=library", "data-route": true }, "Open Library") : button({ class: "primary", on: { click: again } }, "Try again"));
  const box = notice(title, [sentence(error.message), NEXT[error.code]].filter(Boolean).join(" "), next);
  box.classList.add("failed");
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

/** Resolves to true if `yes` was pressed. */
export function confirmed(title, words, yes, no = "Keep it") {
  return new Promise((answer) => {
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": "confirm-title" });
    let agreed = false;
    dialog.append(h("h2", { id: "confirm-title" }, title), h("p", {}, words),
      h("div", { class: "actions" }, button({ autofocus: true, on: { click: () => dialog.close() } }, no),
        button({ class: "danger", on: { click: () => { agreed = true; dialog.close(); } } }, yes)));
    dialog.addEventListener("close", () => { dialog.remove(); answer(agreed); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

let later;

/** Says `words` to a screen reader, once things have settled. */
export function say(words) {
  clearTimeout(later);
  later = setTimeout(() => {
    document.getElementById("live").textContent = words;
  }, 400);
}

/** Listens while a box is open. `parts` are the box and its opener; returns a function that stops listening. */
export function untilDismissed(parts, close) {
  const running = new AbortController();
  const listen = (type, act) => document.addEventListener(type, (event) => {
    if (parts.some((part) => part.isConnected)) act(event);
    else running.abort(); // other results have replaced it
  }, { capture: true, signal: running.signal });
  const shut = () => { running.abort(); close(); };
  listen("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    shut();
  });
  listen("click", (event) => {
    if (parts.some((part) => part.contains(event.target))) return;
    if (event.detail > 0) { // a press of the mouse or a finger; a key on another button still works
      event.preventDefault();
      event.stopPropagation();
    }
    shut();
  });
  return () => running.abort();
}
