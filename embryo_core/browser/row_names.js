// Keeps the row names of a grid that is wider than the page visible over its cells while it is scrolled; panels that are
// wider than the page are scrolled by the arrow keys too, and so is a table whose cells wrap.
const rowNames = {
  AWAY: 4, // pixels from the edge of what is seen

  meet(plot) {
    const panels = plot.closest('[class*="st-key-wide_"]');
    if (panels) this.focus(panels);
    const frame = plot.closest('[class*="st-key-scroll_"]');
    if (!frame) return;
    const keep = () => this.keep(plot, frame);
    frame.addEventListener("scroll", keep, { passive: true });
    plot.on("plotly_afterplot", keep);
    keep();
  },

  meetTables() {
    for (const table of document.querySelectorAll('[class*="st-key-wrapped_"] table')) table.parentElement.tabIndex = 0;
  },

  // The cells of a grid have the focus, but panels have none.
  focus(frame) {
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Panels");
  },

  keep(plot, frame) {
    for (const names of plot.querySelectorAll(".yaxislayer-above, .yaxislayer-below")) {
      const by = Math.max(0, frame.scrollLeft - Math.max(0, names.getBBox().x - this.AWAY));
      names.setAttribute("transform", `translate(${by}, 0)`);
    }
  },
};
