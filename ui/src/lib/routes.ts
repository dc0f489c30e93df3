// Addresses of pages and back. Ids of concepts stand in the query, as a path with a dot is taken for a file.

export type ProjectTab = 'queue' | 'documents' | 'import' | 'dashboard' | 'jobs';
const TABS: ProjectTab[] = ['queue', 'documents', 'import', 'dashboard', 'jobs'];

export type Route =
  | { page: 'link' }
  | { page: 'terminology'; q: string; id: string | null }
  | { page: 'projects' }
  | { page: 'project'; project: number; tab: ProjectTab }
  | { page: 'annotate'; project: number; document: number }
  | { page: 'models'; project: number | null }
  | { page: 'settings' }
  | { page: 'missing'; path: string };

export function parse(address: string): Route {
  const url = new URL(address, 'http://localhost');
  const parts = url.pathname.split('/').filter(Boolean);
  const missing: Route = { page: 'missing', path: url.pathname };
  const [place, first, second, third] = parts;
  if (place === undefined || (place === 'link' && parts.length === 1)) return { page: 'link' };
  if (place === 'terminology') return { page: 'terminology', q: url.searchParams.get('q') ?? '', id: url.searchParams.get('id') };
  if (place === 'settings') return { page: 'settings' };
  if (place === 'models') return { page: 'models', project: whole(url.searchParams.get('project') ?? undefined) };
  if (place !== 'projects') return missing;
  if (first === undefined) return { page: 'projects' };
  const project = whole(first);
  if (project === null || parts.length > 4) return missing;
  if (second === undefined) return { page: 'project', project, tab: 'queue' };
  if (second === 'annotate') {
    const document = whole(third);
    return document === null ? missing : { page: 'annotate', project, document };
  }
  const tab = TABS.find((one) => one === second);
  return tab && third === undefined ? { page: 'project', project, tab } : missing;
}

export function address(route: Route): string {
  switch (route.page) {
    case 'link':
      return '/';
    case 'terminology': {
      const query = new URLSearchParams();
      if (route.q) query.set('q', route.q);
      if (route.id) query.set('id', route.id);
      return query.size ? `/terminology?${query}` : '/terminology';
    }
    case 'projects':
      return '/projects';
    case 'project':
      return route.tab === 'queue' ? `/projects/${route.project}` : `/projects/${route.project}/${route.tab}`;
    case 'annotate':
      return `/projects/${route.project}/annotate/${route.document}`;
    case 'models':
      return route.project === null ? '/models' : `/models?project=${route.project}`;
    case 'settings':
      return '/settings';
    case 'missing':
      return route.path;
  }
}

/** A text in the fragment of an address, which browsers do not send to servers. */
export function textInAddress(text: string): string {
  return `#text=${encodeURIComponent(text)}`;
}

export function textOfAddress(hash: string): string | null {
  if (!hash.startsWith('#text=')) return null;
  try {
    return decodeURIComponent(hash.slice(6));
  } catch {
    return null;
  }
}

function whole(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
