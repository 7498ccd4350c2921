// Boxes that open over the page: Escape or a click elsewhere closes them, and that click does nothing else.

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
