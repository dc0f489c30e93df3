import { expect, test } from 'vitest';
import { Api, ApiError, query, errorText } from './api';

function answering(status: number, body: unknown, headers: Record<string, string> = {}) {
  const calls: { path: string; init: RequestInit }[] = [];
  const fetch = async (path: unknown, init: unknown) => {
    calls.push({ path: String(path), init: init as RequestInit });
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
  };
  return { api: new Api(fetch as typeof globalThis.fetch), calls };
}

async function check(status: number, body: unknown, expected: Partial<ApiError>): Promise<void> {
  const { api } = answering(status, body, { 'Retry-After': '3' });
  const error = await api.projects().catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject(expected);
}

test('an error keeps its message and hint', () =>
  check(404, { error: { code: 'not_found', message: 'no project 7', hint: 'list them' } }, { kind: 'missing', message: 'no project 7', hint: 'list them' }));
test('an error without a body is reported by its status', () => check(500, '<html>', { kind: 'server', message: 'the server responded with status 500', isTemporary: false }));
test('a busy server can be retried', () => check(429, {}, { kind: 'busy', isTemporary: true, retryAfter: 3 }));
test('a starting server can be retried', () => check(503, {}, { kind: 'busy', isTemporary: true }));
test('a conflict is not temporary', () => check(409, {}, { kind: 'conflict', isTemporary: false }));

test('an unreachable server is offline', async () => {
  const api = new Api((async () => Promise.reject(new TypeError('failed'))) as typeof fetch);
  expect(await api.about().catch((thrown) => thrown)).toMatchObject({ kind: 'offline', isTemporary: true });
});
test('writes carry the CSRF header, reads do not', async () => {
  const { api, calls } = answering(200, {});
  await api.about();
  await api.createProject({ name: 'a' });
  const headers = calls.map((call) => (call.init.headers as Record<string, string>)['X-Canonym']);
  expect(headers).toEqual([undefined, '1']);
});
test('ids of concepts are encoded', async () => {
  const { api, calls } = answering(200, {});
  await api.concept('MESH:D0/1');
  expect(calls[0]!.path).toBe('/api/v1/kb/concepts/MESH%3AD0%2F1');
});
test('an unauthorized request asks to sign in', async () => {
  const { api } = answering(401, {});
  let asked = 0;
  api.onLogin = () => asked++;
  await api.projects().catch(() => null);
  await api.login('a', 'b').catch(() => null);
  expect(asked).toBe(1);
});
test('parameters without a value are left out', () => expect(query({ a: 1, b: null, c: 'x y&', d: undefined })).toBe('?a=1&c=x%20y%26'));
test('the message and hint of an error are sentences', () => expect(errorText(new ApiError('refused', 'no name', 'give one.'))).toBe('No name. Give one.'));
