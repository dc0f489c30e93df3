// The keyboard shortcuts of the annotation page: one table to handle them and to show them.

export type Action =
  | 'next-open' | 'previous-open' | 'next-mark' | 'previous-mark' | 'next-document' | 'previous-document'
  | 'accept' | 'reject' | 'delete' | 'boundaries' | 'search' | 'pick' | 'pick-first' | 'no-concept' | 'unsure' | 'comment' | 'apply-to-identical'
  | 'undo' | 'redo' | 'finish' | 'history' | 'add-part' | 'guideline' | 'focus-mode' | 'help' | 'escape'
  | 'type' | 'browse' | 'propose' | 'negated' | 'possible' | 'historical' | 'hypothetical' | 'family';

export interface KeyRow {
  keys: string[];
  action: Action;
  what: string;
  group: 'Navigate' | 'Review' | 'Concept' | 'Context' | 'Document';
}

export const KEYMAP: KeyRow[] = [
  { keys: ['j'], action: 'next-open', what: 'next unreviewed mention', group: 'Navigate' },
  { keys: ['k'], action: 'previous-open', what: 'previous unreviewed mention', group: 'Navigate' },
  { keys: [']'], action: 'next-mark', what: 'next mention', group: 'Navigate' },
  { keys: ['['], action: 'previous-mark', what: 'previous mention', group: 'Navigate' },
  { keys: ['J'], action: 'next-document', what: 'next document in the queue', group: 'Navigate' },
  { keys: ['K'], action: 'previous-document', what: 'previous document in the queue', group: 'Navigate' },
  { keys: ['a'], action: 'accept', what: 'accept', group: 'Review' },
  { keys: ['x'], action: 'reject', what: 'reject', group: 'Review' },
  { keys: ['n'], action: 'no-concept', what: 'no matching concept (NIL)', group: 'Review' },
  { keys: ['s'], action: 'unsure', what: 'toggle unsure', group: 'Review' },
  { keys: ['e'], action: 'boundaries', what: 'change the boundaries: ← → by token, with Shift by character, Tab for the other boundary', group: 'Review' },
  { keys: ['+'], action: 'add-part', what: 'add the selected text to the mention (discontinuous mention)', group: 'Review' },
  { keys: ['Delete', 'Backspace'], action: 'delete', what: 'delete your own mention', group: 'Review' },
  { keys: ['g'], action: 'apply-to-identical', what: 'apply the decision to identical mentions, with a preview', group: 'Review' },
  { keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], action: 'pick', what: 'pick candidate 1 to 9', group: 'Concept' },
  { keys: ['Enter'], action: 'pick-first', what: 'pick the highlighted candidate', group: 'Concept' },
  { keys: ['/'], action: 'search', what: 'search concepts', group: 'Concept' },
  { keys: ['b'], action: 'browse', what: 'browse the terminology', group: 'Concept' },
  { keys: ['p'], action: 'propose', what: 'propose a concept or synonym', group: 'Concept' },
  { keys: ['t'], action: 'type', what: 'set the type; new mentions without a concept inherit it', group: 'Concept' },
  { keys: ['N'], action: 'negated', what: 'negated', group: 'Context' },
  { keys: ['P'], action: 'possible', what: 'possible', group: 'Context' },
  { keys: ['H'], action: 'historical', what: 'historical', group: 'Context' },
  { keys: ['Y'], action: 'hypothetical', what: 'hypothetical', group: 'Context' },
  { keys: ['F'], action: 'family', what: 'about a relative (family)', group: 'Context' },
  { keys: ['c'], action: 'comment', what: 'comment', group: 'Document' },
  { keys: ['u'], action: 'undo', what: 'undo', group: 'Document' },
  { keys: ['U'], action: 'redo', what: 'redo', group: 'Document' },
  { keys: ['h'], action: 'history', what: 'history', group: 'Document' },
  { keys: ['f'], action: 'finish', what: 'finish the document; asks before it accepts unreviewed predictions', group: 'Document' },
  { keys: ['i'], action: 'guideline', what: 'show or hide the guideline', group: 'Document' },
  { keys: ['m'], action: 'focus-mode', what: 'focus mode: one mention at a time', group: 'Document' },
  { keys: ['?'], action: 'help', what: 'keyboard shortcuts', group: 'Document' },
  { keys: ['Escape'], action: 'escape', what: 'close; clear selection', group: 'Document' },
];

/** Actions whose keys cannot be changed. */
export const FIXED_ACTIONS: Action[] = ['pick', 'pick-first', 'escape'];

/** Keys set by the user, by action. */
export type KeyChanges = Partial<Record<Action, string>>;

/** The shortcuts with the keys set by the user; what is no key any more is ignored. */
export function keymapWith(changes: KeyChanges): KeyRow[] {
  return KEYMAP.reduce((map, row) => {
    const key = changes[row.action];
    if (key === undefined || FIXED_ACTIONS.includes(row.action)) return map;
    return map.map((one) => (one.action === row.action ? { ...one, keys: [key] } : one));
  }, KEYMAP);
}

/** Why a key cannot be given to an action; `null` if it can. */
export function refusal(keymap: KeyRow[], action: Action, key: string): string | null {
  if ([...key].length !== 1 && !/^(F([1-9]|1[0-2])|Delete|Backspace|Insert|Home|End|PageUp|PageDown)$/.test(key)) return 'This key is needed to move around; choose another one.';
  if (key === ' ') return 'The space bar scrolls and presses buttons; choose another key.';
  const other = keymap.find((row) => row.action !== action && row.keys.includes(key));
  return other ? `This key is used for “${other.what.split(/[:;,]/)[0]}”; change that one first.` : null;
}

/** The first key of an action as shown. */
export function mainKey(keymap: KeyRow[], action: Action): string {
  const row = keymap.find((one) => one.action === action);
  return row ? printed(row)[0]! : '';
}

export interface KeyPress {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  /** Whether a text field has the focus. */
  isTyping: boolean;
  /** Whether single-character shortcuts are on; the others always are. */
  hasLetters?: boolean;
}

/** The action of a key, and the candidate it picks (from 0). */
export function actionOf(press: KeyPress, keymap: KeyRow[] = KEYMAP): { action: Action; row: number } | null {
  // Ctrl+Z undoes; other combinations belong to the browser.
  if ((press.ctrlKey || press.metaKey) && !press.isTyping && press.key.toLowerCase() === 'z') {
    return { action: press.key === 'Z' ? 'redo' : 'undo', row: 0 };
  }
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  if (press.isTyping && press.key !== 'Escape') return null;
  if (press.hasLetters === false && [...press.key].length === 1) return null;
  const found = keymap.find((row) => row.keys.includes(press.key));
  if (!found) return null;
  return { action: found.action, row: found.action === 'pick' ? Number(press.key) - 1 : 0 };
}

/** The keys of a row as shown. */
export function printed(row: KeyRow): string[] {
  if (row.action === 'pick') return ['1', '…', '9'];
  const names: Record<string, string> = { Escape: 'Esc', Delete: 'Del', Backspace: '⌫' };
  return row.keys.map((key) => names[key] ?? key);
}

/** Whether an element accepts typed text. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'file'].includes(target.type);
}
