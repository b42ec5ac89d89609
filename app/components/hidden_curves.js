// Hidden curves outlive a figure that is another at each step, as its zoom does (see figure_zoom.js): entries of the legend
// that were switched off are switched off again by the clicks of a reader, one after the other, whenever a figure is drawn
// without what was last clicked. A slow page may draw one more than once.
const hiddenCurves = {
  kept: new Map(), // by figure: the names of its hidden curves

  meet(plot) {
    const figure = plot.closest('[class*="st-key-figure_"]')?.className.match(/st-key-figure_\S+/)[0];
    if (!figure) return;
    const kept = this.kept.get(figure) ?? new Set();
    this.kept.set(figure, kept);
    let clicked = false; // in the legend, by a reader or by us, and not drawn yet
    const restore = () => clicked || this.hideNext(plot, kept);
    for (const event of ["plotly_legendclick", "plotly_legenddoubleclick"]) plot.on(event, () => void (clicked = true));
    plot.on("plotly_restyle", ([{ visible }, traces]) => {
      clicked = false;
      this.note(plot, kept, visible, traces);
      restore();
    });
    plot.on("plotly_afterplot", restore);
    restore();
  },

  // What a click changed, as Plotly tells it: the figure itself may be another by now.
  note(plot, kept, visible, traces) {
    traces.forEach((trace, i) => {
      const now = Array.isArray(visible) ? visible[i % visible.length] : visible;
      const { name } = plot._fullData[trace] ?? {};
      if (now !== undefined) kept[now === "legendonly" ? "add" : "delete"](name);
    });
  },

  // Plotly waits after a click whether it becomes a double click, and takes one soon after another for that; here nobody
  // clicks twice.
  hideNext(plot, kept) {
    const hidden = ({ __data__: data }) => data?.[0]?.trace?.visible === true && kept.has(data[0].trace.name);
    const toggle = [...plot.querySelectorAll(".legend .traces")].find(hidden)?.querySelector(".legendtoggle");
    if (!toggle) return;
    const { doubleClickDelay } = plot._context;
    plot._context.doubleClickDelay = 0;
    plot._legendMouseDownTime = 0;
    for (const type of ["mousedown", "mouseup"]) toggle.dispatchEvent(new MouseEvent(type));
    plot._context.doubleClickDelay = doubleClickDelay;
  },
};
