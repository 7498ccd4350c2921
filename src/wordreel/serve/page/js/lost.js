// An address that leads nowhere.
import { h } from "./dom.js";
import { notice } from "./notice.js";

export function mount(root) {
  root.append(notice("There is nothing at this address", "The link may be old, or mistyped.",
    h("a", { class: "button primary", href: "/", "data-route": true }, "Search"), h("a", { class: "button", href: "/?view=library", "data-route": true }, "Library")));
  return { update: () => {}, leave: () => {}, title: () => "not found" };
}
