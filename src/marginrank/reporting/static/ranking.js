// Arithmetic and selection for the page of a report. No document, no window: node can test it.
"use strict";

const ranking = (() => {
  const SAME = 1e-12; // smaller changes of a query are ties
  const HIDDEN =
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

  /** Text in which every character can be seen. */
  function visible(text) {
    const code = (c) => c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return String(text).replace(HIDDEN, (c) => `⟨U+${code(c)}⟩`);
  }

  /** Little-endian numbers of 4 or 8 bytes from base64 text. */
  function decode(text, bytes) {
    const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return bytes === 4 ? new Float32Array(raw.buffer) : new Float64Array(raw.buffer);
  }

  /** A block of documents with its arrays decoded and its terms by document. */
  function decodeBlock(block, terms) {
    const n = block.label.length;
    const scores = decode(block.score, 8);
    const columns = block.terms ?? [];
    const values = columns.length ? decode(block.values, block.bytes) : [];
    const added = block.added ? decode(block.added, block.added_bytes) : null;
    const term = (document, k) => {
      const at = document * columns.length + k;
      return added ? added[at] : terms[columns[k]].weight * values[at];
    };
    const value = (document, k) => values[document * columns.length + k];
    return { ...block, n, scores, columns, term, value };
  }

  /** Documents from the best score to the worst; ties in the order of the data. */
  function order(scores) {
    return Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a] || a - b);
  }

  /** Scores with the terms multiplied by factors, by place in the list of terms. */
  function rescored(block, factors) {
    const scores = Float64Array.from(block.scores);
    block.columns.forEach((place, k) => {
      const change = (factors[place] ?? 1) - 1;
      if (change === 0) return;
      for (let i = 0; i < block.n; i++) scores[i] += change * block.term(i, k);
    });
    return scores;
  }

  const gains = { exponential: (y) => 2 ** y - 1, linear: (y) => y };
  const discounts = {
    standard: (rank) => 1 / Math.log2(rank + 1),
    letor: (rank) => 1 / Math.log2(Math.max(rank, 2)),
  };

  function dcg(labels, { k, gain, discount }) {
    return labels
      .slice(0, k ?? labels.length)
      .reduce((sum, y, at) => sum + gains[gain](y) * discounts[discount](at + 1), 0);
  }

  /** NDCG of one query; NaN if it is left out of the mean. */
  function ndcg(labels, scores, options) {
    const ideal = dcg([...labels].sort((a, b) => b - a), options);
    if (ideal > 0) return dcg(order(scores).map((i) => labels[i]), options) / ideal;
    return options.no_relevant === "skip" ? NaN : options.no_relevant;
  }

  /** Mean NDCG of blocks, with terms multiplied by factors. */
  function meanNdcg(blocks, factors, options) {
    const values = blocks.map((b) => ndcg(b.label, rescored(b, factors), options));
    const defined = values.filter((v) => !Number.isNaN(v));
    return defined.reduce((sum, v) => sum + v, 0) / defined.length;
  }

  /**
   * Contributions to the score of one document minus another: the largest, then one without a place
   * for all others. They add up to the difference.
   */
  function explain(block, document, other, most = 12) {
    const difference = block.scores[document] - block.scores[other];
    const parts = block.columns
      .map((place, k) => ({
        place,
        value: block.value(document, k),
        other: block.value(other, k),
        difference: block.term(document, k) - block.term(other, k),
      }))
      .filter((part) => part.difference !== 0)
      .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
    const shown = parts.slice(0, most);
    const rest = difference - shown.reduce((sum, part) => sum + part.difference, 0);
    const others = block.others + parts.length - shown.length;
    const isRounding = Math.abs(rest) <= 1e-9 * Math.max(Math.abs(difference), 1);
    if (others > 0 || !isRounding) shown.push({ place: null, others, difference: rest });
    return { difference, parts: shown };
  }

  /** Two documents in the wrong order: the pair whose scores are furthest apart, or null. */
  function worstPair(block) {
    let worst = null;
    for (let i = 0; i < block.n; i++) {
      for (let j = 0; j < block.n; j++) {
        const gap = block.scores[i] - block.scores[j];
        if (block.label[i] < block.label[j] && gap > 0 && (!worst || gap > worst.gap)) {
          worst = { document: i, other: j, gap };
        }
      }
    }
    return worst;
  }

  /** Change of a query: against the baseline, or the value itself without one. */
  function change(table, query) {
    const value = table.value[query];
    if (table.baseline === null || value === null) return value;
    return table.baseline[query] === null ? null : value - table.baseline[query];
  }

  /** Queries whose id has the text and that changed as asked: all, better, worse or same. */
  function filtered(table, text, kind) {
    const needle = text.trim().toLowerCase();
    const isKind = {
      all: () => true,
      better: (c) => c > SAME,
      worse: (c) => c < -SAME,
      same: (c) => c !== null && Math.abs(c) <= SAME,
    }[kind];
    return table.id
      .map((_, query) => query)
      .filter((q) => table.id[q].toLowerCase().includes(needle) && isKind(change(table, q)));
  }

  /** Queries sorted by a column; empty values come last. */
  function sorted(table, queries, column, descending) {
    const of = column === "change" ? (q) => change(table, q) : (q) => table[column][q];
    const compare = (a, b) =>
      typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return [...queries].sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return (descending ? -1 : 1) * compare(x, y) || a - b;
    });
  }

  /** All weights with the factors of the sliders, as a linear model of LTR plugins. */
  function exported(record, factors) {
    const weights = { ...(record.model.weights ?? {}) };
    record.importance.slice(0, record.sliders).forEach((row, place) => {
      weights[row.feature] = row.weight * (factors[place] ?? 1); // names of terms may be cut
    });
    const name = "report";
    return { name, model: { type: "model/linear", definition: JSON.stringify(weights) } };
  }

  return {
    change, decode, decodeBlock, explain, exported, filtered, meanNdcg, ndcg, order, rescored,
    sorted, visible, worstPair,
  };
})();

if (typeof module !== "undefined") module.exports = ranking;
