// The mark of a file that waits for its closer look.
import { h } from "./dom.js";

export function quickLook({ analysis }) {
  return analysis === "quick" && h("span", { class: "small", title: "Analysed by a few of its pictures so far; a closer look follows by itself" }, "quick look");
}
