// Copies the built application to the folder that the server embeds: `npm run embed`, after `npm run build`.
// With `--check` it changes nothing and fails if the copy differs from the build.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const from = fileURLToPath(new URL('../dist/', import.meta.url));
const to = fileURLToPath(new URL('../../crates/canonym-serve/assets/app/', import.meta.url));

if (!existsSync(join(from, 'index.html'))) {
  console.error('dist/ is missing: run `npm run build` first');
  process.exit(1);
}

if (process.argv.includes('--check')) {
  const [built, copied] = [files(from), files(to)];
  const differing = [...new Set([...built.keys(), ...copied.keys()])].filter((path) => !built.get(path)?.equals(copied.get(path) ?? Buffer.alloc(0)));
  if (differing.length) {
    console.error(`the embedded application differs from the build (npm run build && npm run embed): ${differing.join(', ')}`);
    process.exit(1);
  }
  console.log(`${built.size} files match the build`);
} else {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  cpSync(from, to, { recursive: true });
  console.log(`${files(to).size} files in ${relative(process.cwd(), to)}`);
}

/** The files in a folder, by path. */
function files(folder) {
  const found = new Map();
  if (!existsSync(folder)) return found;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    found.set(relative(folder, path), readFileSync(path));
  }
  return found;
}
