// Keeps the zoom when a figure is redrawn at another step: Streamlit replaces the chart, and each axis with the same meaning
// gets its earlier range. Plotly cannot be reached by name inside Streamlit, but the chart's own button "Reset axes" can: it
// restores the initial ranges of the axes.
const figureZoom = {
  kept: new Map(), // by figure: its zoomed axes by name, each with its meaning and its range

  meet(plot) {
    const figure = plot.closest('[class*="st-key-figure_"]')?.className.match(/st-key-figure_\S+/)[0];
    if (!figure) return;
    let waiting = this.kept.get(figure);
    const restore = () => {
      const button = waiting && plot.querySelector('.modebar-btn[data-val="reset"]');
      if (!button) return;
      const zoomed = waiting;
      waiting = null;
      this.restore(plot, zoomed, button);
    };
    plot.on("plotly_afterplot", restore);
    plot.on("plotly_relayout", () => waiting || this.kept.set(figure, this.zoomed(plot)));
    restore();
  },

  axes: (plot) => Object.entries(plot._fullLayout).filter(([name]) => /^[xy]axis\d*$/.test(name)),
  meaning: ({ type, title }) => `${type} ${title.text}`,

  zoomed(plot) {
    const changed = this.axes(plot).filter(([, axis]) => !axis.autorange && axis.range[0] !== axis._rangeInitial0);
    return Object.fromEntries(changed.map(([name, axis]) => [name, [this.meaning(axis), [...axis.range]]]));
  },

  restore(plot, zoomed, button) {
    const initial = {};
    for (const [name, axis] of this.axes(plot)) {
      const [meaning, range] = zoomed[name] ?? [];
      if (meaning !== this.meaning(axis)) continue;
      initial[name] = [axis._rangeInitial0, axis._rangeInitial1];
      [axis._rangeInitial0, axis._rangeInitial1] = range;
    }
    button.dispatchEvent(new MouseEvent("click"));
    for (const [name, axis] of this.axes(plot)) {
      if (initial[name]) [axis._rangeInitial0, axis._rangeInitial1] = initial[name];
    }
  },
};
