// Lets a client of each system use a real server: node check.mjs <path of the runwire program>
//
// The clients are written from the systems' documents alone and share no code with the server. Those of Agio and
// StreamingEngine are TypeScript, as the samples in their documents are: `npx tsc` compiles them into build/.
import { DEMOS, programToCheck, runChecks } from "../server.mjs";
import * as agio from "./build/agio.js";
import * as easyflow from "./easyflow.mjs";
import * as loom from "./loom.mjs";
import * as streamingEngine from "./build/streaming-engine.js";

const checks = { ...agio, ...streamingEngine, ...easyflow, ...loom };
const failed = await runChecks(programToCheck(), DEMOS, checks);
console.log(`${Object.keys(checks).length} checks of clients, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
