// The interactive parts of a report. All text enters the page as textContent.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const record = JSON.parse($("record").textContent);
  const table = record.queries;
  const names = [record.model.name, record.baseline === null ? null : record.baseline.name];
  const PER_PAGE = 25;
  const PICKS = 5;
  const TOP = 10;

  /** A new element with text and properties; names and titles are isolated from their context. */
  function element(tag, text = "", properties = {}) {
    const made = Object.assign(document.createElement(tag), properties);
    made.textContent = ranking.visible(text);
    return made;
  }

  const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(4)}`;
  const four = (value) => (value === null ? "–" : value.toFixed(4));
  const tone = (value) => (value > 0 ? "up" : value < 0 ? "down" : "");
  const decoded = new Map();

  function blockOf(query) {
    if (!decoded.has(query)) {
      decoded.set(query, ranking.decodeBlock(record.blocks[query], record.terms));
    }
    return decoded.get(query);
  }

  // The table of queries.

  const view = { column: "change", descending: false, page: 0 };
  if (table.baseline === null) view.column = "value";

  function viewed() {
    const kind = $("kind")?.value ?? "all";
    const chosen = ranking.filtered(table, $("search").value, kind);
    return ranking.sorted(table, chosen, view.column, view.descending);
  }

  function showQueries() {
    const queries = viewed();
    const pages = Math.max(Math.ceil(queries.length / PER_PAGE), 1);
    view.page = Math.min(view.page, pages - 1);
    const first = view.page * PER_PAGE;
    const rows = queries.slice(first, first + PER_PAGE).map(queryRow);
    document.querySelector("#query-table tbody").replaceChildren(...rows);
    const last = Math.min(first + PER_PAGE, queries.length);
    $("shown").textContent = queries.length
      ? `${first + 1} … ${last} of ${queries.length.toLocaleString("en")}`
      : "no query";
    $("previous").disabled = view.page === 0;
    $("next").disabled = view.page === pages - 1;
    for (const head of document.querySelectorAll("#query-table th[data-column]")) {
      if (head.dataset.column !== view.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", view.descending ? "descending" : "ascending");
    }
  }

  function queryRow(query) {
    const row = document.createElement("tr");
    const open = element("button", "", { type: "button", className: "link" });
    open.append(element("bdi", table.id[query]));
    open.addEventListener("click", () => showDetail(query));
    const head = element("th", "", { scope: "row" });
    head.append(open);
    row.append(head);
    const cell = (text, className = "") => row.append(element("td", text, { className: `n ${className}` }));
    cell(table.documents[query].toLocaleString("en"));
    cell(table.relevant[query].toLocaleString("en"));
    if (table.baseline !== null) cell(four(table.baseline[query]));
    cell(four(table.value[query]));
    if (table.baseline !== null) {
      const change = ranking.change(table, query);
      cell(change === null ? "–" : signed(change), tone(change));
    }
    return row;
  }

  function showPicks() {
    const all = ranking.filtered(table, "", "all").filter((q) => ranking.change(table, q) !== null);
    const rising = ranking.sorted(table, all, "change", false);
    const worst = ranking.sorted(table, all, "value", false).filter((q) => table.relevant[q] > 0);
    const groups =
      table.baseline === null
        ? { "Worst queries": worst }
        : {
            "Largest losses": rising.filter((q) => ranking.change(table, q) < 0),
            "Largest gains": [...rising].reverse().filter((q) => ranking.change(table, q) > 0),
            "Worst queries": worst,
          };
    for (const [title, queries] of Object.entries(groups)) {
      const group = document.createElement("div");
      group.append(element("h3", title));
      for (const query of queries.slice(0, PICKS)) {
        const button = element("button", "", { type: "button", className: "pick" });
        const change = ranking.change(table, query);
        const isValue = title === "Worst queries";
        const value = element("span", isValue ? four(table.value[query]) : signed(change));
        value.className = isValue ? "" : tone(change);
        button.append(element("bdi", table.id[query]), value);
        button.addEventListener("click", () => showDetail(query));
        group.append(button);
      }
      if (queries.length === 0) group.append(element("p", "none", { className: "note" }));
      $("picks").append(group);
    }
  }

  // Documents of one query, and why one is above another.

  const detail = { query: 0, chosen: [] };

  const titleOf = (block, i) => block.title?.[i] || (block.place ? `document ${block.place[i] + 1}` : "untitled");

  function showDetail(query) {
    const block = blockOf(query);
    const pair = ranking.worstPair(block);
    detail.query = query;
    detail.chosen = pair ? [pair.document, pair.other] : [];
    $("detail-title").replaceChildren("Query ", element("bdi", table.id[query]));
    const facts = [`${table.documents[query].toLocaleString("en")} documents`, `${table.relevant[query]} relevant`];
    if (table.baseline !== null) facts.push(`${names[1]} ${four(table.baseline[query])}`);
    facts.push(`${names[0]} ${four(table.value[query])} ${record.metric.name}`);
    $("detail-facts").textContent = ranking.visible(facts.join(" · "));
    $("left").replaceChildren(...listed(block, block.other));
    $("right").replaceChildren(...listed(block, block.rank, block.other));
    showChosen();
    if (!$("detail").open) $("detail").showModal();
    $("detail").scrollTop = 0;
    showWhy();
  }

  /** The first documents of a ranking, and relevant ones further down. */
  function listed(block, rank, before = null) {
    const order = [...rank.keys()].sort((a, b) => rank[a] - rank[b]);
    const shown = order.filter((i) => rank[i] <= TOP);
    const below = order.filter((i) => rank[i] > TOP && block.label[i] > 0).slice(0, 5);
    return [...shown, ...below].map((i) => documentItem(block, i, rank[i], before?.[i]));
  }

  function documentItem(block, i, rank, before) {
    const item = document.createElement("li");
    const button = element("button", "", { type: "button" });
    button.dataset.document = i;
    button.append(...documentParts(block, i, rank, before));
    button.addEventListener("click", () => choose(i));
    item.append(button);
    return item;
  }

  function documentParts(block, i, rank, before) {
    const label = element("span", block.label[i], { className: "label", title: "label" });
    label.dataset.relevant = block.label[i] > 0;
    const title = element("bdi", titleOf(block, i));
    title.title = title.textContent;
    const parts = [element("span", rank, { className: "rank" }), label, title];
    if (block.judged && !block.judged[i]) parts.push(element("span", "unjudged", { className: "badge" }));
    if (before !== undefined && before !== rank) {
      const arrow = before > rank ? "▲" : "▼";
      const color = block.label[i] > 0 ? tone(before - rank) : "";
      parts.push(element("span", `${arrow} ${before} → ${rank}`, { className: `move ${color}` }));
    }
    return parts;
  }

  function choose(i) {
    const at = detail.chosen.indexOf(i);
    if (at >= 0) detail.chosen.splice(at, 1);
    else detail.chosen = [...detail.chosen.slice(-1), i];
    showChosen();
    showWhy();
  }

  function showChosen() {
    for (const button of $("detail").querySelectorAll("button[data-document]")) {
      button.setAttribute("aria-pressed", detail.chosen.includes(Number(button.dataset.document)));
    }
  }

  function showWhy() {
    if (!$("waterfall")) return;
    const block = blockOf(detail.query);
    const isPair = detail.chosen.length === 2;
    $("waterfall").hidden = $("why-table").hidden = !isPair;
    if (!isPair) {
      $("why-title").textContent = "Select two documents to see why one is above the other.";
      return;
    }
    const [first, second] = [...detail.chosen].sort((a, b) => block.rank[a] - block.rank[b]);
    $("why-title").replaceChildren(
      "Why ", element("bdi", titleOf(block, first)), " is above ", element("bdi", titleOf(block, second)),
    );
    const found = ranking.explain(block, first, second);
    const nameOf = (part) =>
      part.place === null
        ? part.others > 0 ? `${part.others} other features` : "rounding"
        : ranking.visible(record.terms[part.place].name);
    charts.waterfall($("waterfall"), found, nameOf);
    const rows = [...found.parts, { total: true, difference: found.difference }].map((part) => {
      const row = document.createElement("tr");
      const head = element("th", "", { scope: "row" });
      head.append(element("bdi", part.total ? "difference of the scores" : nameOf(part)));
      const value = (v) =>
        v === undefined || Number.isNaN(v) ? "–" : String(Number(v.toPrecision(6))).replace("-", "−");
      row.append(head, ...[value(part.value), value(part.other), value(part.difference)].map((text) => element("td", text, { className: "n" })));
      return row;
    });
    $("why-table").tBodies[0].replaceChildren(...rows);
  }

  // Weight sliders.

  function setUpSliders() {
    const sample = [...record.blocks.keys()].filter((query) => record.blocks[query].full);
    const options = { gain: "exponential", discount: "standard", no_relevant: 0, k: 10 };
    if (record.metric.is_ndcg) Object.assign(options, record.metric.options);
    const blocks = sample.map(blockOf);
    if (blocks.length === 0 || blocks.some((block) => block.label.some((y) => y < 0))) {
      $("what-if").hidden = true;
      document.querySelector('nav a[href="#what-if"]').hidden = true;
      return;
    }
    const factors = new Array(record.sliders).fill(1);
    const base = ranking.meanNdcg(blocks, factors, options);
    const size = blocks.length.toLocaleString("en");
    $("sample-size").textContent =
      blocks.length === table.total ? `all ${size} queries` : `a random sample of ${size} queries`;
    $("ndcg-name").textContent = options.k === null ? "NDCG" : `NDCG@${options.k}`;

    const select = $("sample-query");
    select.append(...sample.map((query, at) => element("option", table.id[query], { value: at })));
    select.addEventListener("change", showSample);

    const inputs = factors.map((_, place) => slider(place, update));
    $("reset").addEventListener("click", () => {
      inputs.forEach((input) => (input.value = 1));
      update();
    });
    $("copy")?.addEventListener("click", async () => {
      const text = JSON.stringify(ranking.exported(record, factors), null, 2);
      $("copied").textContent = (await copied(text)) ? "copied" : "copying is not allowed here";
    });

    function update() {
      inputs.forEach((input, place) => {
        factors[place] = Number(input.value);
        const { weight } = record.terms[place];
        const shown = weight === null ? `× ${factors[place].toFixed(2)}` : (weight * factors[place]).toPrecision(4).replace("-", "−");
        input.parentElement.querySelector("output").textContent = shown;
        input.setAttribute("aria-valuetext", shown);
      });
      const value = ranking.meanNdcg(blocks, factors, options);
      $("ndcg").value = value.toFixed(4);
      $("ndcg").dataset.value = value;
      $("ndcg-change").textContent = value === base ? "unchanged" : signed(value - base);
      $("ndcg-change").className = tone(value - base);
      $("copied").textContent = "";
      showSample();
    }

    function showSample() {
      const block = blocks[select.selectedIndex];
      const order = ranking.order(ranking.rescored(block, factors));
      const items = order.slice(0, TOP).map((i, at) => {
        const item = document.createElement("li");
        item.append(...documentParts(block, i, at + 1, block.rank[i]));
        return item;
      });
      $("sample-documents").replaceChildren(...items);
    }

    update();
  }

  function slider(place, update) {
    const label = document.createElement("label");
    const input = element("input", "", { type: "range", min: -1, max: 3, step: 0.05, value: 1 });
    input.addEventListener("input", update);
    label.append(element("bdi", record.terms[place].name), document.createElement("output"), input);
    $("sliders").append(label);
    return input;
  }

  /** Copy a text; the clipboard is not always available to files. */
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = element("textarea", "", { value: text });
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  // Charts are drawn when they come into view, and again when their width changes.

  const drawings = {
    metrics: (figure) => {
      const rows = record.metrics.map((m) => ({ label: m.name, value: m, baseline: m.baseline }));
      charts.intervals(figure, rows, "Metrics with intervals", names);
    },
    changes: (figure) => charts.changes(figure, table, `${record.metric.name} by query`),
    importance: (figure) => charts.importance(figure, record.importance, "Importance of features"),
    curve: (figure) => charts.curve(figure, record.curves[figure.dataset.number]),
    slice: (figure) => {
      const group = record.slices[figure.dataset.number];
      charts.intervals(figure, group.rows, group.title, names);
    },
    "learning-curve": (figure) => charts.learningCurve(figure, record.learning_curve),
    history: (figure) => charts.history(figure, record.fit.history),
  };

  function setUpCharts() {
    const widths = new Map();
    const drawIfChanged = (figure) => {
      if (figure.clientWidth === 0 || widths.get(figure) === figure.clientWidth) return;
      widths.set(figure, figure.clientWidth);
      drawings[figure.dataset.chart](figure);
    };
    const resized = new ResizeObserver((entries) => entries.forEach((e) => drawIfChanged(e.target)));
    const seen = new IntersectionObserver(
      (entries) => entries.filter((e) => e.isIntersecting).forEach((e) => {
        seen.unobserve(e.target);
        drawIfChanged(e.target);
        resized.observe(e.target);
      }),
      { rootMargin: "600px" },
    );
    const figures = [...document.querySelectorAll("[data-chart]")];
    figures.forEach((figure) => seen.observe(figure));
    window.addEventListener("beforeprint", () => figures.forEach(drawIfChanged));
  }

  $("search").addEventListener("input", () => { view.page = 0; showQueries(); });
  $("kind")?.addEventListener("change", () => { view.page = 0; showQueries(); });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("previous").addEventListener("click", () => { view.page -= 1; showQueries(); });
  $("next").addEventListener("click", () => { view.page += 1; showQueries(); });
  for (const head of document.querySelectorAll("#query-table th[data-column]")) {
    head.firstElementChild.addEventListener("click", () => {
      const { column } = head.dataset;
      Object.assign(view, { column, descending: view.column === column && !view.descending, page: 0 });
      showQueries();
    });
  }
  $("close").addEventListener("click", () => $("detail").close());
  $("detail").addEventListener("click", (event) => {
    if (event.target === $("detail")) $("detail").close();
  });
  showQueries();
  showPicks();
  setUpCharts();
  if (record.sliders) setUpSliders();
})();
