// What changed, for those who do not see it change.

let later;

/** Says `words` to a screen reader, once things have settled. */
export function say(words) {
  clearTimeout(later);
  later = setTimeout(() => {
    document.getElementById("live").textContent = words;
  }, 400);
}
