// The committed guests: manifest.json and one NAME.elf.br (brotli) each, unpacked into elf/, which git ignores.
// Plain JavaScript so that `scripts/guests unpack` needs nothing but Node; guests.ts is the same thing with types.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

export const DIR = fileURLToPath(new URL('.', import.meta.url));
export const MANIFEST = join(DIR, 'manifest.json');

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

export function readManifest() {
  return JSON.parse(readFileSync(MANIFEST, 'utf8')).guests;
}

export function findGuest(name) {
  const all = readManifest();
  const found = all.find((g) => g.name === name);
  if (!found) throw new Error(`no guest named ${name}; there are ${all.map((g) => g.name).join(', ')}`);
  return found;
}

function decompress(file) {
  const packed = readFileSync(file);
  try {
    return brotliDecompressSync(packed);
  } catch (error) {
    throw new Error(`${file} is damaged: ${error.message}`);
  }
}

/** Returns the path of the guest's ELF, unpacking it first unless a file with the manifest's hash is there. */
export function unpack(guest) {
  const elf = join(DIR, 'elf', `${guest.name}.elf`);
  if (existsSync(elf) && sha256(readFileSync(elf)) === guest.sha256) return elf;
  const packed = join(DIR, `${guest.name}.elf.br`);
  const bytes = decompress(packed);
  const got = sha256(bytes);
  if (got !== guest.sha256) throw new Error(`${packed} holds sha256 ${got}, the manifest says ${guest.sha256}`);
  mkdirSync(join(DIR, 'elf'), { recursive: true });
  // Test processes unpack at the same time: each writes a file of its own, and the rename is atomic.
  const own = `${elf}.${process.pid}`;
  try {
    writeFileSync(own, bytes);
    renameSync(own, elf);
  } finally {
    rmSync(own, { force: true });
  }
  return elf;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  try {
    for (const guest of names.length ? names.map(findGuest) : readManifest()) unpack(guest);
  } catch (error) {
    console.error(`guests: ${error.message}`);
    process.exitCode = 1;
  }
}
