// Elements without markup strings: text stays text, and the content-security policy needs no exceptions.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `props` are attributes, but for `on` (listeners by event), `vars` (CSS variables),
 * `data` (data attributes) and `value` (the property). null, undefined and false leave an attribute out.
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  const { on = {}, vars = {}, data = {}, value, ...attributes } = props;
  for (const [name, given] of Object.entries(attributes)) setAttribute(element, name, given);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  for (const [name, given] of Object.entries(vars)) element.style.setProperty(name, given);
  for (const [name, given] of Object.entries(data)) element.dataset[name] = given;
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (value !== undefined) element.value = value;
  return element;
}

function setAttribute(element, name, given) {
  if (given === null || given === undefined || given === false) return;
  element.setAttribute(name, given === true ? "" : given);
}

/** Puts `children` in the place of what `element` held. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return element;
}

const PATHS = {
  close: "M6 6l12 12M18 6 6 18",
  download: "M12 4v11M7 10l5 5 5-5M4 19h16",
  filter: "M4 6h16M7 12h10M10 18h4",
  folder: "M3 6h6l2 2h10v11H3z",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
  next: "M9 5l7 7-7 7",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  previous: "M15 5l-7 7 7 7",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM15.5 15.5 20 20",
  sound: "M4 10v4M8 7v10M12 4v16M16 8v8M20 11v2",
  split: "M4 5h7v14H4zM13 5h7v14h-7z",
  trash: "M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5M14 11v5",
  upload: "M12 16V5M7 10l5-5 5 5M4 19h16",
};

/** A drawing of one of the few icons; it is always beside words or a label. */
export function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}

/** A button that does not submit. */
export function button(props, ...children) {
  return h("button", { type: "button", ...props }, ...children);
}

/** A choice among `[value, words]`. */
export function select(options, chosen = "", props = {}) {
  return h("select", props, options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
}
