// Shows that the check finds what it is for: broken checklists, and tests that fail.
import assert from "node:assert/strict";
import { mistakesOf } from "./checklist.mjs";
import { assertFields, framed } from "./client.mjs";

const document = { name: "canary", prefix: "C", title: "Canary" };
const mistakes = (requirements, names = ["sings"]) => mistakesOf({ document, requirements }, names);
const sings = { id: "C-1.1", sentence: "It sings.", test: "sings" };

assert.deepEqual(mistakes([sings]), []);
assert.deepEqual(mistakes([sings, { id: "C-1.2", sentence: "It flies." }]), ["C-1.2 has no test"]);
assert.deepEqual(mistakes([sings], ["sings", "eats"]), ["the test `eats` belongs to no requirement"]);
assert.deepEqual(mistakes([sings, { id: "C-1.2", sentence: "It flies.", test: "flies" }]), ["C-1.2 is bound to the test `flies`, which does not exist"]);
assert.deepEqual(mistakes([sings, sings]), ["C-1.1 stands twice in the checklist"]);
assert.deepEqual(mistakes([sings, { id: "C-1.2", sentence: "It speaks.", isLater: true }]), ["C-1.2 has no test, and is not in NOT_YET of checklist.mjs"]);
assert.deepEqual(mistakes([sings, { ...sings, id: "L-1.1" }]), ["L-1.1: a requirement is called C-<section>.<number>"]);
const elsewhere = { file: "README.md", name: "no such test" };
assert.deepEqual(mistakes([sings, { id: "C-1.2", sentence: "It nests.", elsewhere }]), ['C-1.2 is bound to "no such test", which is not in README.md']);

assert.throws(() => assertFields({ a: 1 }, { a: "string" }, "x"), /`a` must be string, and is 1/);
assert.throws(() => assertFields({ a: "c" }, { a: ["a", "b"] }, "x"), /`a` must be a \| b/);
assertFields({}, { "a?": "string" }, "x");
assert.equal(framed([{ a: 1 }], "sse"), 'data: {"a":1}\n\n');
console.log("broken checklists are found");
