import { expect, test } from 'vitest';
import { listAsJsonl } from './lists';

const ids = (text: string) => listAsJsonl(text, 'pasted.txt').split('\n').map((line) => JSON.parse(line) as { id: string; text: string }).map((one) => `${one.id}: ${one.text}`);

test('each line is a document', () => expect(ids('Fever.\n\n  Cough. \r\n')).toEqual(['pasted-1: Fever.', 'pasted-2: Cough.']));
test('a line may begin with its id', () => expect(ids('n7\tFever\tand cough\nn7\tRash')).toEqual(['n7: Fever and cough', 'pasted-2: Rash']));
