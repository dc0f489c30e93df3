"""Plots held-out accuracy over CPU time of training: `python3 benches/accuracy_over_time.py OUT.svg LABEL=FOLDER=SECONDS…`.

FOLDER is an output of `canonym train`, whose `log.jsonl` has the scores. SECONDS are CPU seconds per step as measured by
`benches/epoch_cost.py`, so neither other load on the machine nor the evaluations count. Also prints the points as a table.
"""

import json
import os
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 56, 44, 16, 24
COLOURS = ["#0f766e", "#b45309", "#6d28d9"]


def read(folder, seconds):
    """Minutes and accuracy in percent at each evaluation."""
    rounds = [json.loads(line) for line in open(os.path.join(folder, "log.jsonl"))]
    return [(one["step"] * seconds / 60, 100 * one["score"]) for one in rounds if one.get("score") is not None]


def ticks(least, most, step):
    at = -(-least // step) * step
    while at <= most:
        yield at
        at += step


def draw(runs):
    points = [point for _, points in runs for point in points]
    most_x = max(x for x, _ in points)
    least_y, most_y = min(y for _, y in points) - 1, max(y for _, y in points) + 1
    place_x = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * x / most_x
    place_y = lambda y: TOP + (HEIGHT - TOP - BOTTOM) * (most_y - y) / (most_y - least_y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    for y in ticks(least_y, most_y, 2):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place_y(y):.1f}" y2="{place_y(y):.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{place_y(y) + 4:.1f}" text-anchor="end" fill="#374151">{y:.0f}</text>')
    for x in ticks(0, most_x, 5):
        parts.append(f'<text x="{place_x(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#374151">{x:.0f}</text>')
    label = "CPU minutes of training; P@1 on held-out documents, in percent"
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#374151">{label}</text>')
    for row, ((name, points), colour) in enumerate(zip(runs, COLOURS)):
        line = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = HEIGHT - BOTTOM - 14 - 18 * row
        parts.append(f'<text x="{WIDTH - RIGHT - 8}" y="{y}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join(parts + ["</svg>", ""])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    runs = []
    for run in sys.argv[2:]:
        name, folder, seconds = run.rsplit("=", 2)
        runs.append((name, read(folder, float(seconds))))
    open(sys.argv[1], "w").write(draw(runs))
    for name, points in runs:
        print(f"{name}: " + ", ".join(f"{x:.1f} min {y:.1f}" for x, y in points))


main()
