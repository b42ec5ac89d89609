// Heat maps by keyboard: a figure with cells is one tab stop; arrow keys move from cell to cell, whose hover text is
// announced, and Enter chooses one. Cells are the invisible points that the figures draw over a heat map.
const cellKeys = {
  ready: new WeakSet(), // figures that have their listener

  meet(plot) {
    const cells = plot.data?.find(({ marker }) => marker?.opacity === 0);
    if (!cells || this.ready.has(plot)) return;
    this.ready.add(plot);
    const announced = document.createElement("div");
    announced.className = "announced";
    announced.setAttribute("role", "status");
    plot.append(announced);
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-label", "Heat map: arrow keys go from cell to cell, Enter chooses one");
    plot.addEventListener("keydown", (event) => this.key(event, plot, announced));
  },

  key(event, plot, announced) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], Enter: [0, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    const { xaxis, yaxis } = plot._fullLayout;
    const { x, y } = plot._fullData.find(({ marker }) => marker?.opacity === 0);
    const up = yaxis.range[0] < yaxis.range[1] ? 1 : -1;
    const at = plot.cell ?? [x[0], y[0]];
    const wanted = plot.cell ? [at[0] + by[0], at[1] + up * by[1]] : at;
    if (x.some((_, i) => x[i] === wanted[0] && y[i] === wanted[1])) plot.cell = wanted;
    const pane = plot.querySelector(".nsewdrag.drag");
    const box = plot.getBoundingClientRect();
    const place = {
      clientX: box.left + xaxis._offset + xaxis.d2p(plot.cell[0]),
      clientY: box.top + yaxis._offset + yaxis.d2p(plot.cell[1]),
      bubbles: true,
    };
    const send = (type, target = pane) => target.dispatchEvent(new MouseEvent(type, { ...place, buttons: 1 }));
    send("mousemove");
    if (event.key === "Enter") ["mousedown", "mouseup"].forEach((type) => send(type, type === "mouseup" ? document : pane));
    setTimeout(() => (announced.textContent = plot.querySelector(".hoverlayer")?.textContent ?? ""), 100);
  },
};
