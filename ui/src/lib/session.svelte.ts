// One open document: its state on the server, unsaved decisions on top of it, and the focused mention.

import { api, app, announce, notify, notifyError } from './app.svelte';
import { errorText } from './api';
import { apply, idsOfAdded, isContradicted, isOpen, merge, withIds } from './decisions';
import { formatScore } from './format';
import { uuid } from './ids';
import { OffsetMap } from './offsets';
import type { Entry } from './outbox';
import { isConflict, listen, outbox } from './saving.svelte';
import { inOrder } from './segments';
import type { AnnotatedDocument, Decision, DecisionAnswer, Mark, Span } from './types';

// Negative ids never collide with those of the server, nor with those of another window.
let nextTemporary = -Date.now() * 1000;

export class DocumentSession {
  base = $state.raw<AnnotatedDocument | null>(null);
  private waiting = $state.raw<readonly Entry[]>([]);
  problem = $state<string | null>(null);
  focused = $state<number | null>(null);
  /** Selected text, in UTF-16 units. */
  selected = $state.raw<Span | null>(null);

  /** The last decision after which the focus advanced: it can still be applied to identical mentions. */
  justDecided = $state.raw<Mark | null>(null);
  /** Whether there was a decision since the document was opened. */
  hasDecided = false;
  onDecide: () => void = () => {};

  /** The type that was set last: new mentions without a concept inherit it. */
  lastType = '';

  private readonly names = new Map<string, string>();
  private undone: Entry[] = [];
  private stop: () => void;

  readonly doc = $derived.by(() => {
    if (!this.base) return null;
    const by = app.about?.user?.name ?? 'you';
    const names = (id: string) => this.names.get(id);
    return this.waiting.reduce((doc, entry) => (entry.kind === 'decide' ? apply(doc, entry.decisions, entry.firstId, names, by) : doc), this.base);
  });
  readonly map = $derived(new OffsetMap(this.base?.text ?? ''));
  /** The marks in text order, with spans in UTF-16 units. */
  readonly ordered = $derived.by(() => {
    const marks = (this.doc?.marks ?? []).map((mark) => ({ id: mark.id, spans: mark.spans.map((span) => this.map.spanToUnits(span)), mark }));
    return inOrder(marks);
  });
  readonly mark = $derived(this.ordered.find((one) => one.id === this.focused)?.mark ?? null);
  readonly nOpen = $derived(this.ordered.filter((one) => isOpen(one.mark)).length);
  /** Predictions that contradict annotations. */
  readonly nContradicted = $derived.by(() => {
    const marks = this.ordered.map((one) => one.mark);
    const annotations = marks.filter((mark) => !isOpen(mark));
    return marks.filter((mark) => isContradicted(mark, annotations)).length;
  });

  constructor(
    readonly id: number,
    /** The span to focus first, in code points: the mark there, or else the text itself. */
    private first: Span | null = null,
  ) {
    this.waiting = outbox.of(id);
    this.stop = listen(id, this);
    void this.load();
  }

  close(): void {
    this.stop();
  }

  async load(): Promise<void> {
    try {
      const doc = await api.document(this.id);
      this.base = doc;
      this.problem = null;
      for (const mark of doc.marks) {
        if (mark.concept) this.names.set(mark.concept.id, mark.concept.name);
        for (const one of mark.candidates) this.names.set(one.id, one.name);
      }
      if (this.first) this.focusSpan(this.first);
      else if (this.focused === null || !this.mark) this.focused = this.ordered.find((one) => isOpen(one.mark))?.id ?? this.ordered[0]?.id ?? null;
    } catch (error) {
      if (!this.base) this.problem = errorText(error);
    }
  }

  private focusSpan([start, end]: Span): void {
    this.first = null;
    const wanted = this.map.spanToUnits([start, end]);
    const over = this.ordered.filter((one) => one.spans.some(([from, to]) => from < wanted[1] && wanted[0] < to));
    const same = over.find((one) => one.spans[0]![0] === wanted[0] && one.spans.at(-1)![1] === wanted[1]);
    this.focused = (same ?? over[0])?.id ?? null;
    // No mark has these boundaries: select the text itself.
    if (!same && wanted[1] <= (this.base?.text.length ?? 0)) this.selected = wanted;
  }

  /** Reloads the document if another user or a job has changed it. */
  changedElsewhere(version: number | null): void {
    if (this.base && !this.waiting.length && version !== this.base.version) void this.load();
  }

  /** The mark with exactly the boundaries of the selected text. */
  atSelection(): Mark | null {
    const [start, end] = this.selected ?? [-1, -1];
    return this.ordered.find(({ spans, mark }) => mark.id > 0 && spans.length === 1 && spans[0]![0] === start && spans[0]![1] === end)?.mark ?? null;
  }

  name(id: string, name: string): void {
    this.names.set(id, name);
  }

  decide(...decisions: Decision[]): void {
    if (!this.doc) return;
    const nAdded = decisions.filter((one) => one.kind === 'add').length;
    const firstId = nextTemporary;
    nextTemporary -= nAdded;
    this.undone = [];
    this.justDecided = null;
    this.hasDecided = true;
    this.onDecide();
    const entry = { client_id: uuid(), document: this.id, kind: 'decide' as const, decisions, version: this.base!.version, firstId };
    this.waiting = [...this.waiting, { ...entry, order: 0 }];
    outbox.add(entry);
    this.waiting = outbox.of(this.id);
    if (nAdded) this.focus(firstId);
  }

