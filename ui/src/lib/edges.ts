// Moving the edges of a mention: which edge is held, and where it goes. Offsets are UTF-16 units.

import { nextEdge, previousEdge, type Step } from './tokens';
import type { Span } from './types';

export interface Edges {
  id: number;
  spans: Span[];
  /** The edge held: 0 is the start of the first part, 1 its end, 2 the start of the second … */
  held: number;
}

export function hold(id: number, spans: Span[]): Edges {
  return { id, spans, held: spans.length * 2 - 1 };
}

export function nextHeld(edges: Edges): Edges {
  return { ...edges, held: (edges.held + 1) % (edges.spans.length * 2) };
}

/** Moves the edge held. It stays where it would empty its part or run into the next one. */
export function move(text: string, edges: Edges, direction: 1 | -1, step: Step): Edges {
  const part = edges.held >> 1;
  const isEnd = edges.held % 2 === 1;
  const span = edges.spans[part]!;
  const at = isEnd ? span[1] : span[0];
  const to = (direction === 1 ? nextEdge : previousEdge)(text, at, isEnd ? 'end' : 'start', step);
  const moved: Span = isEnd ? [span[0], to] : [to, span[1]];
  const before = edges.spans[part - 1]?.[1] ?? 0;
  const after = edges.spans[part + 1]?.[0] ?? text.length;
  if (moved[0] >= moved[1] || moved[0] < before || moved[1] > after) return edges;
  return { ...edges, spans: edges.spans.map((one, row) => (row === part ? moved : one)) };
}

/** Parts in order, with those that touch or overlap made one. */
export function joined(spans: Span[]): Span[] {
  const found: Span[] = [];
  for (const span of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = found.at(-1);
    if (last && span[0] <= last[1]) last[1] = Math.max(last[1], span[1]);
    else found.push([...span]);
  }
  return found;
}
