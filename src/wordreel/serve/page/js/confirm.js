// A question that must be answered.
import { button, h } from "./dom.js";

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
