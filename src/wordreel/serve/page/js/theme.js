// Dark, light, or as the system says.

const KEY = "wordreel.theme";

export const THEMES = { system: "same as my device", light: "light", dark: "dark" };

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}

/** Whether things may move by themselves. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
