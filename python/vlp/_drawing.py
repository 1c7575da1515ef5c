"""Explanations as SVG and HTML.

Text and lines take the colour of the text around them, so that they fit light and dark pages; the two other
colours have a contrast of at least 3 to white and to black. The picture goes from left to right: the query's
entity, the entities between, the answer. Each path has a row, the heaviest one the first.
"""

from __future__ import annotations

import dataclasses
from html import escape
from typing import TYPE_CHECKING, Any, Optional

from ._answers import SYMBOLS, Triple
from ._tables import shown

if TYPE_CHECKING:
    from ._answers import Explanation

COLUMN, ROW, MARGIN, TOP = 200, 64, 100, 44
ANSWER, RESTS = "#2f7fd1", "#c2620e"
MAX_REFERENCES = 8


@dataclasses.dataclass
class Node:
    text: str
    kind: str  # "query", "answer" or ""
    column: float
    row: float
    note: str = ""

    @property
    def shown(self) -> str:
        return _short(self.text, 25 - len(self.note)) + self.note

    @property
    def x(self) -> int:
        return round(MARGIN + self.column * COLUMN)

    @property
    def y(self) -> int:
        return round(TOP + self.row * ROW)


@dataclasses.dataclass
class Edge:
    source: Node
    target: Node
    text: str
    title: str
    weight: float
    arrow: int  # 1: a tip at the target, -1: at the source, 0: none
    rests: bool = False
    row: float = 0  # rows that it hangs down
    dashed: bool = False

    @property
    def lowest(self) -> float:
        return (self.source.row + self.target.row) / 2 + self.row


@dataclasses.dataclass
class Picture:
    label: str
    nodes: list[Node]
    edges: list[Edge]

    @property
    def size(self) -> tuple[int, int]:
        rows = max([node.row for node in self.nodes] + [edge.lowest for edge in self.edges])
        return round(2 * MARGIN + max(node.column for node in self.nodes) * COLUMN), round(TOP + rows * ROW + 36)


def _label(explanation: Explanation, name: str) -> str:
    return explanation.labels.get(name, name)


def _sentence(explanation: Explanation, triple: Triple) -> str:
    return " ".join(_label(explanation, part) for part in triple)


def _ends(explanation: Explanation) -> tuple[str, str]:
    """The query's entity and the answer."""
    triple = explanation.triple
    return (triple.head, triple.tail) if explanation.asks == "tail" else (triple.tail, triple.head)


def _paths(explanation: Explanation) -> Picture:
    """A row for each path. An entity or a triple of two paths is drawn in both rows, so that no line crosses another."""
    start, answer = _ends(explanation)
    columns = max(len(path.steps) for path in explanation.paths)
    middle = (len(explanation.paths) - 1) / 2
    first = Node(_label(explanation, start), "query", 0, middle)
    last = Node(_label(explanation, answer), "answer", columns, middle)
    between: list[Node] = []
    edges: list[Edge] = []
    resting = set(explanation.support.triples) if explanation.support else set()
    for row, path in enumerate(explanation.paths):
        source = first
        for place, step in enumerate(path.steps, 1):
            target = last
            if place < len(path.steps):
                target = Node(_label(explanation, step.target), "", columns * place / len(path.steps), row)
                between.append(target)
            texts = _label(explanation, step.triple.relation), _sentence(explanation, step.triple)
            arrow = 1 if step.forward else -1
            edges.append(Edge(source, target, *texts, path.weight, arrow, step.triple in resting))
            source = target
        if len(path.steps) == 1:
            edges[-1].row = row - middle
    label = f"Paths of known triples from {_label(explanation, start)} to {_label(explanation, answer)}"
    return Picture(label, [first, *between, last], edges)


