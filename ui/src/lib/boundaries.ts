// Editing the boundaries of a mention. Offsets are UTF-16 units.

import { boundaryAfter, boundaryBefore, type Step } from './tokens';
import type { Span } from './types';

export interface Boundaries {
  id: number;
  spans: Span[];
  /** The boundary being moved: 0 is the start of the first part, 1 its end, 2 the start of the second … */
  active: number;
}

export function editBoundaries(id: number, spans: Span[]): Boundaries {
  return { id, spans, active: spans.length * 2 - 1 };
}

export function activateNext(boundaries: Boundaries): Boundaries {
  return { ...boundaries, active: (boundaries.active + 1) % (boundaries.spans.length * 2) };
}

/** Moves the active boundary, unless that would empty its part or overlap the next one. */
export function moveBoundary(text: string, boundaries: Boundaries, direction: 1 | -1, step: Step): Boundaries {
  const part = boundaries.active >> 1;
  const isEnd = boundaries.active % 2 === 1;
  const span = boundaries.spans[part]!;
  const at = isEnd ? span[1] : span[0];
  const to = (direction === 1 ? boundaryAfter : boundaryBefore)(text, at, isEnd ? 'end' : 'start', step);
  const moved: Span = isEnd ? [span[0], to] : [to, span[1]];
  const before = boundaries.spans[part - 1]?.[1] ?? 0;
  const after = boundaries.spans[part + 1]?.[0] ?? text.length;
  if (moved[0] >= moved[1] || moved[0] < before || moved[1] > after) return boundaries;
  return { ...boundaries, spans: boundaries.spans.map((one, row) => (row === part ? moved : one)) };
}

/** Parts in order; those that touch or overlap are merged. */
export function mergeSpans(spans: Span[]): Span[] {
  const found: Span[] = [];
  for (const span of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = found.at(-1);
    if (last && span[0] <= last[1]) last[1] = Math.max(last[1], span[1]);
    else found.push([...span]);
  }
  return found;
}
