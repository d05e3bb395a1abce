// Who answers the page's questions: the server that it came from, or the same Python in a worker.

const pyodide = document.querySelector('meta[name="pyodide"]').content;

async function askServer(question, data) {
  const response = await fetch(`ask/${question}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(data),
  });
  return response.json();
}

/** Answer from what was stored with the page, until Python, which takes long to load, answers. */
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

/** Whether two questions are one, in whatever order their fields are. */
function same(one, other) {
  const sorted = (data) => JSON.stringify(Object.entries(data).sort());
  return sorted(one) === sorted(other);
}

const [asker, loaded, known] = pyodide ? workerAsker() : [askServer, Promise.resolve(), async () => undefined];

export const alone = Boolean(pyodide);

/** What went wrong when Python was loaded; undefined when it answers. */
export const ready = loaded;

/** The answer that was stored with the page; undefined without one. */
export const stored = known;

/** Answer a question; an answer that failed has the one field `error`. */
export async function ask(question, data) {
  try {
    return await asker(question, data);
  } catch (error) {
    return { error: `no answer: ${error.message}` };
  }
}

/** The templates that were named when the server was started. */
export async function offered() {
  if (pyodide) return [];
  const response = await fetch("templates");
  return response.ok ? response.json() : [];
}
