// The mark of a file that waits for the thorough pass.
import { h } from "./dom.js";

export function quickLook({ analysis }) {
  return analysis === "quick" && h("span", { class: "small", title: "Known by its key frames; the thorough pass follows" }, "quick look");
}
