"""Records as DataFrames, as HTML and as text."""

from __future__ import annotations

import html
import math
from typing import Any, Iterable, Mapping, Optional, Sequence


def frame_of(records: Iterable[Mapping[str, Any]], columns: Optional[Sequence[str]] = None) -> Any:
    """A pandas DataFrame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install pandas, or use to_dict()") from error
    return pandas.DataFrame([dict(record) for record in records], columns=columns)


def number(value: float) -> Optional[float]:
    """As JSON has it: None for NaN and infinity."""
    return value if math.isfinite(value) else None


def shown(value: Any) -> str:
    """A value for people."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def html_table(records: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """A table in the style of the page that it is shown on."""
    if not records:
        return f"<p>{html.escape(caption)}</p>" if caption else ""
    titles = "".join(f'<th scope="col">{html.escape(key)}</th>' for key in records[0])
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(shown(value))}</td>" for value in record.values()) + "</tr>" for record in records
    )
    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{head}<thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def text_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Columns of text; numbers are right-aligned."""
    if not records:
        return ""
    cells = [list(records[0])] + [[shown(value) for value in record.values()] for record in records]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    right = [not isinstance(value, str) for value in records[0].values()]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" if flush else f"{cell:<{width}}" for cell, width, flush in zip(row, widths, right)).rstrip()
        for row in cells
    )
