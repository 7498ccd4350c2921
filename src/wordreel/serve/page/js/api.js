// Talking with the server. Every failure is an ApiError whose message says the next step.

export class ApiError extends Error {
  constructor(message, { status = 0, code = "away", field = null } = {}) {
    super(message);
    Object.assign(this, { status, code, field });
  }
}

const AWAY = "The server does not answer. Its owner can start it again with `wordreel serve`; then try again.";

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
  const text = message ?? `The server answered ${response.status}. Try again, or look into its log.`;
  throw new ApiError(text, { status: response.status, code, field });
}

/** `?a=1&b=2` of what is given; empty values are left out. */
export function written(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

const at = (content) => `/api/videos/${encodeURIComponent(content)}`;

export const api = {
  status: (options) => send("GET", "/api/status", options),
  search: (body, signal) => send("POST", "/api/search", { body, signal }),
  compare: (query, signal) => send("GET", "/api/compare", { query, signal }),
  videos: (query, signal) => send("GET", "/api/videos", { query, signal }),
  video: (content, signal) => send("GET", at(content), { signal }),
  match: (content, text, signal) => send("GET", `${at(content)}/match`, { query: { text }, signal }),
  forget: (content) => send("DELETE", at(content)),
  addFolder: (path) => send("POST", "/api/folders", { body: { path } }),
  jobs: (signal) => send("GET", "/api/jobs", { signal }),
  cancel: (id) => send("DELETE", `/api/jobs/${encodeURIComponent(id)}`),
  failures: (signal) => send("GET", "/api/failures", { signal }),
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
export const media = (content) => `/media/${encodeURIComponent(content)}`;
