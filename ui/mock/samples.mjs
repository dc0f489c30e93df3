// Made-up documents in PubTator: an emoji before mentions, nested and discontinuous mentions, one without a concept.

/** A PubTator document; offsets are found by searching for the mentions, and `…` joins the parts of a discontinuous one. */
export function pubtator(id, title, body, mentions) {
  const text = [...`${title}\n${body}`];
  const find = (part, from) => {
    const wanted = [...part];
    for (let at = from; at + wanted.length <= text.length; at++) if (wanted.every((point, row) => text[at + row] === point)) return at;
    throw new Error(`“${part}” is not in ${id}`);
  };
  const lines = mentions.map(([mention, type, concept]) => {
    let from = 0;
    const spans = mention.split(' … ').map((part) => {
      const at = find(part, from);
      from = at + [...part].length;
      return [at, from];
    });
    const words = spans.map(([start, end]) => text.slice(start, end).join('')).join(' ');
    return [id, spans.map((span) => span[0]).join(';'), spans.map((span) => span[1]).join(';'), words, type, concept].join('\t');
  });
  return `${id}|t|${title}\n${id}|a|${body}\n${lines.join('\n')}\n`;
}

export const samples = [
  pubtator('900001', 'Famotidine and sudden delirium: what six patients saw.', 'Six patients 🙂 took famotidine and showed confusion within two days. Delirium ended when famotidine was stopped; headaches stayed in one of them. Warfarin had no part in it.', [
    ['delirium', 'Disease', 'MESH:D003693'],
    ['Famotidine', 'Drug', 'MESH:D015738'],
  ]),
  pubtator('900002', 'Type 2 diabetes and chronic kidney disease in two sisters', 'Two sisters with type 2 diabetes, anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; the CKD grew worse. Neither had high blood pressure.', [
    ['chronic kidney disease', 'Disease', 'MESH:D051436'],
    ['kidney disease', 'Disease', 'MESH:D007674'],
    ['Type 2 diabetes', 'Disease', 'MESH:D003924'],
  ]),
  pubtator('900003', 'Breast and lung cancer after a long fever', 'Breast and lung cancer were found in a woman with fever and a cough that no drug could stop. A rare glimmer syndrome was considered. She took aspirin 👩‍⚕️ against the pain.', [
    ['Breast … cancer', 'Disease', 'MESH:D001943'],
    ['lung cancer', 'Disease', 'MESH:D008175'],
    ['glimmer syndrome', 'Disease', '-1'],
  ]),
].join('\n');
