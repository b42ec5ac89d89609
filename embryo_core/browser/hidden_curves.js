// Keeps curves hidden when a figure is redrawn at another step, as figure_zoom.js keeps its zoom. If a redrawn figure shows
// a hidden curve, its legend entry is clicked, one entry at a time. A slow page may draw a figure more than once.
const hiddenCurves = {
  kept: new Map(), // by figure: the names of its hidden curves
  clicking: false, // by us, now

  meet(plot) {
    const figure = plot.closest('[class*="st-key-figure_"]')?.className.match(/st-key-figure_\S+/)[0];
    if (!figure) return;
    const kept = this.kept.get(figure) ?? new Set();
    this.kept.set(figure, kept);
    const clicks = []; // in the legend and not drawn yet: whether each is ours
    const restore = () => clicks.length || this.hideNext(plot, kept);
    plot.on("plotly_legendclick", () => void clicks.push(this.clicking));
    plot.on("plotly_legenddoubleclick", () => void clicks.splice(-1, 1, false));
    plot.on("plotly_restyle", ([{ visible }, traces]) => {
      if (!clicks.shift()) this.note(plot, kept, visible, traces);
      restore();
    });
    plot.on("plotly_afterplot", restore);
    restore();
  },

  // What a reader's click changed, from Plotly's event, since the figure may have been replaced by now. Our own clicks are
  // ignored: if the page had already drawn the curve hidden, our click has shown it, and another one follows.
  note(plot, kept, visible, traces) {
    traces.forEach((trace, i) => {
      const now = Array.isArray(visible) ? visible[i % visible.length] : visible;
      const { name } = plot._fullData[trace] ?? {};
      if (now !== undefined) kept[now === "legendonly" ? "add" : "delete"](name);
    });
  },

  // Plotly waits for a double click after each click, and takes two quick clicks for one; ours are never double clicks.
  hideNext(plot, kept) {
    const hidden = ({ __data__: data }) => data?.[0]?.trace?.visible === true && kept.has(data[0].trace.name);
    const toggle = [...plot.querySelectorAll(".legend .traces")].find(hidden)?.querySelector(".legendtoggle");
    if (!toggle) return;
    const { doubleClickDelay } = plot._context;
    plot._context.doubleClickDelay = 0;
    plot._legendMouseDownTime = 0;
    this.clicking = true;
    for (const type of ["mousedown", "mouseup"]) toggle.dispatchEvent(new MouseEvent(type));
    this.clicking = false;
    plot._context.doubleClickDelay = doubleClickDelay;
  },
};