def _references(explanation: Explanation) -> Picture:
    """The query's entity, the near entities that have known triples of the relation, and their answers."""
    start, answer = _ends(explanation)
    nodes = {"query": Node(_label(explanation, start), "query", 0, 0)}
    edges: list[Edge] = []
    ordered = sorted(explanation.references, key=lambda item: -(item.contribution or 0))[:MAX_REFERENCES]

    def node(name: str, column: int, kind: str = "", note: str = "") -> Node:
        key = f"{column} {name}"
        if key not in nodes:
            row = sum(other.column == column for other in nodes.values())
            nodes[key] = Node(_label(explanation, name), kind, column, row, note)
        return nodes[key]

    for reference in ordered:
        near, found = reference.triple.head, reference.triple.tail
        if explanation.asks == "head":
            near, found = found, near
        hops = f"{reference.distance} hop{'s' if reference.distance != 1 else ''}"
        note = f", {hops}" if reference.distance > 0 else ""
        source = nodes["query"] if reference.distance == 0 else node(near, 1, note=note)
        if source.column and not any(edge.target is source for edge in edges):
            edges.append(Edge(nodes["query"], source, "", note[2:], 0, 0, dashed=True))
        target = node(found, 2, "answer" if found == answer else "")
        arrow = 1 if explanation.asks == "tail" else -1
        relation = "" if any(edge.text for edge in edges) else _label(explanation, reference.triple.relation)
        title = _sentence(explanation, reference.triple)
        edges.append(Edge(source, target, relation, title, max(reference.contribution or 0, 0), arrow))
    if not any(item.kind == "answer" for item in nodes.values()):
        node(answer, 2, "answer")
    label = f"Known triples nearest to {_label(explanation, start)}, and their answers"
    return Picture(label, list(nodes.values()), edges)


# ---- SVG ----


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


