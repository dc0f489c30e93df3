// URLs of pages. Concept ids are in the query, because the server takes a path with a dot for a file.

import type { Span } from './types';

export type ProjectTab = 'queue' | 'review' | 'documents' | 'import' | 'dashboard' | 'jobs' | 'assignment' | 'disagreements' | 'proposals' | 'members';
const TABS: ProjectTab[] = ['queue', 'review', 'documents', 'import', 'dashboard', 'jobs', 'assignment', 'disagreements', 'proposals', 'members'];

export type Route =
  | { page: 'link' }
  | { page: 'terminology'; q: string; id: string | null; checks?: true }
  | { page: 'projects'; isNew?: true }
  | { page: 'project'; project: number; tab: ProjectTab }
  | { page: 'annotate'; project: number; document: number; span?: Span | null }
  | { page: 'focus'; project: number; document: number }
  | { page: 'changes'; project: number; job: number; document: number }
  | { page: 'models'; project: number | null }
  | { page: 'settings' }
  | { page: 'missing'; path: string };

export function parse(address: string): Route {
  const url = new URL(address, 'http://localhost');
  const parts = url.pathname.split('/').filter(Boolean);
  const missing: Route = { page: 'missing', path: url.pathname };
  const [place, first, second, third, fourth] = parts;
  if (place === undefined || (place === 'link' && parts.length === 1)) return { page: 'link' };
  if (place === 'terminology') {
    const checks = url.searchParams.has('checks') ? { checks: true as const } : {};
    return { page: 'terminology', q: url.searchParams.get('q') ?? '', id: url.searchParams.get('id'), ...checks };
  }
  if (place === 'settings') return { page: 'settings' };
  if (place === 'models') return { page: 'models', project: parseId(url.searchParams.get('project') ?? undefined) };
  if (place !== 'projects') return missing;
  if (first === undefined) return { page: 'projects', ...(url.searchParams.has('new') ? { isNew: true as const } : {}) };
  const project = parseId(first);
  if (project === null || parts.length > 5 || (parts.length === 5 && second !== 'changes')) return missing;
  if (second === undefined) return { page: 'project', project, tab: 'queue' };
  if (second === 'annotate') {
    const document = parseId(third);
    const span = parseSpan(url.searchParams.get('span'));
    return document === null ? missing : { page: 'annotate', project, document, ...(span ? { span } : {}) };
  }
  if (second === 'focus') {
    const document = parseId(third);
    return document === null ? missing : { page: 'focus', project, document };
  }
  if (second === 'changes') {
    const [job, document] = [parseId(third), parseId(fourth)];
    return job === null || document === null ? missing : { page: 'changes', project, job, document };
  }
  const tab = TABS.find((one) => one === second);
  return tab && third === undefined ? { page: 'project', project, tab } : missing;
}

export function urlFor(route: Route): string {
  switch (route.page) {
    case 'link':
      return '/';
    case 'terminology': {
      if (route.checks) return '/terminology?checks';
      const query = new URLSearchParams();
      if (route.q) query.set('q', route.q);
      if (route.id) query.set('id', route.id);
      return query.size ? `/terminology?${query}` : '/terminology';
    }
    case 'projects':
      return route.isNew ? '/projects?new' : '/projects';
    case 'project':
      return route.tab === 'queue' ? `/projects/${route.project}` : `/projects/${route.project}/${route.tab}`;
    case 'annotate':
      return `/projects/${route.project}/annotate/${route.document}${route.span ? `?span=${route.span.join('-')}` : ''}`;
    case 'focus':
      return `/projects/${route.project}/focus/${route.document}`;
    case 'changes':
      return `/projects/${route.project}/changes/${route.job}/${route.document}`;
    case 'models':
      return route.project === null ? '/models' : `/models?project=${route.project}`;
    case 'settings':
      return '/settings';
    case 'missing':
      return route.path;
  }
}

/** A text as a URL fragment, which browsers do not send to the server. */
export function textFragment(text: string): string {
  return `#text=${encodeURIComponent(text)}`;
}

export function textFromFragment(hash: string): string | null {
  if (!hash.startsWith('#text=')) return null;
  try {
    return decodeURIComponent(hash.slice(6));
  } catch {
    return null;
  }
}

/** A span as `start-end` in code points. */
function parseSpan(text: string | null): Span | null {
  const [start = null, end = null] = (text ?? '').split('-').map((part) => parseId(part));
  return start !== null && end !== null && start < end ? [start, end] : null;
}

function parseId(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
