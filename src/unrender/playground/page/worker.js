// Runs unrender on Pyodide, and answers requests one at a time.

let ready = null;

async function load(address) {
  const { loadPyodide } = await import(`${address}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: address });
  for (const name of ["needed.zip", "unrender.zip"]) {
    const response = await fetch(name);
    python.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/lib/playground" });
  }
  python.runPython("import sys; sys.path.insert(0, '/lib/playground')");
  return python.runPython(
    "import json\nfrom unrender.playground import answer\nlambda question, data: json.dumps(answer(question, json.loads(data)))",
  );
}

self.addEventListener("message", async ({ data }) => {
  if (data.pyodide) {
    ready = load(data.pyodide);
    const failed = (error) => {
      console.info(error);
      return { error: "Couldn't download Python. The examples work; to edit, run `unrender playground`." };
    };
    self.postMessage({ id: 0, answer: await ready.then(() => ({}), failed) });
    return;
  }
  let answer;
  try {
    const answers = await ready;
    answer = JSON.parse(answers(data.question, JSON.stringify(data.data)));
  } catch (error) {
    answer = { error: `Python failed: ${String(error).slice(-400)}` };
  }
  self.postMessage({ id: data.id, answer });
});
