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

function workerAsker() {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  let last = 0;
  worker.addEventListener("message", ({ data }) => {
    waiting.get(data.id)(data.answer);
    waiting.delete(data.id);
  });
  worker.addEventListener("error", (event) => {
    const answer = { error: `the worker failed: ${event.message}` };
    for (const settle of waiting.values()) settle(answer);
    waiting.clear();
  });
  worker.postMessage({ pyodide: new URL(pyodide, document.baseURI).href });
  return (question, data) =>
    new Promise((settle) => {
      last += 1;
      waiting.set(last, settle);
      worker.postMessage({ id: last, question, data });
    });
}

const asker = pyodide ? workerAsker() : askServer;

export const alone = Boolean(pyodide);

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
