import { expect, test } from 'vitest';
import { commandsMatching, type Command } from './commands';

const all: Command[] = [['Undo', 'Document'], ['Documents', 'Project'], ['Settings', 'Page']].map(([name, place]) => ({ name: name!, place: place!, keys: [], run: () => {} }));
const check = (typed: string, expected: string[]) => expect(commandsMatching(all, typed).map((one) => one.name)).toEqual(expected);

test('commands match by all words, name first', () => {
  check('', ['Undo', 'Documents', 'Settings']);
  check('docu', ['Documents', 'Undo']);
  check('page set', ['Settings']);
  check('nothing', []);
});
