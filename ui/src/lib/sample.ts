// The sample project: ten short documents with predictions, to try annotation with.

import { api, navigate } from './app.svelte';

/** Creates a sample project and opens its first document. */
export async function openSample(): Promise<void> {
  const { id, strategy } = await api.createSample();
  const [first] = (await api.queue(id, strategy, 1)).documents;
  navigate(first ? { page: 'annotate', project: id, document: first.id } : { page: 'project', project: id, tab: 'queue' });
}
