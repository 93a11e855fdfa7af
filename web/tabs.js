// Tabs with the addresses `#speak`, `#hear`, `#chat`, `#talk`, `#team`, `#fit` and `#now`. They work as links, and with the arrow keys as ARIA describes.

/** Shows the tab of the address. Calls `onShow` with its name now, and each time another tab is shown. */
export function startTabs(onShow) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const nameOf = (tab) => tab.hash.slice(1);
  let shown = null;

  const show = () => {
    // The part after a question mark is the state of the tab.
    const [named] = location.hash.split("?");
    const chosen = tabs.find((tab) => tab.hash === named) ?? tabs[0];
    if (chosen === shown) return;
    shown = chosen;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    onShow(nameOf(chosen));
  };

  const onKey = (event) => {
    const next = neighbour(tabs, event);
    if (!next) return;
    event.preventDefault();
    next.focus();
    location.hash = next.hash;
  };

  for (const tab of tabs) tab.addEventListener("keydown", onKey);
  addEventListener("hashchange", show);
  show();
}

function neighbour(tabs, { key, target, altKey, ctrlKey, metaKey }) {
  // With these keys, the browser goes back in its history, for example.
  if (altKey || ctrlKey || metaKey) return null;
  const at = tabs.indexOf(target);
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1, " ": at };
  return key in places ? tabs.at(places[key] % tabs.length) : null;
}
