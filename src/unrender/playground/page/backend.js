// Sends the page's requests to the server that the page came from, or to Python in a worker.

const pyodide = document.querySelector('meta[name="pyodide"]').content;

async function askServer(question, data) {
  const response = await fetch(`ask/${question}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(data),
  });
  return response.json();
}

/** Answer requests with Python in a worker. Until Python is loaded, answer with the responses that are stored with the page. */
function workerAsker() {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  const answers = fetch("stored.json").then((response) => response.json());
  let last = 0;
  const loaded = new Promise((settle) => {
    waiting.set(0, ({ error }) => settle(error));
  });
  worker.addEventListener("message", ({ data }) => {
    waiting.get(data.id)?.(data.answer);
    waiting.delete(data.id);
  });
  worker.addEventListener("error", (event) => {
    const answer = { error: `the worker failed: ${event.message}` };
    for (const settle of waiting.values()) settle(answer);
    waiting.clear();
  });
  worker.postMessage({ pyodide: new URL(pyodide, document.baseURI).href });
  const known = async (question, data) => (await answers.catch(() => ({})))[question]?.find(([asked]) => same(asked, data))?.[1];
  const asks = async (question, data) =>
    (await known(question, data)) ??
    new Promise((settle) => {
      last += 1;
      waiting.set(last, settle);
      worker.postMessage({ id: last, question, data });
    });
  return [asks, loaded, known];
}

/** Return whether two requests have the same fields, in any order. */
function same(one, other) {
  const sorted = (data) => JSON.stringify(Object.entries(data).sort());
  return sorted(one) === sorted(other);
}

const [asker, loaded, known] = pyodide ? workerAsker() : [askServer, Promise.resolve(), async () => undefined];

export const alone = Boolean(pyodide);

/** Resolves once Python is loaded: to an error message, or to undefined. */
export const ready = loaded;

/** Return the response that is stored with the page for a request, if there is one. */
export const stored = known;

/** Return the response to a request. If the request fails, the response has the single field `error`. */
export async function ask(question, data) {
  try {
    return await asker(question, data);
  } catch (error) {
    return { error: `no answer: ${error.message}` };
  }
}

/** Return the templates that were passed to the server on its command line. */
export async function offered() {
  if (pyodide) return [];
  const response = await fetch("templates");
  return response.ok ? response.json() : [];
}
