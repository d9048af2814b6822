// Tests of the arithmetic of a report's page; tests/reporting/test_scripts.py runs them with node.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const ranking = require("../../src/marginrank/reporting/static/ranking.js");

const coded = (numbers) => Buffer.from(Float64Array.from(numbers).buffer).toString("base64");
const terms = [
  { name: "a", weight: 2 },
  { name: "b", weight: -0.5 },
];

/** A block of three documents with the features (1, 0), (0, 4) and (3, 2). */
function block(changed = {}) {
  const values = [1, 0, 0, 4, 3, 2];
  const plain = {
    label: [2, 0, 1], rank: [2, 3, 1], other: [1, 3, 2], score: coded([2, -2, 5]),
    terms: [0, 1], values: coded(values), bytes: 8, others: 0, full: true, ...changed,
  };
  return ranking.decodeBlock(plain, terms);
}

const options = { k: 10, gain: "exponential", discount: "standard", no_relevant: 0 };

test("NDCG of known orders", () => {
  assert.equal(ranking.ndcg([1, 0], [2, 1], options), 1);
  assert.equal(ranking.ndcg([0, 1], [2, 1], options), 1 / Math.log2(3));
  assert.equal(ranking.ndcg([0, 1], [2, 1], { ...options, discount: "letor" }), 1);
  assert.equal(ranking.ndcg([0, 1], [2, 1], { ...options, k: 1 }), 0);
  assert.equal(ranking.ndcg([0, 0], [2, 1], { ...options, no_relevant: 1 }), 1);
  assert.ok(Number.isNaN(ranking.ndcg([0, 0], [2, 1], { ...options, no_relevant: "skip" })));
  assert.equal(ranking.ndcg([2, 1], [1, 2], { ...options, gain: "linear" }), (1 + 2 / Math.log2(3)) / (2 + 1 / Math.log2(3)));
});

test("equal scores stay in the order of the data", () => {
  assert.deepEqual(ranking.order([1, 3, 1, 3]), [1, 3, 0, 2]);
});

test("queries that are left out do not count in the mean", () => {
  const empty = block({ label: [0, 0, 0] });
  const alone = ranking.meanNdcg([block()], [1, 1], options);
  assert.equal(ranking.meanNdcg([block(), empty], [1, 1], { ...options, no_relevant: "skip" }), alone);
  assert.equal(ranking.meanNdcg([block(), empty], [1, 1], options), alone / 2);
});

test("factors change the scores by their terms", () => {
  assert.deepEqual([...ranking.rescored(block(), [1, 1])], [2, -2, 5]);
  assert.deepEqual([...ranking.rescored(block(), [0, 1])], [0, -2, -1]);
  assert.deepEqual([...ranking.rescored(block(), [1, 3])], [2, -6, 3]);
});

test("terms of additive models are stored", () => {
  const own = block({ added: coded([10, 20, 30, 40, 50, 60]), added_bytes: 8 });
  assert.equal(own.term(1, 1), 40);
  assert.equal(own.value(1, 1), 4);
});

test("contributions add up to the difference, with one part for all other features", () => {
  const all = ranking.explain(block(), 2, 0);
  assert.equal(all.difference, 3);
  assert.deepEqual(all.parts.map((part) => [part.place, part.difference]), [[0, 4], [1, -1]]);
  const some = ranking.explain(block({ terms: [0], values: coded([1, 0, 3]), others: 4 }), 2, 0);
  assert.deepEqual(some.parts.map((part) => [part.place, part.difference]), [[0, 4], [null, -1]]);
  assert.equal(some.parts[1].others, 4);
  assert.deepEqual(ranking.explain(block(), 2, 0, 1).parts[1], { place: null, others: 1, difference: -1 });
});

test("the worst pair is the one whose scores are furthest apart", () => {
  assert.deepEqual(ranking.worstPair(block()), { document: 2, other: 0, gap: 3 });
  assert.equal(ranking.worstPair(block({ label: [1, 0, 2] })), null);
});

const table = {
  id: ["q10", "q9", "Ab <i>", "q1"],
  value: [0.5, 0.2, null, 0.9],
  baseline: [0.1, 0.3, 0.4, 0.9],
  documents: [3, 3, 4, 5],
};

test("queries are found by text and by change", () => {
  assert.deepEqual(ranking.filtered(table, " AB <I", "all"), [2]);
  assert.deepEqual(ranking.filtered(table, "", "better"), [0]);
  assert.deepEqual(ranking.filtered(table, "q", "worse"), [1]);
  assert.deepEqual(ranking.filtered(table, "", "same"), [3]);
  assert.deepEqual(ranking.filtered({ ...table, baseline: null }, "", "better"), [0, 1, 3]);
});

test("queries are sorted by any column, empty values last", () => {
  const all = [0, 1, 2, 3];
  assert.deepEqual(ranking.sorted(table, all, "change", false), [1, 3, 0, 2]);
  assert.deepEqual(ranking.sorted(table, all, "change", true), [0, 3, 1, 2]);
  assert.deepEqual(ranking.sorted(table, all, "id", false), [2, 3, 1, 0]);
  assert.deepEqual(ranking.sorted(table, all, "documents", true), [3, 2, 0, 1]);
});

test("characters that cannot be seen are shown by their code", () => {
  assert.equal(ranking.visible("a\u202eb\u0000c\ud800"), "a⟨U+202E⟩b⟨U+0000⟩c⟨U+D800⟩");
  assert.equal(ranking.visible("a\xadb\u3164\u{e0041}"), "a⟨U+00AD⟩b⟨U+3164⟩⟨U+E0041⟩");
  assert.equal(ranking.visible("é 文 😀 <b>"), "é 文 😀 <b>");
});

test("exported weights are a linear model with the factors of the sliders", () => {
  const cut = [{ ...terms[0], name: "…" }, terms[1]]; // names of terms may be cut, others not
  const importance = terms.map(({ name, weight }) => ({ feature: name, weight }));
  const record = { model: { weights: { a: 2, b: -0.5, c: 7 } }, terms: cut, importance, sliders: 2 };
  const { model } = ranking.exported(record, [1, 2]);
  assert.equal(model.type, "model/linear");
  assert.deepEqual(JSON.parse(model.definition), { a: 2, b: -1, c: 7 });
});
