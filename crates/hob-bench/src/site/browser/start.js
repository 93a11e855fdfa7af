// The views that only list, and what every page has: navigation, theme, tooltips, foot.

function queuedPage() {
  const cells = ({ plan, left }) => plain(`Cells of ${plan}`, "cells", [
    column("target", ({ target }) => target, { head: true }),
    ...["kind", "model", "quant", "backend", "shape"].map((name) => column(name, (one) => one[name])),
    column("context", ({ context }) => context),
    column("users", ({ concurrency }) => concurrency),
    column("labels", ({ labels }) => Object.entries(labels ?? {}).map(([name, value]) => [h("span.aside", `${name} ${value}`), " "])),
  ], left);
  return [
    titled("Queued", "Cells of plans that are not measured yet."),
    benchmarks.queued.length === 0 ? h("p", "There is no plan in ", h("code", "bench/plans"), ". ", h("code", "hob bench plan --help"), " shows one.") : null,
    benchmarks.queued.map((plan) => section(plan.plan,
      plan.note ? h("p", plan.note) : null,
      h("p.sub", `${plan.all - plan.left.length} of ${plan.all} cells are measured.`),
      plan.left.length > 0 ? cells(plan) : null)),
  ];
}

function methodPage() {
  return [
    titled("Method", "One name, one formula."),
    section("Which figures can be relied on",
      h("p", "A figure is ", h("strong", "verified"), " when all of this is true: it comes from six runs or more on two starts of the server; its 95 % interval is at most 5 % to each side; the machine was quiet and the client fast enough; the server counted the tokens; and everything that ran is known. Otherwise it is ", h("strong", "unverified"), ", with the reasons:"),
      h("dl.doubts", benchmarks.doubts.map(([name, meaning]) => [h("dt", h("code", name)), h("dd", `${meaning}.`)])),
      h("p", "Results of other programs and published figures are always unverified. They are here for comparison, and to be measured again.")),
    section("What is measured",
      h("p", "A figure is the median of its runs, and a run's is the median of its requests. Where times are in two groups, no request may have taken the median: the run is then unverified, and says so."),
      h("p", "For a server on the same machine, the kernel stamps the time when bytes arrive. For others, the client stamps it right after it reads them, before it parses anything. Bench and production figures never share a column."),
      plain("Terms", "terms", [
        column("figure", ({ title, unit }) => [title, unit ? [" ", h("span.unit", unit)] : null], { head: true }),
        column("in records", ({ name }) => h("code", name)),
        column("better", ({ better }) => better),
        column("meaning", ({ meaning }) => meaning),
        column("formula", ({ formula }) => h("code", formula)),
      ], benchmarks.terms),
      h("dl.symbols", benchmarks.symbols.map(([symbol, meaning]) => [h("dt", h("code", symbol)), h("dd", meaning)]))),
  ];
}

function foot() {
  const { built, skipped, folder } = benchmarks;
  return [
    h("p", countText(RUNS.length, "run"), built ? `, built on ${built}` : "", ". Every figure says how it was measured, and how far it can be relied on: ",
      h("a", { href: "method.html" }, "method and definitions"), ".", folder ? ` Runs of this hob are from ${folder}.` : null),
    skipped.length > 0 ? h("details.skipped", h("summary", `${countText(skipped.length, "file was", "files were")} left out`), h("ul", skipped.map((reason) => h("li", reason)))) : null,
  ];
}

/** The theme of the system, until a reader chooses one. */
function startTheme() {
  const themes = ["", "light", "dark"];
  const button = find(".theme");
  let theme = "";
  try {
    theme = themes.find((name) => name && name === localStorage.getItem("hob-theme")) ?? "";
  } catch { /* Storage is not allowed: the choice holds for this page. */ }
  const show = () => {
    if (theme) document.documentElement.setAttribute("data-theme", theme);
    else document.documentElement.removeAttribute("data-theme");
    button.textContent = `Theme: ${theme || "system"}`;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("hob-theme", theme);
    } catch { /* As above. */ }
    show();
  });
  button.hidden = false;
  show();
}

/** Definitions appear on hover, on focus and on a tap. */
function startTooltips() {
  const tip = find("#tip");
  let explained = null;
  const hide = () => {
    explained?.removeAttribute("aria-describedby");
    explained = null;
    tip.hidden = true;
  };
  const explain = (word) => {
    if (word.title) {
      word.dataset.tip = word.title;
      word.removeAttribute("title");
    }
    explained = word;
    tip.textContent = word.dataset.tip;
    tip.hidden = false;
    word.setAttribute("aria-describedby", "tip");
    const { left, top, bottom } = word.getBoundingClientRect();
    const x = Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8));
    const y = bottom + 6 + tip.offsetHeight > innerHeight ? top - tip.offsetHeight - 6 : bottom + 6;
    tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(Math.max(4, y))}px)`;
  };
  for (const kind of ["mouseover", "focusin", "click"]) {
    document.addEventListener(kind, ({ target }) => {
      const word = target.closest?.("[title], [data-tip]");
      if (word) explain(word);
      else if (explained) hide();
    });
  }
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  document.addEventListener("scroll", hide, true);
}

const PAGES = {
  index: modelsPage, model: modelPage, speech: speechPage, eval: evalPage, machines: machinesPage, machine: machinePage,
  compare: comparePage, queued: queuedPage, method: methodPage, run: runPage,
};
/** These pages show the run, model or machine that the address names. */
const NAMED_PAGES = ["model", "machine", "run"];

function start() {
  const { dataset: { view } } = document.documentElement;
  const main = find("main");
  const draw = () => main.replaceChildren(...h("div", PAGES[view]()).childNodes);
  const link = find(`nav a[href="${view === "machine" ? "machines" : view}.html"]`);
  link?.setAttribute("aria-current", "page");
  // The link must leave the address alone: it says what is shown.
  find(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  startTheme();
  startTooltips();
  find("footer").append(...h("div", foot()).childNodes);
  if (NAMED_PAGES.includes(view)) addEventListener("hashchange", draw);
  draw();
  document.documentElement.setAttribute("data-ready", "");
}

start();
