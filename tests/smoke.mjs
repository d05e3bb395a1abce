// tests/smoke.py on Pyodide, where its Python is not on the machine: node tests/smoke.mjs PYODIDE SITE-PACKAGES
// PYODIDE is npm's package, unpacked; what is compiled in SITE-PACKAGES is left alone, so unrender's core is what runs.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const [pyodide, packages] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(`${pyodide}/pyodide.mjs`);
const python = await loadPyodide({ env: { UNRENDER_CACHE: "off", PYTHONDONTWRITEBYTECODE: "1" } });
python.mountNodeFS("/site-packages", packages);
python.globals.set("smoke", readFileSync(new URL("smoke.py", import.meta.url), "utf8"));
python.runPython("import sys; sys.argv = ['smoke.py']; sys.path.insert(0, '/site-packages'); exec(smoke)");
