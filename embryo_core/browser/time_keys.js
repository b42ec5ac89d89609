// Keys that move through time from anywhere on the page, except where they type, choose or press something.
const WRITES = "input, textarea, select, [contenteditable=true], [role=slider], [role=listbox], [data-testid=stDataFrame]";
const PRESSES = "button, a, summary, [role=button], [role=radio], [role=switch], [role=tab]";

// The index of the checkpoint to which a key leads from `index`, of `count` checkpoints; undefined for other keys.
function leadsTo(key, index, count) {
  const page = Math.ceil(count / 10);
  const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -page, PageUp: page }[key];
  return by === undefined ? undefined : Math.min(count - 1, Math.max(0, index + by));
}

// Whether a key pressed on the page is free to move through time.
function isFree(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
  const taken = event.key === " " ? `${WRITES}, ${PRESSES}` : WRITES;
  return !event.composedPath().some((element) => element.matches?.(taken));
}
