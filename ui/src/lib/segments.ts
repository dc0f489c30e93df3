// Splits a text into runs that have the same marks, and groups runs into blocks of lines.
// Marks may nest, overlap and be discontinuous. Offsets are UTF-16 units.

import type { Span } from './types';

export interface Placed {
  id: number;
  spans: Span[];
}

export interface RunMark {
  id: number;
  /** The depth of its underline, from 0. */
  level: number;
  /** Whether a part of the mark begins or ends with this run. */
  begins: boolean;
  ends: boolean;
}

export interface Run {
  start: number;
  end: number;
  /** Deepest underline first. */
  marks: RunMark[];
}

export interface Block {
  start: number;
  end: number;
  kind: string;
  runs: Run[];
}

/** The level of every mark: overlapping marks have different levels, and shorter ones lie closer to the text. */
export function levels(marks: Placed[]): Map<number, number> {
  const length = (mark: Placed) => mark.spans.reduce((sum, [start, end]) => sum + end - start, 0);
  const found = new Map<number, number>();
  const done: { spans: Span[]; level: number }[] = [];
  const order = [...marks].sort((a, b) => length(a) - length(b) || first(a) - first(b) || a.id - b.id);
  for (const mark of order) {
    const taken = new Set(done.filter((other) => overlap(other.spans, mark.spans)).map((other) => other.level));
    let level = 0;
    while (taken.has(level)) level++;
    found.set(mark.id, level);
    done.push({ spans: mark.spans, level });
  }
  return found;
}

/** Runs from `start` to `end` without gaps. */
export function runs(length: number, marks: Placed[], cuts: number[] = []): Run[] {
  const level = levels(marks);
  const opening = new Map<number, number[]>();
  const closing = new Map<number, number[]>();
  const bounds = new Set<number>([0, length, ...cuts.filter((cut) => cut > 0 && cut < length)]);
  for (const mark of marks) {
    for (const [from, to] of mark.spans) {
      const start = Math.max(0, Math.min(from, length));
      const end = Math.max(0, Math.min(to, length));
      if (start >= end) continue;
      push(opening, start, mark.id);
      push(closing, end, mark.id);
      bounds.add(start).add(end);
    }
  }
  const places = [...bounds].sort((a, b) => a - b);
  // Parts of one mark may touch or overlap, so open parts are counted.
  const open = new Map<number, number>();
  const found: Run[] = [];
  for (let row = 0; row + 1 < places.length; row++) {
    const start = places[row]!;
    const end = places[row + 1]!;
    for (const id of closing.get(start) ?? []) {
      const left = open.get(id)! - 1;
      if (left === 0) open.delete(id);
      else open.set(id, left);
    }
    for (const id of opening.get(start) ?? []) open.set(id, (open.get(id) ?? 0) + 1);
    const here = [...open.keys()].map((id) => ({
      id,
      level: level.get(id)!,
      begins: opening.get(start)?.includes(id) ?? false,
      ends: closing.get(end)?.includes(id) ?? false,
    }));
    here.sort((a, b) => b.level - a.level || a.id - b.id);
    found.push({ start, end, marks: here });
  }
  return found;
}

/** Blocks of whole lines, also split at sections, with their runs. A block ends with its line break. */
export function blocks(text: string, marks: Placed[], sections: { kind: string; start: number; end: number }[] = []): Block[] {
  const cuts = new Set<number>();
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) cuts.add(at + 1);
  for (const section of sections) cuts.add(section.start);
  const ends = [...cuts].filter((cut) => cut > 0 && cut < text.length).sort((a, b) => a - b);
  ends.push(text.length);
  const all = runs(text.length, marks, ends);
  const found: Block[] = [];
  let start = 0;
  let row = 0;
  for (const end of ends) {
    const inside: Run[] = [];
    while (row < all.length && all[row]!.start < end) inside.push(all[row++]!);
    const kind = sections.find((section) => section.start <= start && start < section.end)?.kind ?? 'text';
    if (end > start) found.push({ start, end, kind, runs: inside });
    start = end;
  }
  return found;
}

/** The marks at an offset, the shortest first: what a click there selects. */
export function marksAt(marks: Placed[], unit: number): number[] {
  const here = marks.filter((mark) => mark.spans.some(([start, end]) => start <= unit && unit < end));
  const length = (mark: Placed) => mark.spans.reduce((sum, [start, end]) => sum + end - start, 0);
  return here.sort((a, b) => length(a) - length(b) || a.id - b.id).map((mark) => mark.id);
}

/** Marks in text order, longer first if they begin together. */
export function inOrder<T extends Placed>(marks: T[]): T[] {
  return [...marks].sort((a, b) => first(a) - first(b) || last(b) - last(a) || a.id - b.id);
}

function first(mark: Placed): number {
  return mark.spans[0]?.[0] ?? 0;
}

function last(mark: Placed): number {
  return mark.spans[mark.spans.length - 1]?.[1] ?? 0;
}

function overlap(a: Span[], b: Span[]): boolean {
  return a.some(([start, end]) => b.some(([from, to]) => start < to && from < end));
}

function push(map: Map<number, number[]>, key: number, value: number): void {
  const there = map.get(key);
  if (there) there.push(value);
  else map.set(key, [value]);
}
