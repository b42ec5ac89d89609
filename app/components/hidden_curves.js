// Hidden curves outlive a figure that is another at each step, as its zoom does (see figure_zoom.js): entries of the legend
// that were switched off are switched off again by the clicks of a reader.
const hiddenCurves = {
  kept: new Map(), // by figure: the names of its hidden entries

  meet(plot) {
    const figure = plot.closest('[class*="st-key-figure_"]')?.className.match(/st-key-figure_\S+/)[0];
    if (!figure) return;
    let waiting = this.kept.get(figure);
    const restore = () => {
      const entries = [...plot.querySelectorAll(".legend .traces")];
      if (!waiting?.size || !entries.length) return;
      const wanted = waiting;
      waiting = null;
      this.restore(plot, entries, wanted);
    };
    plot.on("plotly_afterplot", restore);
    plot.on("plotly_restyle", () => this.kept.set(figure, this.hidden(plot)));
    restore();
  },

  hidden: (plot) => new Set(plot._fullData.filter(({ visible }) => visible === "legendonly").map(({ name }) => name)),

  // Plotly waits after a click whether it becomes a double click; here nobody clicks twice.
  restore(plot, entries, wanted) {
    const { doubleClickDelay } = plot._context;
    plot._context.doubleClickDelay = 0;
    for (const entry of entries) {
      const { trace } = entry.__data__?.[0] ?? {};
      if (trace?.visible !== true || !wanted.has(trace.name)) continue;
      const click = (type) => entry.querySelector(".legendtoggle").dispatchEvent(new MouseEvent(type));
      ["mousedown", "mouseup"].forEach(click);
    }
    plot._context.doubleClickDelay = doubleClickDelay;
  },
};
