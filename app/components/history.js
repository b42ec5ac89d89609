// One entry in the browser's history per page, or Back would need two presses. Streamlit opens a page without query
// parameters and then adds those that the page shows: the full address replaces the bare one. In a busy browser the
// parameters come before the path, and are added to the page before: the next page replaces that address.
if (!history.oneEntryPerPage) {
  history.oneEntryPerPage = true;
  const completes = (from, to) => to.pathname === from.pathname && !from.search && to.search;
  const moves = (from, to) => to.pathname !== from.pathname && from.search && to.search === from.search;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const to = new URL(url ?? location.href, location.href);
    completes(location, to) || moves(location, to) ? history.replaceState(state, title, url) : push(state, title, url);
  };

  // The first page may be complete before this runs. Then Back, on the bare address, goes on; if nothing lies before, it
  // stays, with what the page showed first.
  const { currentEntry } = window.navigation ?? {};
  const bare = currentEntry && navigation.entries()[currentEntry.index - 1];
  const { href } = location;
  if (bare?.sameDocument && completes(new URL(bare.url), location))
    addEventListener(
      "popstate",
      () => {
        if (navigation.currentEntry.key !== bare.key || location.search) return;
        history.replaceState(history.state, "", href);
        history.back();
      },
      true, // before Streamlit reads the address
    );
}

// On a phone the menu of pages covers the page: it closes when one is chosen.
if (!history.closesMenu) {
  history.closesMenu = true;
  document.addEventListener("click", ({ target }) => {
    if (innerWidth >= 640 || !target.closest?.('[data-testid="stSidebarNavLink"]')) return;
    setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click());
  });
}

export default function () {}
