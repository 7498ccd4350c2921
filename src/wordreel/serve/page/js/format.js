// Numbers as people say them.

/** 72.4 -> "1:12", 3725 -> "1:02:05". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(Number(seconds) || 0));
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** The moment of a hit; a picture has none. */
export function moment({ kind, start, end }) {
  if (kind === "image") return "picture";
  return `${clock(start)} – ${clock(Math.max(end, start))}`;
}

/** "3 h 20 min", "4 min", "12 s". */
export function length(seconds) {
  const whole = Math.round(Number(seconds) || 0);
  if (whole >= 3600) return `${count(Math.floor(whole / 3600))} h ${Math.round((whole % 3600) / 60)} min`;
  return whole >= 60 ? `${Math.round(whole / 60)} min` : `${whole} s`;
}

/** "0.14 s". */
export function took(ms) {
  return `${(ms / 1000).toFixed(2)} s`;
}

export function count(number) {
  return Number(number).toLocaleString("en");
}

/** "1 video", "2 videos". */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Rounded down, so that what is below a limit never reads as if it reached it. */
export function percent(share) {
  return `${Math.floor(100 * share + 1e-9)}%`;
}

/** A confidence in words; null where nothing can tell. */
export function confidenceText(confidence) {
  if (confidence === null || confidence === undefined) return null;
  return confidence < 0.01 ? "under 1% sure" : `${percent(confidence)} sure`;
}

/** What the server says, with a capital letter (unless it begins with the name of a file) and an end. */
export function sentence(words) {
  const whole = words.replace(/^\p{Ll}+(?=[\s,])/u, (first) => first.charAt(0).toUpperCase() + first.slice(1));
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}

const OVERRIDES = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A name without the signs that turn the direction of text, which make "exe.4pm" of "mp4.exe". */
export function readable(name) {
  return name.replace(OVERRIDES, "\ufffd");
}

/** The last part of a path. */
export function base(path) {
  return path.split(/[\\/]/).pop();
}

/** Of a time in seconds since 1970. */
export function day(time) {
  return new Date(time * 1000).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}
