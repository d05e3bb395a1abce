// Runs tests/smoke.py on Pyodide if that Python version isn't installed: node tests/smoke.mjs PYODIDE SITE-PACKAGES
// PYODIDE is npm's unpacked package. Compiled modules in SITE-PACKAGES are ignored, so only unrender's core runs.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const [pyodide, packages] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(`${pyodide}/pyodide.mjs`);
const python = await loadPyodide({ env: { UNRENDER_CACHE: "off", PYTHONDONTWRITEBYTECODE: "1" } });
python.mountNodeFS("/site-packages", packages);
python.globals.set("smoke", readFileSync(new URL("smoke.py", import.meta.url), "utf8"));
python.runPython("import sys; sys.argv = ['smoke.py']; sys.path.insert(0, '/site-packages'); exec(smoke)");
