// One entry in the browser's history per page: Streamlit opens a page without query parameters and then adds those that
// the page shows, which would make Back need two presses. The bare address is replaced, not followed, by the full one.
if (!history.oneEntryPerPage) {
  history.oneEntryPerPage = true;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const to = new URL(url ?? location.href, location.href);
    const completes = to.pathname === location.pathname && !location.search && to.search;
    completes ? history.replaceState(state, title, url) : push(state, title, url);
  };
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
