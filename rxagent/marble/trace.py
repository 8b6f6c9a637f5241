"""A recorded run drawn as swimlanes: SVG that wraps, or an HTML page of its own that scrolls and zooms."""

from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from rxagent.events import AnyEvent, EventReader
from rxagent.marble.svg import INK, PAPER, QUIET_INK, Svg, clipped, width_of
from rxagent.marble.timeline import Bar, Lane, Timeline, lane_heading, timeline

_LANE = 30.0
_BAR = 20.0
_MARGIN = 14.0
_PAGE = 1180.0
_RULER = 30.0
_BEHIND = 330.0  # the longest label behind a bar


def read_run(lines: Iterable[str | bytes]) -> list[AnyEvent]:
    """Read a recorded run, an event in each line of JSON. Raises ``CorruptLog`` at a line that is none."""
    return list(EventReader().read_all(lines))


def trace_svg(events: Sequence[AnyEvent], title: str = "") -> str:
    """The run as an SVG document; a long one continues in further rows."""
    line = timeline(events)
    rows = max(int(-(-line.width // _PAGE)), 1)
    width = line.width / rows  # rows of one width: no row is left with the last few events
    return _draw(line, title, [(n * width, (n + 1) * width) for n in range(rows)])


def trace_html(events: Sequence[AnyEvent], title: str = "run") -> str:
    """The run as one HTML page that needs nothing else: scroll, zoom, and hover for the whole text of a bar."""
    line = timeline(events)
    drawing = _draw(line, "", [(0.0, line.width)])
    return _PAGE_TEMPLATE.substitute(title=escape(title), drawing=drawing, count=len(events))


def _draw(line: Timeline, title: str, rows: list[tuple[float, float]]) -> str:
    svg = Svg()
    headings = [lane_heading(lane, line.lanes) for lane in line.lanes]
    left = max((width_of(h) for h in headings), default=0) + 2 * _MARGIN
    y = _MARGIN
    if title:
        svg.text((_MARGIN, y + 14), title, size=15)
        y += 26
    top, names = y, list[tuple[float, str]]()
    for window in rows:
        _ruler(svg, line, window, (left, y))
        y += _RULER
        for lane, heading in zip(line.lanes, headings, strict=True):
            if any(_shows(bar, window) for bar in lane.bars):
                names.append((y + _LANE / 2 + 4, heading))
                _lane(svg, lane, window, (left, y))
                y += _LANE
        y += _MARGIN
    svg.parts.append('<g id="names">')  # above all else: a page that scrolls keeps them in view
    svg.rect((0, top), (left - 4, y - top), PAPER)
    for at, heading in names:
        svg.text((left - _MARGIN, at), heading, anchor="end")
    svg.parts.append("</g>")
    return svg.document(left + max(b - a for a, b in rows) + _MARGIN, max(y, 60))


def _shows(bar: Bar, window: tuple[float, float]) -> bool:
    return bar.x0 < window[1] and max(bar.x1, bar.x0 + 4) > window[0]


def _ruler(svg: Svg, line: Timeline, window: tuple[float, float], at: tuple[float, float]) -> None:
    left, y = at
    begin, end = window
    free = left
    for x, seq, seconds in line.ruler:
        here = left + x - begin
        words = f"#{seq}" if seconds is None else f"#{seq}  {seconds:.3g}s"
        if begin <= x < end and here >= free and here + width_of(words, 10) < left + end - begin:
            svg.text((here, y + 12), words, size=10, ink=QUIET_INK)
            svg.line((here, y + 16), (here, y + 22), QUIET_INK, 1)
            free = here + max(width_of(words, 10) + 16, 90)


def _lane(svg: Svg, lane: Lane, window: tuple[float, float], at: tuple[float, float]) -> None:
    left, top = at
    begin, end = window
    middle = top + _LANE / 2
    svg.dashed((left, middle), (left + end - begin, middle), "#d9e0e7")
    bars = [bar for bar in lane.bars if _shows(bar, window)]
    for n, bar in enumerate(bars):
        following = min(bars[n + 1].x0, end) if n + 1 < len(bars) else end
        _bar(svg, bar, window, (left, middle), following)
    for x in lane.ticks:
        if begin <= x < end:
            here = left + x - begin
            svg.line((here, middle + _BAR / 2 - 3), (here, middle + _BAR / 2), "#ffffff", 1)


def _bar(svg: Svg, bar: Bar, window: tuple[float, float], at: tuple[float, float], following: float) -> None:
    """Draw a bar; its label goes inside, or behind it as far as there is room before the next one."""
    left, middle = at
    begin, end = window
    x0, x1 = max(bar.x0, begin), min(max(bar.x1, bar.x0 + 4), end)
    here = left + x0 - begin
    svg.rect((here, middle - _BAR / 2), (x1 - x0, _BAR), bar.colour)
    svg.title(bar.tip)
    label = bar.label if bar.x0 >= begin else f"… {bar.label}"  # it began in the row before
    inside = clipped(label, x1 - x0 - 10, 11)
    behind = clipped(label, min(following - x1 - 10, _BEHIND), 11)
    if len(inside) >= len(behind):
        ink = INK if bar.colour in ("#c5ced8", "#e3b341") else "#ffffff"
        svg.text((here + 5, middle + 3.5), inside, size=11, ink=ink)
    else:
        svg.text((left + x1 - begin + 5, middle + 3.5), behind, size=11)


_PAGE_TEMPLATE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width">
<style>
body { margin: 0; font: 14px system-ui, sans-serif; color: #1f2933; background: #fff; }
header { position: sticky; top: 0; left: 0; display: flex; gap: .6em; align-items: center; padding: .5em 1em;
         background: #eef3f8; border-bottom: 1px solid #b8c6d4; z-index: 1; }
header h1 { font-size: 1em; margin: 0 auto 0 0; }
button { font: inherit; min-width: 2.2em; }
#view { overflow: auto; height: calc(100vh - 3em); cursor: grab; }
#view svg { display: block; transform-origin: 0 0; }
</style></head><body>
<header><h1>$title — $count events</h1>
<button id="out" title="smaller (-)">−</button><span id="zoom">100%</span><button id="in" title="larger (+)">+</button>
<button id="fit" title="whole run (0)">fit</button></header>
<div id="view">$drawing</div>
<script>
const view = document.getElementById("view"), svg = view.querySelector("svg");
const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
const names = document.getElementById("names");
let zoom = 1;
const keep = () => names.setAttribute("transform", "translate(" + view.scrollLeft / zoom + ",0)");
view.addEventListener("scroll", keep);
function set(next, x = view.clientWidth / 2) {
  const at = (view.scrollLeft + x) / zoom;
  zoom = Math.min(8, Math.max(0.02, next));
  svg.setAttribute("width", width * zoom);
  svg.setAttribute("height", height * zoom);
  view.scrollLeft = at * zoom - x;
  keep();
  document.getElementById("zoom").textContent = Math.round(zoom * 100) + "%";
}
document.getElementById("in").onclick = () => set(zoom * 1.25);
document.getElementById("out").onclick = () => set(zoom / 1.25);
document.getElementById("fit").onclick = () => set(view.clientWidth / width);
addEventListener("keydown", e => {
  if (e.key === "+") set(zoom * 1.25);
  if (e.key === "-") set(zoom / 1.25);
  if (e.key === "0") set(view.clientWidth / width);
});
view.addEventListener("wheel", e => {
  if (!e.ctrlKey) return;
  e.preventDefault();
  set(zoom * Math.exp(-e.deltaY / 300), e.clientX);
}, { passive: false });
let grabbed = null;
view.addEventListener("pointerdown", e => { grabbed = [e.clientX, e.clientY, view.scrollLeft, view.scrollTop]; });
addEventListener("pointerup", () => { grabbed = null; });
addEventListener("pointermove", e => {
  if (!grabbed) return;
  view.scrollLeft = grabbed[2] - e.clientX + grabbed[0];
  view.scrollTop = grabbed[3] - e.clientY + grabbed[1];
});
</script></body></html>
""")
