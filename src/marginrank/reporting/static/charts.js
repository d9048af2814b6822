// Charts of a report, drawn with Observable Plot in the colors of the page.
"use strict";

const charts = (() => {
  const MODEL = "var(--model)";
  const BASELINE = "var(--baseline)";
  const MUTED = "var(--muted)";
  const UP = "var(--up)";
  const DOWN = "var(--down)";
  const show = (text) => ranking.visible(text);
  const four = (value) => (value === null ? "–" : value.toFixed(4));
  const short = (value) => Number(value.toPrecision(4)).toString();

  function draw(figure, options, label) {
    const width = Math.max(figure.clientWidth, 260);
    const svg = Plot.plot({
      width,
      style: { background: "transparent", fontSize: "12px", overflow: "visible" },
      ...options,
      ...(typeof options.height === "function" ? { height: options.height(width) } : {}),
    });
    for (const mark of svg.querySelectorAll("[aria-label]")) mark.removeAttribute("aria-label");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    figure.replaceChildren(svg);
  }

  /** Room for the longest label, but never more than a third of the figure. */
  function room(figure, labels) {
    const longest = Math.max(...labels.map((label) => label.length), 4);
    return Math.min(8 + 6.6 * longest, Math.max(figure.clientWidth, 260) / 3);
  }

  function fitted(text, width) {
    const most = Math.floor(width / 6.6) - 1;
    return text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text;
  }

  /** Values with intervals, one line per row and one color per ranking. */
  function intervals(figure, rows, label, names) {
    const points = rows.flatMap((row) =>
      [
        { ...row.value, row: row.label, ranking: names[0], dy: -4 },
        row.baseline && { ...row.baseline, row: row.label, ranking: names[1], dy: 4 },
      ].filter(Boolean),
    );
    const left = room(figure, rows.map((row) => row.label));
    const color = (d) => (d.ranking === names[0] ? MODEL : BASELINE);
    const marks = [-4, 4].flatMap((dy) => {
      const own = points.filter((d) => d.dy === dy);
      const shift = names[1] === null ? 0 : dy;
      return [
        Plot.link(own.filter((d) => d.low !== null), {
          x1: "low", x2: "high", y1: "row", y2: "row", dy: shift, stroke: color, strokeWidth: 2,
          strokeOpacity: 0.55,
        }),
        Plot.dot(own, { x: "value", y: "row", dy: shift, r: 4, fill: color }),
      ];
    });
    draw(figure, {
      height: 48 + rows.length * 28,
      marginLeft: left,
      marginRight: 16,
      x: { grid: true, label: null, ticks: 5 },
      y: {
        domain: rows.map((row) => row.label), label: null, tickSize: 0,
        tickFormat: (d) => fitted(show(d), left),
      },
      marks: [
        ...marks,
        Plot.tip(points, Plot.pointerY({
          x: "value", y: "row",
          title: (d) =>
            `${show(d.ranking)}\n${show(d.row)}: ${four(d.value)}` +
            (d.low === null ? "" : `\n${four(d.low)} … ${four(d.high)}`),
        })),
      ],
    }, label);
  }

  /** Queries from the largest loss to the largest gain, or from the worst to the best. */
  function changes(figure, table, label) {
    const rows = table.id
      .map((id, query) => ({ id, change: ranking.change(table, query) }))
      .filter((row) => row.change !== null)
      .sort((a, b) => a.change - b.change)
      .map((row, at) => ({ ...row, at }));
    const isDifference = table.baseline !== null;
    draw(figure, {
      height: 190,
      marginLeft: 44,
      x: { axis: null },
      y: { grid: true, label: null, ticks: 5 },
      marks: [
        Plot.rectY(rows, {
          x1: (d) => d.at, x2: (d) => d.at + 1, y: "change",
          fill: (d) => (!isDifference ? MODEL : d.change > 0 ? UP : DOWN),
        }),
        Plot.ruleY([0], { stroke: MUTED }),
        Plot.tip(rows, Plot.pointerX({
          x: (d) => d.at + 0.5, y: "change", title: (d) => `${show(d.id)}\n${four(d.change)}`,
        })),
      ],
    }, label);
  }

  function importance(figure, rows, label) {
    const left = room(figure, rows.map((row) => row.feature));
    const sign = (row) => (row.weight === null || row.weight > 0 ? MODEL : BASELINE);
    draw(figure, {
      height: 40 + rows.length * 22,
      marginLeft: left,
      marginRight: 16,
      x: { grid: true, label: null, ticks: 5 },
      y: {
        domain: rows.map((row) => row.term), label: null, tickSize: 0,
        tickFormat: (term) => fitted(show(rows.find((row) => row.term === term).feature), left),
      },
      marks: [
        Plot.barX(rows, { x: "importance", y: "term", fill: sign, rx: 2, insetTop: 3, insetBottom: 3 }),
        Plot.link(rows.filter((row) => row.low !== null), { x1: "low", x2: "high", y1: "term", y2: "term", stroke: "currentColor" }),
        Plot.tip(rows, Plot.pointerY({
          x: "importance", y: "term",
          title: (d) =>
            `${show(d.feature)}\nimportance ${short(d.importance)}` +
            (d.low === null ? "" : ` (${short(d.low)} … ${short(d.high)})`) +
            (d.weight === null ? "" : `\nweight ${short(d.weight)}`),
        })),
      ],
    }, label);
  }

  function curve(figure, one) {
    const points = one.knots.map((x, k) => ({ x, y: one.values[k], name: one.categories?.[k] ?? short(x) }));
    const values = [...one.values, 0];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const most = Math.max(...one.density, 1e-12);
    const height = (share) => low + (share / most) * (high - low || 1) * 0.35;
    const bars = one.density.map((share, k) =>
      one.categorical
        ? { x: points[k].name, share, y: height(share) }
        : { x1: one.edges[k], x2: one.edges[k + 1], share, y: height(share) },
    );
    const density = { y1: low, y2: "y", fill: MUTED, fillOpacity: 0.35 };
    const x = one.categorical ? "name" : "x";
    draw(figure, {
      height: 170,
      marginLeft: 44,
      x: { label: null, ticks: 4 },
      y: { grid: true, label: null, ticks: 4 },
      marks: [
        one.categorical
          ? Plot.barY(bars, { ...density, x: "x" })
          : Plot.rect(bars, { ...density, x1: "x1", x2: "x2" }),
        Plot.ruleY([0], { stroke: MUTED, strokeOpacity: 0.5 }),
        one.categorical ? null : Plot.line(points, { x, y: "y", stroke: MODEL, strokeWidth: 2 }),
        one.categorical ? Plot.dot(points, { x, y: "y", fill: MODEL, r: 4 }) : null,
        Plot.tip(points, Plot.pointerX({ x, y: "y", title: (d) => `${show(d.name)}: ${short(d.y)}` })),
      ],
    }, `Curve of ${show(one.feature)} over the density of its values`);
  }

  function learningCurve(figure, curve) {
    const rows = curve.points.flatMap((p) => [
      { x: p.queries, y: p.train, error: p.train_error, set: "training queries", color: BASELINE },
      { x: p.queries, y: p.valid, error: p.valid_error, set: "these queries", color: MODEL },
    ]).map((row) => ({ ...row, error: row.error ?? 0 }));
    draw(figure, {
      height: 260,
      marginLeft: 48,
      x: { type: "log", base: 2, label: null, ticks: curve.points.map((p) => p.queries), tickFormat: (d) => String(d) },
      y: { grid: true, label: null },
      marks: [
        Plot.areaY(rows, {
          x: "x", y1: (d) => d.y - d.error, y2: (d) => d.y + d.error, z: "set", fill: "color",
          fillOpacity: 0.18,
        }),
        Plot.line(rows, { x: "x", y: "y", z: "set", stroke: "color", strokeWidth: 2 }),
        Plot.dot(rows, { x: "x", y: "y", fill: "color" }),
        Plot.tip(rows, Plot.pointer({
          x: "x", y: "y",
          title: (d) => `${d.x} queries, scored on ${d.set}\n${four(d.y)} ± ${four(d.error)}`,
        })),
      ],
    }, `Learning curve, ${curve.metric} by the number of training queries`);
  }

  function history(figure, rows) {
    const known = rows.filter((row) => row.gap > 0);
    draw(figure, {
      height: 180,
      marginLeft: 56,
      x: { label: null, ticks: known.length < 10 ? known.map((row) => row.iteration) : 6, tickFormat: "d" },
      y: { type: "log", grid: true, label: null, ticks: 4, tickFormat: "~e" },
      marks: [
        Plot.line(known, { x: "iteration", y: "gap", stroke: MODEL, strokeWidth: 2 }),
        Plot.tip(known, Plot.pointerX({
          x: "iteration", y: "gap",
          title: (d) => `iteration ${d.iteration}\ngap ${short(d.gap)}\nobjective ${short(d.objective)}`,
        })),
      ],
    }, "Certified gap by iteration, on a logarithmic scale");
  }

  /** Contributions one after the other, from zero to the difference of two scores. */
  function waterfall(figure, explanation, nameOf) {
    let at = 0;
    const steps = explanation.parts.map((part, k) => {
      const [from, to] = [at, (at += part.difference)];
      return { k, name: nameOf(part), from, to, ...part };
    });
    const total = { k: steps.length, name: "difference", from: 0, to: explanation.difference, difference: explanation.difference };
    const rows = [...steps, total];
    const left = room(figure, rows.map((row) => row.name));
    draw(figure, {
      height: 40 + rows.length * 24,
      marginLeft: left,
      marginRight: 60,
      x: { grid: true, label: null, ticks: 5 },
      y: {
        domain: rows.map((row) => row.k), label: null, tickSize: 0,
        tickFormat: (k) => fitted(rows[k].name, left),
      },
      marks: [
        Plot.barX(rows, {
          x1: "from", x2: "to", y: "k", rx: 2, insetTop: 3, insetBottom: 3,
          fill: (d) => (d === total ? MODEL : d.difference > 0 ? UP : DOWN),
        }),
        Plot.ruleX([0], { stroke: MUTED }),
        Plot.text(rows, {
          x: (d) => Math.max(d.from, d.to), y: "k", dx: 6, textAnchor: "start", fill: "currentColor",
          text: (d) => (d.difference > 0 ? "+" : "") + short(d.difference).replace("-", "−"),
        }),
      ],
    }, "Contributions of features to the difference of the two scores");
  }

  return { changes, curve, history, importance, intervals, learningCurve, waterfall };
})();
