// Talking with the server. Every failure is an ApiError whose message says the next step.

export class ApiError extends Error {
  constructor(message, { status = 0, code = "away", field = null } = {}) {
    super(message);
    Object.assign(this, { status, code, field });
  }
}

const AWAY = "wordreel does not answer. It may have been stopped: start it again on the computer that holds the library, then try again.";

async function send(method, path, { query, body, signal, headers = {} } = {}) {
  const plain = body !== undefined && !(body instanceof Blob);
  const response = await fetch(path + written(query), {
    method,
    signal,
    headers: {
      Accept: "application/json",
      ...(method === "GET" ? {} : { "X-Wordreel": "1" }),
      ...(plain ? { "Content-Type": "application/json" } : {}),
      ...headers,
    },
    body: plain ? JSON.stringify(body) : body,
  }).catch((failure) => {
    throw failure.name === "AbortError" ? failure : new ApiError(AWAY);
  });
  return parsed(response);
}

async function parsed(response) {
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  const { code = "unknown", message, field = null } = body?.error ?? {};
  if (response.status === 401) dispatchEvent(new Event("wordreel:login"));
  const text = message ?? "Something went wrong on the server. Try again in a moment.";
  throw new ApiError(text, { status: response.status, code, field });
}

/** A moment of a file as a file of its own: `{blob, start, name}`, which begins at `start`, a little early perhaps. */
export async function clip(content, query, signal) {
  const response = await fetch(`/api/clip/${encodeURIComponent(content)}${written(query)}`, { signal }).catch((failure) => {
    throw failure.name === "AbortError" ? failure : new ApiError(AWAY);
  });
  if (!response.ok) await parsed(response);
  const name = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
  return { blob: await response.blob(), start: Number(response.headers.get("X-Clip-Start")), name: decodeURIComponent(name ?? "clip.mp4") };
}

/** `?a=1&b=2` of what is given; empty values are left out. */
export function written(query = {}) {
  const all = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const given = all.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

const at = (content) => `/api/videos/${encodeURIComponent(content)}`;

export const api = {
  status: (options) => send("GET", "/api/status", options),
  search: (body, signal) => send("POST", "/api/search", { body, signal }),
  videos: (query, signal) => send("GET", "/api/videos", { query, signal }),
  video: (content, signal) => send("GET", at(content), { signal }),
  match: (content, query, signal) => send("GET", `${at(content)}/match`, { query, signal }),
  check: (content) => send("GET", media(content), { headers: { Range: "bytes=0-0" } }),
  forget: (content) => send("DELETE", at(content)),
  folders: (path, signal) => send("GET", "/api/folders", { query: { path }, signal }),
  watched: (signal) => send("GET", "/api/watched", { signal }),
  watch: (path, on) => send("PUT", "/api/watched", { body: { path, on } }),
  addFolder: (path) => send("POST", "/api/folders", { body: { path } }),
  jobs: (signal) => send("GET", "/api/jobs", { signal }),
  pause: (paused) => send("PUT", "/api/jobs", { body: { paused } }),
  cancel: (id) => send("DELETE", `/api/jobs/${encodeURIComponent(id)}`),
  failures: (signal) => send("GET", "/api/failures", { signal }),
  retry: () => send("POST", "/api/failures/retry"),
  examples: (signal) => send("GET", "/api/examples", { signal }),
  annotations: (content, signal) => send("GET", `${at(content)}/annotations`, { signal }),
  annotate: (content, body) => send("POST", `${at(content)}/annotations`, { body }),
  removeAnnotation: (id) => send("DELETE", `/api/annotations/${encodeURIComponent(id)}`),
  tags: (signal) => send("GET", "/api/tags", { signal }),
  saved: (signal) => send("GET", "/api/saved", { signal }),
  saveSearch: (name, body) => send("PUT", `/api/saved/${encodeURIComponent(name)}`, { body }),
  removeSearch: (name) => send("DELETE", `/api/saved/${encodeURIComponent(name)}`),
  people: (signal) => send("GET", "/api/people", { signal }),
  groupFaces: (on) => send("PUT", "/api/people", { body: { on } }),
  forgetPeople: () => send("DELETE", "/api/people"),
  faces: (id, signal) => send("GET", `/api/people/${encodeURIComponent(id)}/faces`, { signal }),
  namePerson: (id, name) => send("PUT", `/api/people/${encodeURIComponent(id)}`, { body: { name } }),
  forgetPerson: (id) => send("DELETE", `/api/people/${encodeURIComponent(id)}`),
  mergePeople: (id, others) => send("POST", `/api/people/${encodeURIComponent(id)}/merge`, { body: { others } }),
  splitPerson: (id, faces) => send("POST", `/api/people/${encodeURIComponent(id)}/split`, { body: { faces } }),
  banks: (signal) => send("GET", "/api/banks", { signal }),
  buildBank: (body) => send("POST", "/api/banks", { body }),
  dropBank: (name) => send("DELETE", `/api/banks/${encodeURIComponent(name)}`),
  models: (signal) => send("GET", "/api/models", { signal }),
  useModel: (body) => send("POST", "/api/models", { body }),
  hubness: (query, signal) => send("GET", "/api/hubness", { query, signal }),
  settings: (signal) => send("GET", "/api/settings", { signal }),
  set: (body) => send("PUT", "/api/settings", { body }),
  login: (token) => send("POST", "/api/login", { body: { token } }),
  logout: () => send("POST", "/api/logout"),
};

export const thumb = (content, t = 0) => `/api/thumb/${encodeURIComponent(content)}${written({ t: Number(t).toFixed(2) })}`;
export const exportAddress = (query) => `/api/export${written(query)}`;

/** The attributes of a picture that is as sharp as the screen; `source` is the address of a thumbnail. */
export const sharp = (source) => ({ src: source, srcset: `${source} 1x, ${source}&size=360 2x, ${source}&size=540 3x` });
export const uploadThumb = (id) => `/api/uploads/${encodeURIComponent(id)}/thumb${written({ t: "0.00" })}`;
export const media = (content) => `/media/${encodeURIComponent(content)}`;
