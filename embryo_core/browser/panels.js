// Panels on a phone: as few in a row as have room, by the changes of layout that the figure brings (see curve_plot.py).
const panels = {
  phone: matchMedia("(max-width: 640px)"),

  // Streamlit draws a chart again, with its layout, when the height of its frame changes.
  meet(plot) {
    const frame = plot.closest('[data-testid="stPlotlyChart"]');
    if (!frame || !plot.layout.meta?.phone) return;
    const fit = () => {
      if (this.fit(plot.layout)) frame.style.height = `${plot.layout.height}px`;
    };
    this.phone.addEventListener("change", () => plot.isConnected && fit());
    fit();
  },

  // Exchange what a phone and a page have different where the layout is the other's; return whether it was.
  fit(layout) {
    const { meta } = layout;
    if (!meta?.phone || Boolean(meta.onPhone) === this.phone.matches) return false;
    for (const [path, value] of Object.entries(meta.phone)) {
      const [name, key] = path.split(".");
      const [part, at] = key ? [layout[name], key] : [layout, name];
      [meta.phone[path], part[at]] = [part[at], value];
    }
    meta.onPhone = this.phone.matches;
    return true;
  },
};
