// Keeps one entry per page in the browser's history, or Back would need two presses. Streamlit opens a page without query
// parameters, or with those of a link, and then adds those of the page: the full address replaces the first. In a busy
// browser the parameters arrive before the path and are added to the previous page: the next page replaces them.
if (!history.oneEntryPerPage) {
  history.oneEntryPerPage = true;
  let untouched = true; // what the reader has chosen is a place of its own
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => (untouched = false), true);
  const keeps = (from, to) => [...from.searchParams].every(([name, value]) => to.searchParams.get(name) === value);
  const completes = (from, to) =>
    to.pathname === from.pathname && to.search && (!from.search || (untouched && keeps(from, to)));
  const moves = (from, to) => to.pathname !== from.pathname && from.search && to.search === from.search;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const [from, to] = [new URL(location), new URL(url ?? location.href, location)];
    completes(from, to) || moves(from, to) ? history.replaceState(state, title, url) : push(state, title, url);
  };

  // The first page may be complete before this runs. Then Back, at its first address, goes back once more; without an
  // earlier entry it stays there.
  const { currentEntry } = window.navigation ?? {};
  const first = currentEntry && navigation.entries()[currentEntry.index - 1];
  const [incomplete, full] = [first?.url, location.href];
  if (first?.sameDocument && completes(new URL(incomplete), new URL(full)))
    addEventListener(
      "popstate",
      () => {
        if (navigation.currentEntry.key !== first.key || location.href !== incomplete) return;
        history.replaceState(history.state, "", full);
        history.back();
      },
      true, // before Streamlit reads the address
    );
}

// On a phone the menu of pages covers the page, so it closes when a page is chosen.
if (!history.closesMenu) {
  history.closesMenu = true;
  document.addEventListener("click", ({ target }) => {
    if (innerWidth >= 640 || !target.closest?.('[data-testid="stSidebarNavLink"]')) return;
    setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click());
  });
}

// A table is one stop of the Tab key, whose arrow keys go from cell to cell. Its own handlers would go through the cells,
// and choose the first as soon as the table has the focus: here the first key that it knows does.
if (!history.leavesTables) {
  history.leavesTables = true;
  const CHOOSES = /^(Arrow|Page|Home$|End$|Enter$| $)/;
  let tabbed = false;
  let untouched = null; // the table that Tab has come to
  const stop = (event) => event.stopImmediatePropagation();
  addEventListener("pointerdown", () => (tabbed = false), true);
  addEventListener(
    "keydown",
    (event) => {
      const { key, target } = event;
      tabbed = key === "Tab";
      if (tabbed) {
        for (const scroller of document.querySelectorAll(".dvn-scroller")) scroller.tabIndex = -1;
        if (target.closest?.(".stDataFrame")) stop(event);
      } else if (target === untouched && CHOOSES.test(key)) {
        target.blur();
        target.focus();
        stop(event);
        event.preventDefault();
      }
    },
    true,
  );
  addEventListener(
    "focusin",
    (event) => {
      untouched = tabbed && event.target.matches?.(".stDataFrame canvas") ? event.target : null;
      if (untouched) stop(event);
    },
    true,
  );
}

export default function () {}
