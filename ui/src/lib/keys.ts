// The keyboard map of the annotation page: one table for handling keys and for telling them.

export type Action =
  | 'next-open' | 'previous-open' | 'next-mark' | 'previous-mark' | 'next-document' | 'previous-document'
  | 'accept' | 'reject' | 'delete' | 'span' | 'search' | 'pick' | 'pick-first' | 'none' | 'unsure' | 'comment' | 'alike'
  | 'undo' | 'redo' | 'finish' | 'history' | 'part' | 'help' | 'leave';

export interface KeyRow {
  keys: string[];
  action: Action;
  what: string;
  group: 'Move' | 'Decide' | 'Concept' | 'Document';
}

export const KEYMAP: KeyRow[] = [
  { keys: ['j'], action: 'next-open', what: 'next open mention', group: 'Move' },
  { keys: ['k'], action: 'previous-open', what: 'previous open mention', group: 'Move' },
  { keys: [']'], action: 'next-mark', what: 'next mention, decided or not', group: 'Move' },
  { keys: ['['], action: 'previous-mark', what: 'previous mention, decided or not', group: 'Move' },
  { keys: ['J'], action: 'next-document', what: 'next document of the queue', group: 'Move' },
  { keys: ['K'], action: 'previous-document', what: 'document before', group: 'Move' },
  { keys: ['a'], action: 'accept', what: 'accept', group: 'Decide' },
  { keys: ['x'], action: 'reject', what: 'reject', group: 'Decide' },
  { keys: ['n'], action: 'none', what: 'no concept fits', group: 'Decide' },
  { keys: ['s'], action: 'unsure', what: 'unsure, on or off', group: 'Decide' },
  { keys: ['e'], action: 'span', what: 'move the edges: ← → by token, with Shift by character, Tab the other edge', group: 'Decide' },
  { keys: ['+'], action: 'part', what: 'add the selected text to the mention as a further part', group: 'Decide' },
  { keys: ['Delete', 'Backspace'], action: 'delete', what: 'delete a mention of your own', group: 'Decide' },
  { keys: ['g'], action: 'alike', what: 'apply the decision to identical mentions, after a preview', group: 'Decide' },
  { keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], action: 'pick', what: 'take candidate 1 to 9', group: 'Concept' },
  { keys: ['Enter'], action: 'pick-first', what: 'take the candidate that is marked', group: 'Concept' },
  { keys: ['/'], action: 'search', what: 'search a concept', group: 'Concept' },
  { keys: ['c'], action: 'comment', what: 'comment', group: 'Document' },
  { keys: ['u'], action: 'undo', what: 'undo', group: 'Document' },
  { keys: ['U'], action: 'redo', what: 'redo', group: 'Document' },
  { keys: ['h'], action: 'history', what: 'history', group: 'Document' },
  { keys: ['f'], action: 'finish', what: 'finish the document and go to the next; asks before open predictions are accepted', group: 'Document' },
  { keys: ['?'], action: 'help', what: 'this map', group: 'Document' },
  { keys: ['Escape'], action: 'leave', what: 'close, give up the selection', group: 'Document' },
];

export interface KeyPress {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  /** Whether the keys are typed into a field. */
  isTyping: boolean;
  /** Whether single letters, digits and signs are keys at all; the others always are. */
  hasLetters?: boolean;
}

/** What a key means, and which candidate it takes (from 0). */
export function actionOf(press: KeyPress): { action: Action; row: number } | null {
  // Ctrl+Z is what hands know; other combinations belong to the browser.
  if ((press.ctrlKey || press.metaKey) && !press.isTyping && press.key.toLowerCase() === 'z') {
    return { action: press.key === 'Z' ? 'redo' : 'undo', row: 0 };
  }
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  if (press.isTyping && press.key !== 'Escape') return null;
  if (press.hasLetters === false && [...press.key].length === 1) return null;
  const found = KEYMAP.find((row) => row.keys.includes(press.key));
  if (!found) return null;
  return { action: found.action, row: found.action === 'pick' ? Number(press.key) - 1 : 0 };
}

/** How the keys of a row are printed. */
export function printed(row: KeyRow): string[] {
  if (row.action === 'pick') return ['1', '…', '9'];
  const names: Record<string, string> = { Escape: 'Esc', Delete: 'Del', Backspace: '⌫' };
  return row.keys.map((key) => names[key] ?? key);
}

/** Whether an element takes typed text. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'file'].includes(target.type);
}
