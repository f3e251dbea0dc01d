"""Small charts as SVG text, for HTML pages: no script, no style sheet, no network.

Text and axes have the color of the text around them (``currentColor``), so that a chart can be
read on a light and on a dark page. Everything that is written is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

MARGIN_LEFT, MARGIN_BOTTOM, MARGIN_TOP, MARGIN_RIGHT = 62, 40, 10, 14
MAX_TICKS = 5


class SvgChart:
    """A chart with two linear axes.

    Parameters
    ----------
    width, height : int
        In pixels.
    x_limits, y_limits : tuple of float
        Smallest and largest number of each axis.
    title : str
        What the chart shows, for screen readers.

    Examples
    --------
    >>> chart = SvgChart(300, 200, (0, 4), (0, 1), title="scores")
    >>> chart.add_points([(1, 0.5, "<first>")], "#0072B2")
    >>> "&lt;first&gt;" in chart.to_svg("trial", "score")
    True
    """

    def __init__(
        self,
        width: int,
        height: int,
        x_limits: tuple[float, float],
        y_limits: tuple[float, float],
        *,
        title: str,
    ):
        self._width, self._height, self._title = width, height, title
        self._x, self._y = _widen(x_limits), _widen(y_limits)
        self._shapes: list[str] = []

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point. Points outside are moved to the edge."""
        share_x = (min(max(x, self._x[0]), self._x[1]) - self._x[0]) / (self._x[1] - self._x[0])
        share_y = (min(max(y, self._y[0]), self._y[1]) - self._y[0]) / (self._y[1] - self._y[0])
        inner_width = self._width - MARGIN_LEFT - MARGIN_RIGHT
        inner_height = self._height - MARGIN_TOP - MARGIN_BOTTOM
        return (
            round(MARGIN_LEFT + share_x * inner_width, 1),
            round(MARGIN_TOP + (1 - share_y) * inner_height, 1),
        )

    def add_points(
        self,
        points: Iterable[tuple[float, float, str]],
        color: str,
        radius: float = 3.5,
        link: str = "",
    ) -> None:
        """Add circles: x, y and a text that is shown when the pointer is over them.

        With a link, they lead there.
        """
        for x, y, text in points:
            cx, cy = self._place(x, y)
            circle = (
                f'<circle cx="{cx}" cy="{cy}" r="{radius:.1f}" fill="{escape(color)}" '
                f'fill-opacity="0.85"><title>{escape(text)}</title></circle>'
            )
            self._shapes.append(f'<a href="{escape(link)}">{circle}</a>' if link else circle)

    def add_steps(self, points: Sequence[tuple[float, float]]) -> None:
        """Add a line of horizontal steps through points, in the color of the text."""
        places = [self._place(x, y) for x, y in points]
        if not places:
            return
        path = f"M{places[0][0]} {places[0][1]}"
        path += "".join(f"H{x}V{y}" for x, y in places[1:])
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        )

    def to_svg(
        self,
        x_label: str,
        y_label: str,
        x_ticks: Sequence[tuple[float, str]] | None = None,
    ) -> str:
        """The chart as an ``<svg>`` element."""
        left, bottom = self._place(self._x[0], self._y[0])
        right, top = self._place(self._x[1], self._y[1])
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {self._width} {self._height}" width="{self._width}" '
            f'height="{self._height}" font-family="sans-serif" font-size="11" '
            f'fill="currentColor" style="max-width:100%;height:auto">',
            f"<title>{escape(self._title)}</title>",
            f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="currentColor" '
            'stroke-opacity="0.6"/>',
        ]
        for value, text in x_ticks or _ticks(*self._x):
            x, _ = self._place(value, self._y[0])
            # A long text under the last tick would be cut off.
            anchor = "end" if x > right - 20 and len(text) > 6 else "middle"
            parts.append(_text(x + MARGIN_RIGHT * (anchor == "end"), bottom + 14, text, anchor))
        for value, text in _ticks(*self._y):
            _, y = self._place(self._x[0], value)
            parts.append(
                f'<path d="M{left} {y}H{right}" stroke="currentColor" stroke-opacity="0.12"/>'
            )
            parts.append(_text(left - 5, y + 4, text, "end"))
        middle = (top + bottom) / 2
        parts.append(_text((left + right) / 2, self._height - 7, x_label, "middle"))
        parts.append(
            f'<text transform="rotate(-90 12 {middle})" x="12" y="{middle}" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )
        return "".join([*parts, *self._shapes, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _widen(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits that are finite and apart."""
    low, high = (float(each) for each in limits)
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0
    if high > low:
        return low, high
    margin = 0.05 * abs(low) or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers between two limits, and their texts.

    >>> _ticks(0.0, 1.0)
    [(0.0, '0'), (0.5, '0.5'), (1.0, '1')]
    """
    power = 10.0 ** math.floor(math.log10((high - low) / MAX_TICKS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if (high - low) / (m * power) < MAX_TICKS)
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(k * step, f"{k * step:.6g}") for k in numbers]
