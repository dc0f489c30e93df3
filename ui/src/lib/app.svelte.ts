// State that all pages share: server, user, route, toasts, theme.

import { Api, ApiError, errorText } from './api';
import { keymapWith, type Action, type KeyChanges } from './keys';
import { urlFor, parse, type Route } from './routes';
import type { About } from './types';

export type Theme = 'system' | 'light' | 'dark';

export interface Message {
  id: number;
  text: string;
  kind: 'info' | 'error';
  action: { label: string; run: () => void } | null;
  /** A message replaces the former one about the same. */
  about: string | null;
}

export const api = new Api();

export const app = $state({
  about: null as About | null,
  problem: null as string | null,
  needsLogin: false,
  route: parse(location.href) as Route,
  /** The last project opened, used by pages without a project of their own. */
  project: null as number | null,
  messages: [] as Message[],
  /** The project whose export is open. */
  exported: null as number | null,
  /** The subject of the page, for the window title. */
  title: '',
  /** Text for screen readers. */
  announcement: '',
  theme: readTheme(),
  letterKeys: readLetterKeys(),
  /** The keyboard shortcuts of the annotation page. */
  keymap: keymapWith(readKeys()),
  /** Runs an action of the current page; `null` where there are none. */
  act: null as ((action: Action) => void) | null,
});

/** Whether the user may import, predict, train and edit projects; annotators may not. */
export const canCurate = (): boolean => app.about?.user?.role !== 'annotator';

/** Whether the user may delete projects. */
export const canAdminister = (): boolean => (app.about?.user?.role ?? 'admin') === 'admin';

api.onLogin = () => (app.needsLogin = true);

export async function loadAbout(): Promise<void> {
  app.problem = null;
  try {
    app.about = await api.about();
    app.needsLogin = app.about.needs_login && !app.about.user;
  } catch (error) {
    if (!(error instanceof ApiError && error.kind === 'login')) app.problem = errorText(error);
  }
}

let hierarchy: Promise<boolean> | null = null;

/** Whether the terminology has a hierarchy; without an answer, it is assumed. */
export function hasHierarchy(): Promise<boolean> {
  hierarchy ??= api.tree().then(
    ({ concepts }) => concepts.length > 0,
    () => ((hierarchy = null), true),
  );
  return hierarchy;
}

/** Takes an annotator from the start page to the documents that wait for them; everybody else, and who comes with a text, stays. */
export async function openAssigned(): Promise<void> {
  const user = app.about?.user;
  if (user?.role !== 'annotator' || app.route.page !== 'link' || location.hash) return;
  try {
    const projects = (await api.projects()).projects.filter((one) => !one.is_archived);
    const own = projects.filter((one) => one.annotator === user.name);
    const project = own.find((one) => one.n_finished < one.n_documents) ?? own[0] ?? (projects.length === 1 ? projects[0] : null);
    if (project && app.route.page === 'link') navigate({ page: 'project', project: project.id, tab: 'queue' }, 'replace');
  } catch {
    // Without the list, the start page is shown.
  }
}

export function navigate(route: Route, how: 'push' | 'replace' = 'push'): void {
  const to = urlFor(route);
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  syncRoute();
}

export function syncRoute(): void {
  app.route = parse(location.href);
  if ('project' in app.route && app.route.project !== null) app.project = app.route.project;
}

/** Follows a link within the application without reloading the page. */
export function followLink(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || link.pathname.startsWith('/api/') || link.getAttribute('href')?.startsWith('#')) return;
  event.preventDefault();
  history.pushState(null, '', link.href);
  syncRoute();
  const main = document.querySelector<HTMLElement>('main');
  main?.scrollTo(0, 0);
  // If the link is no longer on the page, move the focus to the main content.
  setTimeout(() => document.activeElement === document.body && main?.focus());
}

let nextMessage = 1;

/** Shows a toast and returns its id. One about the same as a former one replaces it. */
export function notify(text: string, kind: Message['kind'] = 'info', action: Message['action'] = null, about: string | null = null): number {
  const id = nextMessage++;
  const others = about === null ? app.messages : app.messages.filter((one) => one.about !== about);
  app.messages = [...others.slice(-2), { id, text, kind, action, about }];
  if (kind === 'info') setTimeout(() => dismiss(id), action ? 12_000 : 5_000);
  return id;
}

/** Shows an error, with a note about what was kept. */
export function notifyError(error: unknown, note = ''): void {
  notify(note ? `${errorText(error)} ${note}` : errorText(error), 'error');
}

export function dismiss(id: number): void {
  app.messages = app.messages.filter((message) => message.id !== id);
}

/** Announces a text to screen readers, even if it is the same as before. */
export function announce(text: string): void {
  app.announcement = app.announcement === text ? `${text}\u00a0` : text;
}

/** Turns the single-key shortcuts of the annotation page on or off; speech input types letters by accident. */
export function setLetterKeys(on: boolean): void {
  app.letterKeys = on;
  try {
    if (on) localStorage.removeItem('canonym.letters');
    else localStorage.setItem('canonym.letters', 'off');
  } catch {
    // Without storage, the setting lasts until the page is closed.
  }
}

function readLetterKeys(): boolean {
  try {
    return localStorage.getItem('canonym.letters') !== 'off';
  } catch {
    return true;
  }
}

/** Changes the key of an action. */
export function setKey(action: Action, key: string): void {
  storeKeys({ ...readKeys(), [action]: key });
}

export function resetKeys(): void {
  storeKeys({});
}

function storeKeys(changes: KeyChanges): void {
  app.keymap = keymapWith(changes);
  try {
    if (Object.keys(changes).length) localStorage.setItem('canonym.keys', JSON.stringify(changes));
    else localStorage.removeItem('canonym.keys');
  } catch {
    // Without storage, the setting lasts until the page is closed.
  }
}

function readKeys(): KeyChanges {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem('canonym.keys') ?? '{}');
    const changes = Object.entries(stored ?? {}).filter(([, key]) => typeof key === 'string');
    return Object.fromEntries(changes) as KeyChanges;
  } catch {
    return {};
  }
}

export function setTheme(theme: Theme): void {
  app.theme = theme;
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('canonym.theme');
    else localStorage.setItem('canonym.theme', theme);
  } catch {
    // Without storage, the setting lasts until the page is closed.
  }
}

/** Whether an option is on in this browser. */
export function remembers(name: string): boolean {
  try {
    return localStorage.getItem(name) === 'on';
  } catch {
    return false;
  }
}

/** Turns an option on or off in this browser. */
export function remember(name: string, on: boolean): void {
  try {
    if (on) localStorage.setItem(name, 'on');
    else localStorage.removeItem(name);
  } catch {
    // Without storage, the option lasts until the page is closed.
  }
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${what} copied.`);
  } catch {
    notify('Clipboard access is blocked. Open this page over HTTPS or on 127.0.0.1.', 'error');
  }
}

function readTheme(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}