class Labels:
    """Finds a place for the text of each edge where no other text is."""

    def __init__(self, nodes: list[Node]) -> None:
        self._boxes = [self._box(node.x, node.y - 13, len(node.shown) * 7.2) for node in nodes]

    @staticmethod
    def _box(x: float, y: float, width: float) -> tuple[float, float, float, float]:
        return x - width / 2, y - 11, x + width / 2, y + 3

    def place(self, text: str, curve: list[tuple[float, float]]) -> tuple[float, float]:
        """Above the curve or below it, as near to its middle as it may be; where nothing is free, there."""
        places = []
        for part in (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78):
            weights = ((1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3)
            x, y = (sum(weight * point[axis] for weight, point in zip(weights, curve)) for axis in (0, 1))
            places += [(x, y - 6), (x, y + 15)]
        found = next((place for place in places if self._is_free(self._box(*place, len(text) * 6.6))), places[0])
        self._boxes.append(self._box(*found, len(text) * 6.6))
        return found

    def _is_free(self, box: tuple[float, float, float, float]) -> bool:
        left, top, right, bottom = box
        return not any(left < r and a < right and top < d and b < bottom for a, b, r, d in self._boxes)


def _draw_edge(edge: Edge, heaviest: float, labels: Labels) -> str:
    x1, y1, x2, y2 = edge.source.x + 7, edge.source.y, edge.target.x - 7, edge.target.y
    width = 1.5 + (3.5 * edge.weight / heaviest if heaviest > 0 else 0)
    bend, down = (x2 - x1) * 0.4, edge.row * ROW * 4 / 3  # three quarters of it are the middle of the curve
    start, end = (x1 + 8 if edge.arrow < 0 else x1), (x2 - 8 if edge.arrow > 0 else x2)
    colour = RESTS if edge.rests else "currentColor"
    style = f'stroke="{colour}" stroke-width="{width:.1f}"' + (' stroke-dasharray="3 4"' if edge.dashed else "")
    style += "" if edge.rests else ' stroke-opacity=".55"'
    points = [(start, y1), (x1 + bend, y1 + down), (x2 - bend, y2 + down), (end, y2)]
    curve = "M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*(each for point in points for each in point))
    note = f"{edge.title}; the answer rests on it" if edge.rests else edge.title
    tip = {1: f"M{x2 + 1} {y2}l-10 -5.5v11z", -1: f"M{x1 - 1} {y1}l10 -5.5v11z", 0: ""}[edge.arrow]
    tip = f'<path d="{tip}" fill="{colour}"/>' if tip else ""
    text, words = "", _short(edge.text, 20)
    if words:
        x, y = labels.place(words, points)
        text = f'<text x="{x:.0f}" y="{y:.0f}" font-size="12" text-anchor="middle" opacity=".8">{escape(words)}</text>'
    return f'<g><title>{escape(note)}</title><path d="{curve}" fill="none" {style}/>{tip}{text}</g>'


def _draw_node(node: Node) -> str:
    fill = {"query": "currentColor", "answer": ANSWER, "": "none"}[node.kind]
    stroke = ANSWER if node.kind == "answer" else "currentColor"
    weight = ' font-weight="600"' if node.kind else ""
    return (
        f'<g><title>{escape(node.text)}</title><circle cx="{node.x}" cy="{node.y}" r="5.5" fill="{fill}" stroke="{stroke}" '
        f'stroke-width="1.5"/><text x="{node.x}" y="{node.y - 13}" font-size="13" text-anchor="middle"{weight}>'
        f"{escape(node.shown)}</text></g>"
    )


def svg(explanation: Explanation, alone: bool = False) -> str:
    """The picture. `alone`: as a file of its own, which has no colour around it to take."""
    picture: Optional[Picture] = None
    if explanation.paths:
        picture = _paths(explanation)
    elif explanation.references:
        picture = _references(explanation)
    if picture is None:
        start, answer = _ends(explanation)
        nodes = [Node(_label(explanation, start), "query", 0, 0), Node(_label(explanation, answer), "answer", 1, 0)]
        picture = Picture("No path and no reference leads to this answer", nodes, [])
    width, height = picture.size
    heaviest = max((edge.weight for edge in picture.edges), default=0.0)
    style = (
        "<style>.vlp-alone{color:#1b1f24}@media(prefers-color-scheme:dark){.vlp-alone{color:#e7eaee}}</style>" if alone else ""
    )
    labels = Labels(picture.nodes)
    edges = "".join(_draw_edge(edge, heaviest, labels) for edge in picture.edges)
    nodes_text = "".join(_draw_node(node) for node in picture.nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{"vlp-alone" if alone else "vlp"}" role="img" '
        f'aria-label="{escape(picture.label)}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" fill="currentColor">{style}{edges}{nodes_text}</svg>'
    )


# ---- HTML ----


def _rests_on(explanation: Explanation) -> str:
    support = explanation.support
    if not support or not support.triples:
        return ""
    these = "this known triple" if len(support.triples) == 1 else "these known triples"
    items = "".join(f"<li>{escape(_sentence(explanation, triple))}</li>" for triple in support.triples)
    change = f"it falls from rank {support.rank_before:g} to {support.rank:g}"
    return f'<p><span style="color:{RESTS}">━</span> Without {these} {change}:</p><ul>{items}</ul>'


def _reference_table(explanation: Explanation) -> str:
    if not explanation.references:
        return ""
    largest = max((abs(item.contribution or 0) for item in explanation.references), default=0.0)
    rows = ""
    for item in sorted(explanation.references, key=lambda item: -(item.contribution or 0)):
        share = item.contribution
        length = 60 * abs(share) / largest if share and largest > 0 else 0
        pattern = "" if (share or 0) >= 0 else ' fill-opacity=".35" stroke="currentColor"'
        bar = f'<svg width="62" height="10" aria-hidden="true"><rect width="{length:.1f}" height="9" fill="{ANSWER}"{pattern}/></svg>'
        texts = [_label(explanation, part) for part in item.triple] + [str(item.distance), shown(share)]
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        rows += f"<tr>{cells}<td>{bar}</td></tr>"
    titles = "".join(f'<th scope="col">{title}</th>' for title in ("head", "relation", "tail", "hops", "contribution", ""))
    caption = "References: the nearest known triples of the relation"
    return f"<table><caption>{caption}</caption><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def html(explanation: Explanation) -> str:
    """The picture, the triples that the answer rests on, and the references as a table."""
    parts = ", ".join(f"{SYMBOLS[name]} {value:.4f}" for name, value in explanation.parts.items())
    head = f"<p><b>{escape(_sentence(explanation, explanation.triple))}</b><br>{escape(explanation.formula)}: {explanation.score:.4f} ({parts})</p>"
    paths = "".join(f"<li>{path.weight:.2f} {escape(str(path))}</li>" for path in explanation.paths)
    listed = f"<details><summary>Paths as text</summary><ol>{paths}</ol></details>" if paths else ""
    return (
        f'<div class="vlp-explanation">{head}<div style="overflow-x:auto">{svg(explanation)}</div>'
        f"{listed}{_rests_on(explanation)}{_reference_table(explanation)}</div>"
    )
