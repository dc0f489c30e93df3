// Scales, ticks and paths of the charts.

/** About `n` round axis ticks that cover a range. Counts have integer ticks only. */
export function ticks(low: number, high: number, n = 4, isCount = false): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= raw - 1e-12 && (!isCount || Number.isInteger(one))) ?? 1;
  const first = Math.floor(low / step + 1e-9);
  const found: number[] = [];
  for (let row = first; ; row++) {
    found.push(Number((row * step).toPrecision(12)));
    if (row * step >= high - step * 1e-9) return found;
  }
}

export interface Scale {
  (value: number): number;
}

export function scale([low, high]: [number, number], [from, to]: [number, number]): Scale {
  const width = high - low || 1;
  return (value) => from + ((value - low) / width) * (to - from);
}

/** The `d` of a path through points. */
export function line(points: [number, number][]): string {
  return points.map(([x, y], row) => `${row ? 'L' : 'M'}${round(x)} ${round(y)}`).join('');
}

/** The running median of `n` points. */
export function runningMedian(points: [number, number][], n: number): [number, number][] {
  const half = Math.floor(n / 2);
  return points.map(([x], row) => {
    const around = points.slice(Math.max(0, row - half), row + half + 1).map(([, y]) => y);
    around.sort((a, b) => a - b);
    return [x, around[Math.floor(around.length / 2)]!];
  });
}

/** The label of an axis tick. */
export function label(value: number): string {
  if (Number.isInteger(value)) return Math.abs(value) >= 10_000 ? `${value / 1000}k` : String(value);
  return String(Number(value.toPrecision(3))).replace(/^(-?)0\./, '$1.');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
