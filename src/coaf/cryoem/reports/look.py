"""How the report of a session looks, and the few lines that make it answer to a pointer."""

# Of a hole, by how it turned out. They are seen on grey pictures, in light and dark pages alike.
_COLOURS = """
:root { --good: #00c389; --bad: #ff7b2e; --unscored: #ffe14d; --left: #6fb1f2; }
"""

STYLE = (
    _COLOURS
    + """
svg { display: block; width: 100%; height: auto; }
.map { overflow-x: auto; margin: .6rem 0; }
.map > svg { min-width: 44rem; }
.ground { fill: #5f6871; }
.patch path { fill: transparent; stroke: #fff; stroke-opacity: .75; stroke-width: 1.2; }
.patch.skipped path { stroke-opacity: .45; stroke-dasharray: 5 4; }
.patch:hover path { stroke-opacity: 1; stroke-width: 2.5; }
.hole circle { fill: transparent; stroke: var(--left); stroke-width: .9; }
.hole.good circle { stroke: var(--good); stroke-width: 2.4; }
.hole.bad circle { stroke: var(--bad); stroke-width: 2.4; }
.hole.not-scored circle { stroke: var(--unscored); stroke-width: 2.4; }
.hole.chance circle { stroke-dasharray: 3 2; }
.hole:hover circle, .hole:target circle { stroke-width: 4.5; }
.hole text { fill: #fff; stroke: #000; stroke-width: .2em; paint-order: stroke;
  pointer-events: none; }
.hole text.expected { fill-opacity: .85; font-size: .85em; }
.hole text.measured { text-anchor: middle; font-weight: 700; }
.hole.good text.measured { fill: #7cf5cf; }
.hole.bad text.measured { fill: #ffb68c; }
.hole.not-scored text.measured { fill: var(--unscored); }
.dot.good { fill: var(--good); }
.dot.bad { fill: var(--bad); }
.dot.not-scored { fill: var(--unscored); }
.atlas { margin: .8rem 0; font-weight: 600; }
.atlas text { fill: var(--ink); pointer-events: none; }
.atlas .order { fill: var(--soft); font-weight: 400; }
.square rect { stroke: var(--rule); stroke-width: 2; fill: transparent; }
.square.gave rect { fill: var(--good); }
.square.gave-none rect { fill: var(--bad); fill-opacity: .55; }
.square.untaken rect { fill: var(--rule); fill-opacity: .35; }
.square.unopened rect { stroke-dasharray: 7 5; stroke-opacity: .7; }
a:hover .square rect { stroke: var(--ink); stroke-width: 5; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .6rem 0; padding: 0;
  list-style: none; font-size: .94rem; }
.legend i { display: inline-block; width: .85em; height: .85em; margin-right: .4em;
  vertical-align: -.08em; border: 2px solid var(--rule); border-radius: 50%; }
.legend.squares i { border-radius: 2px; border-width: 1px; }
.legend .good { border-color: var(--good); }
.legend .bad { border-color: var(--bad); }
.legend .not-scored { border-color: var(--unscored); }
.legend .left { border-color: var(--left); border-width: 1px; }
.legend .chance { border-style: dashed; }
.legend .gave { background: var(--good); }
.legend .gave-none { background: var(--bad); }
.legend .untaken { background: var(--line); }
.legend .unopened { border-style: dashed; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
  gap: 1rem; }
.opened { margin: 0; scroll-margin-top: 1rem; }
.opened[open] { grid-column: 1 / -1; }
.opened summary { list-style: none; font-size: .86rem; line-height: 1.35; overflow-wrap: anywhere; }
.opened summary::-webkit-details-marker { display: none; }
.opened summary svg { border-radius: 4px; margin-bottom: .35rem; }
.opened summary:hover svg { outline: 2px solid var(--link); }
.opened[open] summary svg { display: none; }
.opened summary b { color: var(--ink); }
.opened[open] summary { font-size: 1rem; }
.opened[open] summary::after { content: " (close)"; }
.opened summary span { color: var(--soft); display: block; }
.decisions { width: 100%; font-size: .9rem; }
.decisions td { overflow-wrap: break-word; }
.decisions td:nth-child(-n+3), .decisions td:nth-child(4) { white-space: nowrap; }
.decisions td:nth-child(3) { font-size: .84rem; }
.came { min-width: 8.5rem; }
.came.good { color: var(--yes); }
.came.bad { color: var(--no); }
.came.not-scored { color: var(--soft); }
#tip { position: absolute; z-index: 9; max-width: min(26rem, 90vw); padding: .5rem .7rem;
  background: var(--paper); color: var(--ink); border: 1px solid var(--rule); border-radius: 6px;
  box-shadow: 0 4px 18px #0006; font-size: .86rem; line-height: 1.4; white-space: pre-line;
  overflow-wrap: anywhere; pointer-events: none; }
@media (max-width: 42rem) {
  body { margin-top: 1rem; padding: 0 .8rem; }
  .decisions thead { display: none; }
  .decisions, .decisions tbody { display: block; }
  .decisions tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .decisions td { display: inline; border: 0; padding: 0 .5rem 0 0; }
  .decisions td:empty { display: none; }
  .decisions td.number { text-align: left; }
  .decisions td:nth-child(4)::before { content: "expected "; color: var(--soft); }
  .decisions td.came:not(:empty), .decisions td:last-child { display: block; padding: 0; }
}
"""
)

# Titles are shown at once, and to fingers, too; a link into a folded square unfolds it. Without
# scripts browsers show titles after a while, and the rest is opened by hand.
SCRIPT = """
(() => {
  const tip = document.createElement("div");
  tip.id = "tip"; tip.hidden = true; document.body.append(tip);
  const show = (event) => {
    const on = event.target.closest(".hole, .patch, .square");
    tip.hidden = !on;
    if (!on) return;
    const title = on.querySelector(":scope > title");
    if (title) { on.dataset.title = title.textContent; title.remove(); }
    tip.textContent = on.dataset.title;
    const wide = document.documentElement.clientWidth, box = tip.getBoundingClientRect();
    const low = event.clientY + box.height + 24 > innerHeight;
    const left = Math.max(Math.min(event.clientX + 12, wide - box.width - 8), 8);
    tip.style.left = left + scrollX + "px";
    tip.style.top = event.clientY + scrollY + (low ? -box.height - 12 : 16) + "px";
  };
  addEventListener("pointerover", show);
  addEventListener("pointermove", (event) => { if (!tip.hidden) show(event); });
  addEventListener("pointerdown", show);
  const unfold = () => {
    const at = document.getElementById(location.hash.slice(1));
    for (let e = at; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (at) at.scrollIntoView({ block: at.tagName === "DETAILS" ? "start" : "center" });
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
  addEventListener("beforeprint", () => {
    document.querySelectorAll(".opened").forEach((square) => { square.open = true; });
  });
})();
"""
