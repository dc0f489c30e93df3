// The commands of the palette, and which of them match what was typed.

export interface Command {
  name: string;
  /** The group that it belongs to. */
  place: string;
  keys: string[];
  run: () => void;
}

/** Commands that hold all typed words; those whose name starts with what was typed come first. */
export function commandsMatching(all: Command[], typed: string): Command[] {
  const query = typed.trim().toLowerCase();
  const words = query.split(/\s+/);
  const found = all.filter((one) => words.every((word) => `${one.place} ${one.name}`.toLowerCase().includes(word)));
  const starts = (one: Command) => (query && one.name.toLowerCase().startsWith(query) ? 0 : 1);
  return found.sort((a, b) => starts(a) - starts(b));
}
