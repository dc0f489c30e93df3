// Templates of projects: what they annotate, and a guideline to begin with.

export interface Template {
  name: string;
  description: string;
  guideline: string;
  /** The types that it annotates, as terminologies name them. */
  types: RegExp;
}

const LONGEST = '- The longest name that the terminology has: *type 2 diabetes*, not *diabetes*\n- Abbreviations, too: `CKD`, `RA`\n';

export const TEMPLATES: Template[] = [
  {
    name: 'Findings in clinical notes',
    description: 'Diseases, symptoms and procedures in notes, with negation and family history',
    guideline: `## What to annotate\n- Diseases, symptoms and procedures, also if they are ruled out or only suspected\n${LONGEST}\n## Context\n- *No fever*: **negated**. *Possible stroke*: **possible**\n- *Had asthma as a child*: **historical**. *Return if the pain gets worse*: **hypothetical**\n- *Mother has asthma*: **family**\n`,
    types: /disease|disorder|symptom|sign|finding|procedure/i,
  },
  {
    name: 'Drugs and adverse effects',
    description: 'Drugs, and the diseases and symptoms that they treat or cause',
    guideline: `## What to annotate\n- Drugs and other substances that were given, by generic or brand name\n- Diseases and symptoms, whether treated or caused\n${LONGEST}\n## What to leave out\n1. Doses, routes and frequencies\n2. Classes as generic as *medication* or *tablet*\n`,
    types: /drug|chemical|substance|disease|disorder|symptom|sign|finding/i,
  },
  {
    name: 'Genes and diseases in abstracts',
    description: 'Genes, proteins and diseases in abstracts of articles',
    guideline: `## What to annotate\n- Genes and proteins, without words such as *gene*, *protein* or *mutation*\n- Diseases\n${LONGEST}\n## What to leave out\n1. Families of genes, unless the terminology has the family\n2. Cell lines that are named like a gene\n`,
    types: /gene|protein|disease|disorder/i,
  },
];

/** The types of a terminology that a template annotates; none, for all, if it has no such types. */
export const typesOf = (template: Template, types: string[]): string[] => {
  const found = types.filter((type) => template.types.test(type));
  return found.length < types.length ? found : [];
};
