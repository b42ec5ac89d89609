// Keeps the row names of a grid that is wider than the page visible over its cells while it is scrolled.
const rowNames = {
  AWAY: 4, // pixels from the edge of what is seen

  meet(plot) {
    const frame = plot.closest('[class*="st-key-scroll_"]');
    if (!frame) return;
    const keep = () => this.keep(plot, frame);
    frame.addEventListener("scroll", keep, { passive: true });
    plot.on("plotly_afterplot", keep);
    keep();
  },

  keep(plot, frame) {
    for (const names of plot.querySelectorAll(".yaxislayer-above, .yaxislayer-below")) {
      const by = Math.max(0, frame.scrollLeft - Math.max(0, names.getBBox().x - this.AWAY));
      names.setAttribute("transform", `translate(${by}, 0)`);
    }
  },
};
