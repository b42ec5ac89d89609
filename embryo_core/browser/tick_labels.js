// Labels of the steps below a heat map, of which a narrow page shows every n-th; the title of an axis that long names
// leave little width ends at the edge of its figure.
const tickLabels = {
  APART: 4, // pixels between two labels

  meet(plot) {
    plot.on("plotly_afterplot", () => this.thin(plot));
    this.thin(plot);
  },

  thin(plot) {
    for (const axis of plot.querySelectorAll(".xaxislayer-above, .xaxislayer-below")) {
      const labels = [...axis.querySelectorAll("text")].map((text) => ({ text, box: text.getBoundingClientRect() }));
      if (labels.some(({ box }) => !box.width)) return this.waitFor(plot);
      labels.sort((a, b) => a.box.left - b.box.left);
      let every = 1;
      while (every < labels.length && !this.apart(labels.filter((_, i) => i % every === 0))) every++;
      labels.forEach(({ text }, i) => (text.style.visibility = i % every ? "hidden" : ""));
    }
    for (const title of plot.querySelectorAll(".xtitle")) {
      title.style.transform = "";
      const over = title.getBoundingClientRect().right - plot.getBoundingClientRect().right;
      if (over > 0) title.style.transform = `translateX(${-over}px)`;
    }
  },

  // Labels in a closed expander have no size; they are handled once it is opened.
  waitFor(plot) {
    const watch = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      watch.disconnect();
      this.thin(plot);
    });
    watch.observe(plot);
  },

  apart(labels) {
    return labels.every(({ box }, i) => !i || box.left >= labels[i - 1].box.right + this.APART);
  },
};
