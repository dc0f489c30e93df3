// Conversion of offsets, here and nowhere else: the server counts code points, the browser UTF-16 units.

import type { Span } from './types';

/** Converts offsets of one text between code points and UTF-16 units. */
export class OffsetMap {
  /** The offsets of low surrogates in UTF-16 units, ascending. */
  private readonly seconds: number[] = [];
  readonly nUnits: number;
  readonly nPoints: number;

  constructor(text: string) {
    for (let unit = 0; unit + 1 < text.length; unit++) {
      const code = text.charCodeAt(unit);
      if (code < 0xd800 || code > 0xdbff) continue;
      const next = text.charCodeAt(unit + 1);
      if (next >= 0xdc00 && next <= 0xdfff) this.seconds.push(++unit);
    }
    this.nUnits = text.length;
    this.nPoints = text.length - this.seconds.length;
  }

  /** UTF-16 units to code points. An offset inside a surrogate pair is rounded down. */
  toPoints(unit: number): number {
    const bounded = Math.max(0, Math.min(unit, this.nUnits));
    const n = countBelow(this.seconds, (at) => at < bounded);
    return this.seconds[n] === bounded ? bounded - n - 1 : bounded - n;
  }

  /** Code points to UTF-16 units. */
  toUnits(point: number): number {
    const bounded = Math.max(0, Math.min(point, this.nPoints));
    // The n-th pair begins `seconds[n] - 1` units in, at code point `seconds[n] - 1 - n`.
    return bounded + countBelow(this.seconds, (at, n) => at - 1 - n < bounded);
  }

  spanToPoints(span: Span): Span {
    return [this.toPoints(span[0]), this.toPoints(span[1])];
  }

  spanToUnits(span: Span): Span {
    return [this.toUnits(span[0]), this.toUnits(span[1])];
  }
}

/** The number of leading items that satisfy a monotone predicate. */
function countBelow(items: number[], accepts: (item: number, row: number) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (accepts(items[middle]!, middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The text of spans in code points; the parts of a discontinuous mention are joined by a space. */
export function textOf(text: string, map: OffsetMap, spans: Span[]): string {
  return spans.map((span) => text.slice(map.toUnits(span[0]), map.toUnits(span[1]))).join(' ');
}
