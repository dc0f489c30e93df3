#!/usr/bin/env python3
"""Draws recall against latency of the indexes in a report of `dense.py`, as an SVG. Standard library only.

    benches/scale/plot.py experiments/reports/dense.json docs/images/dense-recall.svg
"""

import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 380, 60, 20, 190, 50
SLOW, FAST, LOWEST = 100.0, 0.1, 0.4
GROUPS = (
    ("canonym, f16", "canonym f16, ", " rows compared", "#1b6ca8"),
    ("canonym, int8", "canonym int8, ", " rows compared", "#6aaed6"),
    ("canonym, exact", "canonym f16, exact", "", "#0b3d61"),
    ("faiss, flat", "faiss flat f32", "", "#222222"),
    ("faiss, HNSW", "faiss HNSW", "", "#c0392b"),
    ("faiss, IVF-PQ", "faiss IVF-PQ", "", "#d68910"),
    ("usearch, HNSW", "usearch HNSW", "", "#7d3c98"),
)


def place(milliseconds, recall):
    x = LEFT + (math.log10(milliseconds) - math.log10(FAST)) / (math.log10(SLOW) - math.log10(FAST)) * (WIDTH - LEFT - RIGHT)
    return round(x, 1), round(TOP + (1 - recall) / (1 - LOWEST) * (HEIGHT - TOP - BOTTOM), 1)


def main(report, out):
    rows = json.loads(pathlib.Path(report).read_text())["tables"]["mentions"]
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">',
           "<title>Recall of the nearest name against milliseconds a query</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for recall in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        x, y = place(FAST, recall)
        svg.append(f'<path d="M{x} {y}H{WIDTH - RIGHT}" stroke="#dddddd"/><text x="{x - 8}" y="{y + 4}" text-anchor="end">{recall:.1f}</text>')
    for milliseconds in (0.1, 0.3, 1, 3, 10, 30, 100):
        x, y = place(milliseconds, LOWEST)
        svg.append(f'<path d="M{x} {TOP}V{y}" stroke="#eeeeee"/><text x="{x}" y="{y + 18}" text-anchor="middle">{milliseconds:g}</text>')
    x, y = place(math.sqrt(FAST * SLOW), LOWEST)
    svg.append(f'<text x="{x}" y="{y + 38}" text-anchor="middle">milliseconds a query, one thread</text>')
    svg.append(f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">recall of the nearest name</text>')
    for at, (title, start, end, colour) in enumerate(GROUPS):
        of_group = [row for row in rows if row["title"].startswith(start) and row["title"].endswith(end)]
        if "exact" in start:
            of_group = [row for row in rows if row["title"] == start]
        points = sorted(place(row["median_ms"], row["recall_at_1"]) for row in of_group)
        line = " ".join(f"{x},{y}" for x, y in points)
        svg.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg += [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in points]
        y = TOP + 12 + 24 * at
        svg.append(f'<circle cx="{WIDTH - RIGHT + 22}" cy="{y - 4}" r="5" fill="{colour}"/><text x="{WIDTH - RIGHT + 34}" y="{y}">{title}</text>')
    pathlib.Path(out).write_text("\n".join([*svg, "</svg>"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
