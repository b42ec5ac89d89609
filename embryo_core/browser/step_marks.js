// Marks of the chosen step on the figures, which the browser moves: a figure is drawn once for all steps (see
// embryo_core/figures/axis.py), so that its zoom and its hidden curves stay as the reader left them.
const stepMarks = {
  heard: new WeakSet(), // figures whose redrawing is heard
  seen: new WeakMap(), // the step or the column to which a wide figure was last scrolled

  // `bar` is the time bar: its step, and the position of each step on an axis.
  watch(bar) {
    this.bar = bar;
    this.observer ??= new MutationObserver(() => {
      this.asked ??= requestAnimationFrame(() => {
        this.asked = null;
        this.meet();
      });
    });
    this.observer.observe(document.body, { childList: true, subtree: true });
    this.meet();
    this.move();
  },

  // Plotly restores the figure's own marks whenever it draws; they are then moved again.
  meet() {
    rowNames.meetTables();
    for (const plot of document.querySelectorAll(".js-plotly-plot")) {
      if (this.heard.has(plot) || !plot.on) continue;
      this.heard.add(plot);
      plot.on("plotly_afterplot", () => this.moveOn(plot));
      cellKeys.meet(plot);
      figureZoom.meet(plot);
      hiddenCurves.meet(plot);
      panels.meet(plot);
      rowNames.meet(plot);
      tickLabels.meet(plot);
      this.moveOn(plot);
    }
  },

  move() {
    document.querySelectorAll(".js-plotly-plot").forEach((plot) => this.moveOn(plot));
  },

  moveOn(plot) {
    const { shapes = [], xaxis, yaxis, meta } = plot._fullLayout ?? {};
    const { line, mark, steps } = this.bar;
    plot.classList.toggle("at-a-step", !shapes.some(({ name }) => name === line || name === mark));
    shapes.forEach((shape, index) => {
      if (shape.name === this.bar.column) this.scrollTo(plot, xaxis, (shape.x0 + shape.x1) / 2, shape.x0);
      if (shape.name !== line && shape.name !== mark) return;
      const [from, to] = shape.name === line
        ? [[shape.x0], [this.bar.values[xaxis.type][steps.indexOf(this.bar.step)]]]
        : [meta.points.at(-1), meta.points[Math.max(0, meta.steps.findLastIndex((step) => step <= this.bar.step))]];
      const by = [xaxis, yaxis].map((axis, i) => (to[i] === undefined ? 0 : axis.d2p(to[i]) - axis.d2p(from[i])));
      plot.querySelector(`.shapelayer path[data-index="${index}"]`)?.setAttribute("transform", `translate(${by})`);
      if (shape.name === mark) this.scrollTo(plot, xaxis, to[0], this.bar.step);
    });
  },

  // In a grid wider than the page, the column of the chosen step is scrolled into view, once per step and whenever the
  // grid is redrawn elsewhere.
  scrollTo(plot, axis, column, place) {
    const frame = plot.closest('[class*="st-key-scroll_"]');
    if (!frame || this.seen.get(plot) === place) return;
    this.seen.set(plot, place);
    const [left, right] = [column - 1, column + 1].map((edge) => axis._offset + axis.d2p(edge));
    frame.scrollLeft = Math.min(left, Math.max(frame.scrollLeft, right - frame.clientWidth));
  },
};
