import { expect, test } from 'vitest';
import { ApiError } from './api';
import { Outbox, saveText, type Entry, type Store } from './outbox';
import type { DecisionAnswer } from './types';

class Memory implements Store {
  items = new Map<string, string>();
  getItem = (key: string) => this.items.get(key) ?? null;
  setItem = (key: string, value: string) => void this.items.set(key, value);
  removeItem = (key: string) => void this.items.delete(key);
  get length() {
    return this.items.size;
  }
  key = (row: number) => [...this.items.keys()][row] ?? null;
}

const offline = new ApiError('offline', 'the server does not answer');
const entry = (client_id: string, document = 1): Omit<Entry, 'order'> => ({
  client_id, document, kind: 'decide', decisions: [{ kind: 'accept', mark: 1 }], version: 1, firstId: -1,
});

function make(store = new Memory()) {
  const log: string[] = [];
  const state = { error: null as unknown, later: [] as (() => void)[] };
  const outbox = new Outbox(store, {
    send: async (one) => {
      if (state.error) throw state.error;
      log.push(`sent ${one.client_id}`);
      return { version: 2, marks: [], removed: [], events: [], is_finished: false } satisfies DecisionAnswer;
    },
    acknowledged: (one) => log.push(`saved ${one.client_id}`),
    refused: (one) => log.push(`refused ${one.client_id}`),
    changed: () => {},
    later: (_, run) => state.later.push(run),
  });
  return { outbox, log, state, store };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));

test('a decision is sent at once and dropped when saved', async () => {
  const { outbox, log, store } = make();
  outbox.add(entry('a'));
  expect(store.length).toBe(1);
  await settle();
  expect(log).toEqual(['sent a', 'saved a']);
  expect([store.length, outbox.state]).toEqual([0, 'saved']);
});

test('offline, decisions wait and are sent in order later', async () => {
  const { outbox, log, state } = make();
  state.error = offline;
  for (const id of ['a', 'b', 'c']) outbox.add(entry(id));
  await settle();
  expect([outbox.state, outbox.nWaiting, saveText(outbox.state, outbox.nWaiting)]).toEqual(['offline', 3, 'offline, 3 unsaved']);
  state.error = null;
  state.later.forEach((run) => run());
  await settle();
  expect(log.filter((line) => line.startsWith('sent'))).toEqual(['sent a', 'sent b', 'sent c']);
  expect(outbox.state).toBe('saved');
});

test('waiting entries survive a reload, with order and id', async () => {
  const first = make();
  first.state.error = offline;
  first.outbox.add(entry('b'));
  first.outbox.add(entry('a'));
  await settle();
  const second = make(first.store);
  await second.outbox.flush();
  expect(second.log.filter((line) => line.startsWith('sent'))).toEqual(['sent b', 'sent a']);
});

test('a rejected decision is reported and does not block the next', async () => {
  const { outbox, log, state } = make();
  state.error = new ApiError('conflict', 'changed meanwhile', null, 409);
  outbox.add(entry('a'));
  await settle();
  state.error = null;
  outbox.add(entry('b'));
  await settle();
  expect(log).toEqual(['refused a', 'sent b', 'saved b']);
});

test('a decision is dropped after repeated server errors', async () => {
  const { outbox, log, state } = make();
  state.error = new ApiError('server', 'the server answered 500', null, 500);
  outbox.add(entry('a'));
  await settle();
  for (let row = 0; row < 10; row++) {
    state.later.splice(0).forEach((run) => run());
    await settle();
  }
  expect([log, outbox.nWaiting]).toEqual([['refused a'], 0]);
});

test('an expired session keeps decisions', async () => {
  const { outbox, state } = make();
  state.error = new ApiError('login', 'log in', null, 401);
  outbox.add(entry('a'));
  await settle();
  expect(outbox.nWaiting).toBe(1);
});

test('an unsent decision can be withdrawn', async () => {
  const { outbox, state, log } = make();
  state.error = offline;
  outbox.add(entry('a'));
  outbox.add(entry('b', 2));
  await settle();
  expect(outbox.withdraw(1)?.client_id).toBe('a');
  expect(outbox.withdraw(1)).toBeNull();
  state.error = null;
  await outbox.flush();
  expect(log).toEqual(['sent b', 'saved b']);
});

test('waiting entries can be rewritten', async () => {
  const { outbox, state } = make();
  state.error = offline;
  outbox.add(entry('a'));
  outbox.rewrite(1, (one) => ({ ...one, decisions: [{ kind: 'nil', mark: 9 }] }));
  expect(outbox.of(1)[0]!.decisions).toEqual([{ kind: 'nil', mark: 9 }]);
});

test('malformed storage entries are skipped', () => {
  const store = new Memory();
  store.setItem('canonym.outbox.x', '{');
  store.setItem('other', '1');
  expect(make(store).outbox.nWaiting).toBe(0);
});