  /** Decides on the focused mention, then advances to the next unreviewed one if it was unreviewed. */
  decideFocused(make: (mark: Mark) => Decision, what: string): void {
    const mark = this.mark;
    if (!mark) return;
    const wasOpen = isOpen(mark);
    const next = wasOpen ? this.neighbour(1, true) : null;
    const decision = make(mark);
    const isGone = decision.kind === 'reject' || decision.kind === 'delete';
    const after = next ?? (isGone ? (this.neighbour(1, false) ?? this.neighbour(-1, false)) : mark.id);
    this.decide(decision);
    announce(`${mark.text}: ${what}`);
    if (after !== mark.id || isGone) this.focus(after === mark.id ? null : after);
    const decided = this.doc?.marks.find((one) => one.id === mark.id);
    if (mark.id > 0 && decision.kind !== 'delete') this.justDecided = decided ?? { ...mark, state: 'rejected' };
  }

  undo(): void {
    const entry = outbox.withdraw(this.id);
    if (entry) {
      this.undone.push(entry);
      this.waiting = outbox.of(this.id);
      announce('undone');
      return;
    }
    this.request('undo');
  }

  redo(): void {
    const entry = this.undone.pop();
    if (!entry) return this.request('redo');
    outbox.add({ ...entry, client_id: uuid() });
    this.waiting = outbox.of(this.id);
    announce('redone');
  }

  private request(kind: 'undo' | 'redo'): void {
    outbox.add({ client_id: uuid(), document: this.id, kind, decisions: [], version: null, firstId: 0 });
    this.waiting = outbox.of(this.id);
  }

  acknowledged(entry: Entry, answer: DecisionAnswer): void {
    if (!this.base) {
      this.waiting = outbox.of(this.id);
      return void this.load();
    }
    const known = new Set(this.base.marks.map((mark) => mark.id));
    const ids = idsOfAdded(entry.decisions, entry.firstId, answer, known);
    if (ids.size) {
      outbox.rewrite(this.id, (other) => ({ ...other, decisions: other.decisions.map((one) => withIds(one, ids)) }));
      this.undone = this.undone.map((other) => ({ ...other, decisions: other.decisions.map((one) => withIds(one, ids)) }));
    }
    let base = merge(this.base, answer);
    for (const one of entry.decisions) if (one.kind === 'finish') base = { ...base, is_finished: one.value };
    this.base = base;
    this.waiting = outbox.of(this.id);
    if (this.focused !== null && ids.has(this.focused)) this.focused = ids.get(this.focused)!;
    if (entry.kind !== 'decide') {
      announce(entry.kind === 'undo' ? 'undone' : 'redone');
      const shown = answer.marks.find((mark) => this.ordered.some((one) => one.id === mark.id));
      if (shown) this.focused = shown.id;
      // The answer does not say whether the document is finished.
      if (!this.waiting.length) void this.load();
    }
  }

  refused(entry: Entry, error: unknown): void {
    this.waiting = outbox.of(this.id);
    void this.load();
    if (entry.kind !== 'decide') return void notify(errorText(error));
    if (!isConflict(error)) return notifyError(error, 'This decision was not saved; all others were.');
    notify(`${errorText(error)} Your decision was not saved; the document shows theirs.`, 'error', {
      label: 'Overwrite',
      run: () => {
        // Overwrites the version shown, not a later one.
        outbox.add({ ...entry, client_id: uuid(), version: this.base?.version ?? entry.version });
        this.waiting = outbox.of(this.id);
      },
    });
  }

  focus(id: number | null): void {
    this.focused = id;
    this.selected = null;
    this.justDecided = null;
    const mark = this.mark;
    if (!mark) return;
    const row = this.ordered.findIndex((one) => one.id === id) + 1;
    announce(`${mark.text}, ${describeMark(mark)}, ${row} of ${this.ordered.length}`);
  }

  /** The next or previous mention, of the unreviewed ones or of all, wrapping around. */
  neighbour(step: 1 | -1, openOnly: boolean): number | null {
    const all = this.ordered;
    const here = all.findIndex((one) => one.id === this.focused);
    for (let moved = 1; moved <= all.length; moved++) {
      const row = (((here < 0 && step < 0 ? 0 : here) + step * moved) % all.length + all.length) % all.length;
      const one = all[row]!;
      if (one.id !== this.focused && (!openOnly || isOpen(one.mark))) return one.id;
    }
    return null;
  }
}

/** The source of a mark; annotations of others have their name. */
export function sourceOf(mark: Mark): string {
  if (mark.source !== 'USER') return mark.source === 'GOLD' ? 'gold' : 'predicted';
  return mark.by && mark.by !== (app.about?.user?.name ?? mark.by) ? `by ${mark.by}` : 'yours';
}

/** A mark in words: source, concept, flags. */
export function describeMark(mark: Mark): string {
  if (mark.state === 'rejected') return 'rejected';
  const source = mark.source === 'PRED' && mark.state === 'open' ? `predicted ${formatScore(mark.score)}` : sourceOf(mark);
  const concept = mark.concept ? mark.concept.name : mark.is_nil ? 'no matching concept' : 'not linked';
  return [source, concept, ...mark.contexts, mark.is_unsure ? 'unsure' : '', mark.disagrees.length ? 'conflicts with another annotation' : ''].filter(Boolean).join(', ');
}

/** The class names of a mark. */
export function markClasses(mark: Mark): string {
  const names = [mark.source.toLowerCase()];
  if (mark.is_unsure) names.push('unsure');
  if (mark.is_nil) names.push('nil');
  if (mark.disagrees.length) names.push('disagrees');
  return names.join(' ');
}
