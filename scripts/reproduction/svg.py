"""Charts as SVG, light and dark by the reader's choice: lines, and groups of bars."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 52, 52
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 14px; }
.axis { stroke: #57606a; stroke-width: 1; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.c0 { --c: #0969da; } .c1 { --c: #bc4c00; } .c2 { --c: #1a7f37; } .c3 { --c: #8250df; } .c4 { --c: #bf3989; } .c5 { --c: #57606a; }
.line { stroke: var(--c); stroke-width: 2; fill: none; }
.dots { stroke-dasharray: 3 4; }
.mark, .bar { fill: var(--c); }
.share { fill: none; stroke: #24292f; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.axis { stroke: #8d96a0; }
.grid { stroke: #30363d; }
.c0 { --c: #4493f8; } .c1 { --c: #f0883e; } .c2 { --c: #3fb950; } .c3 { --c: #ab7df8; } .c4 { --c: #db61a2; } .c5 { --c: #8d96a0; }
.share { stroke: #e6edf3; }
}
</style>"""


def steps(low, high):
    """Round numbers from `low` to `high`, about five."""
    for size in (.001, .002, .005, .01, .02, .05, .1, .2, .5, 1):
        if (high - low) / size <= 6:
            break
    first = int(low / size)
    return [round((first + i) * size, 4) for i in range(9) if (first + i) * size <= high + size]


class Chart:
    def __init__(self, title, x_title, y_title, low, high):
        self.ticks = steps(low, high)
        self.low, self.high = self.ticks[0], self.ticks[-1]
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                      f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">', STYLE]
        self.text(LEFT, 18, title, "start", "title")
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title)
        self.parts.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
                          f'text-anchor="middle">{escape(y_title)}</text>')
        for tick in self.ticks:
            y = self.y(tick)
            kind = "axis" if tick == self.low else "grid"
            self.parts.append(f'<line class="{kind}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            self.text(LEFT - 8, y + 4, f"{tick:g}", "end")
        self.named = 0

    def y(self, value):
        return HEIGHT - BOTTOM - (value - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, anchor="middle", kind=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
                          + (f' class="{kind}"' if kind else "") + f">{escape(words)}</text>")

    def name(self, color, words):
        """An entry of the legend, in one row above the frame."""
        x = LEFT + self.named
        self.parts.append(f'<rect class="bar c{color}" x="{x}" y="30" width="12" height="12"/>')
        self.text(x + 18, 41, words, "start")
        self.named += 34 + 7 * len(words)

    def done(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def lines(title, x_title, y_title, series):
    """series: (name, {x: y}, color, how): how is line, dotted (without a name) or hollow (marks alone)."""
    values = [y for _, points, _, _ in series for y in points.values()]
    places = sorted({x for _, points, _, _ in series for x in points})
    chart = Chart(title, x_title, y_title, min(values), max(values))
    span = (places[-1] - places[0]) or 1
    across = {x: LEFT + 30 + (x - places[0]) / span * (WIDTH - LEFT - RIGHT - 60) for x in places}
    for x in places:
        chart.text(across[x], HEIGHT - BOTTOM + 18, f"{x:g}")
    for name, points, color, how in series:
        at = [(across[x], chart.y(y)) for x, y in sorted(points.items())]
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        if how != "hollow":
            chart.parts.append(f'<path class="line {"dots " if how == "dotted" else ""}c{color}" d="{path}"/>')
        if how != "dotted":
            mark = "mark" if how == "line" else "line"
            chart.parts += [f'<circle class="{mark} c{color}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in at]
        if how == "line":
            chart.name(color, name)
    return chart.done()


def bars(title, x_title, y_title, groups, series, shares=None):
    """groups: names; series: (name, a value or None per group); shares: of all queries, per group, as diamonds."""
    chart = Chart(title, x_title, y_title, 0, max(v for _, values in series for v in values if v is not None))
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    wide = min(26, room * .8 / len(series))
    for i, group in enumerate(groups):
        middle = LEFT + (i + .5) * room
        chart.text(middle, HEIGHT - BOTTOM + 18, group)
        for j, (_, values) in enumerate(series):
            if values[i] is None:
                continue
            x, y = middle + (j - len(series) / 2) * wide, chart.y(values[i])
            chart.parts.append(f'<rect class="bar c{j}" x="{x + 1:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" '
                               f'height="{chart.y(0) - y:.1f}"><title>{values[i]:.3f}</title></rect>')
        if shares:
            y = chart.y(min(shares[i], chart.high))
            chart.parts.append(f'<path class="share" d="M{middle:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z">'
                               f"<title>{shares[i]:.3f}</title></path>")
    for j, (name, _) in enumerate(series):
        chart.name(j, name)
    return chart.done()
