// Jobs that take about a second and report their progress.

import { docsOf, models, newId, now, predict, Failure } from './state.mjs';

export const jobs = new Map();
/** The changes of each job, by document. */
export const changes = new Map();
const listeners = new Set();

export function listen(project, send) {
  const listener = { project, send };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function tell(project, event, data) {
  for (const listener of listeners) if (!listener.project || listener.project === project) listener.send(event, data, project);
}

export function start(project, kind, settings = null) {
  if ([...jobs.values()].some((job) => job.project_id === project && ['QUEUED', 'RUNNING'].includes(job.state))) throw new Failure(409, 'busy', 'another job of this project is running', 'wait until it finishes, or cancel it');
  const job = { id: newId(), project_id: project, kind, state: 'QUEUED', progress: 0, message: 'queued', error: null, started_at: null, ended_at: null, eta_seconds: null, curve: [], model: null, settings };
  jobs.set(job.id, job);
  setTimeout(() => step(job, 0), 150);
  return job;
}

const N_STEPS = 12;

function step(job, row) {
  if (job.state === 'CANCELLED') return;
  if (job.kind === 'train' && !docsOf(job.project_id).some((doc) => doc.marks.some((mark) => mark.source !== 'PRED'))) {
    Object.assign(job, { state: 'FAILED', ended_at: now(), error: 'no training data: nothing is gold or reviewed yet' });
    return tell(job.project_id, 'job', job);
  }
  Object.assign(job, { state: 'RUNNING', started_at: job.started_at ?? now(), progress: row / N_STEPS, message: job.kind === 'train' ? `step ${row * 20} of ${N_STEPS * 20}` : `document ${row} of ${N_STEPS}`, eta_seconds: (N_STEPS - row) * 0.12 });
  if (job.kind === 'train') job.curve.push({ step: row * 20, loss: Number((1.6 * Math.exp(-row / 4) + 0.12 + 0.03 * Math.sin(row * 2)).toFixed(3)), dev: row % 3 === 0 ? Number((0.86 - 0.4 * Math.exp(-row / 3)).toFixed(3)) : null });
  if (row < N_STEPS) {
    tell(job.project_id, 'job', job);
    setTimeout(() => step(job, row + 1), 120);
    return;
  }
  if (job.kind === 'train') {
    const parent = [...models.values()].find((model) => model.is_current);
    const last = [...models.values()].findLast((model) => model.project_id === job.project_id);
    const id = newId();
    docsOf(job.project_id).filter((doc) => doc.is_finished).forEach((doc, row) => (doc.is_held_out ||= row % 5 === 0));
    const isHuman = (mark) => mark.source !== 'PRED' && mark.state === 'accepted';
    const test_set = JSON.stringify(docsOf(job.project_id).filter((doc) => doc.is_held_out).map((doc) => [doc.id, doc.marks.filter(isHuman).map((mark) => [mark.spans, mark.concept?.id])]));
    const changed_since = last && last.dev.test_set !== test_set ? { changed_since: last.name } : {};
    for (const model of models.values()) model.is_current = false;
    models.set(id, { id, name: `starter + documents (training ${job.id})`, project_id: job.project_id, is_current: true, made_at: now(), parent: parent.id, card: 'Trained on gold annotations and reviewed mentions.', dev: { strict_f1: 0.78, spans_f1: 0.85, accuracy: 0.88, n_documents: 2, ...changed_since } });
    for (const model of models.values()) if (model.id === id || model.id === parent.id || model.project_id === null) model.dev.test_set = test_set;
    job.model = id;
  }
  changes.set(job.id, predict(job.project_id, [...models.values()].find((model) => model.is_current).name));
  Object.assign(job, { state: 'SUCCEEDED', progress: 1, message: `predictions refreshed in ${docsOf(job.project_id).length} documents`, ended_at: now(), eta_seconds: null });
  tell(job.project_id, 'job', job);
}

export function cancel(job) {
  if (['NEW', 'QUEUED', 'RUNNING'].includes(job.state)) Object.assign(job, { state: 'CANCELLED', ended_at: now(), eta_seconds: null, message: 'cancelled' });
  tell(job.project_id, 'job', job);
  return job;
}
