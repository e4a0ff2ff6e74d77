// Runs the checks of the TypeScript client; started by ../run, which serves the model.

import "./turns.mjs";
import "./options.mjs";
import "./threads.mjs";
import { checks, runCheck } from "./world.mjs";

const wanted = checks.filter(({ name }) => name.includes(process.env.CHECK_PART ?? ""));
let passed = 0;
for (const one of wanted) {
  if (await runCheck(one)) passed += 1;
}
console.log(`typescript: ${passed} passed, ${wanted.length - passed} failed`);
// A check that never ended leaves a child behind, which an ordinary exit would wait for.
process.exit(wanted.length > 0 && passed === wanted.length ? 0 : 1);
