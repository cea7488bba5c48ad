// What `scripts/guests build` and `check` need of the manifest: the recipe of a guest, and the hash of what came out.
//   pack.mjs names [NAME...] | recipe NAME | store NAME ELF RUSTC | compare NAME ELF RUSTC | loaded ELF OUT
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { DIR, findGuest, MANIFEST, readManifest, sha256, unpack } from './store.mjs';

// As biome formats it: an array stands on one line where it fits.
function format(value, indent = '', used = 0) {
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const flat = `[${value.map((v) => JSON.stringify(v)).join(', ')}]`;
    if (value.every((v) => typeof v !== 'object') && used + flat.length < 120) return flat;
    return `[\n${value.map((v) => inner + format(v, inner)).join(',\n')}\n${indent}]`;
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return '{}';
  const lines = keys.map((k) => {
    const head = `${inner}${JSON.stringify(k)}: `;
    return head + format(value[k], inner, head.length);
  });
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

const commands = {
  names(...names) {
    return (names.length ? names.map(findGuest) : readManifest()).map((g) => g.name);
  },
  recipe(name) {
    const g = findGuest(name);
    const vars = Object.entries(g.env).map(([k, v]) => `${k}=${v}`);
    const embeds = (g.embeds ?? []).map((embedded) => `LAB_EMBED=${embedded}`);
    return [`${g.arch}/${g.mode}`, g.opt, g.source ?? 'kern', g.main ?? 'main', ...vars, ...embeds, ...g.flags];
  },
  store(name, file, rustc) {
    const elf = readFileSync(file);
    const now = { rustc, sha256: sha256(elf), size: elf.length };
    const packed = join(DIR, `${name}.elf.br`);
    const old = findGuest(name);
    if (existsSync(packed) && Object.keys(now).every((k) => now[k] === old[k])) {
      unpack(old);
      return [`${name}: unchanged`];
    }
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
    const bytes = brotliCompressSync(elf, { params });
    writeFileSync(packed, bytes);
    const guests = readManifest().map((g) => (g.name === name ? { ...g, ...now } : g));
    writeFileSync(MANIFEST, `${format({ guests })}\n`);
    return [`${name}: ${now.size} bytes, ${bytes.length} packed, sha256 ${now.sha256}`];
  },
  /** What a program loads, without sections: what a kernel has of it. */
  loaded(file, out) {
    const elf = readFileSync(file);
    const headers = Array.from(
      { length: elf.readUInt16LE(56) },
      (_, i) => Number(elf.readBigUInt64LE(32)) + i * elf.readUInt16LE(54),
    );
    const ends = headers.map((at) => Number(elf.readBigUInt64LE(at + 8) + elf.readBigUInt64LE(at + 32)));
    // No table of sections: e_shoff, then e_shnum and e_shstrndx.
    elf.fill(0, 40, 48).fill(0, 60, 64);
    writeFileSync(out, elf.subarray(0, Math.max(...ends)));
    return [];
  },
  compare(name, file, rustc) {
    const guest = findGuest(name);
    const got = sha256(readFileSync(file));
    if (got === guest.sha256 && rustc === guest.rustc) return [`${name}: same`];
    process.exitCode = 1;
    return [
      `${name}: DIFFERS: ${file} has sha256 ${got}, the manifest says ${guest.sha256}`,
      ...(rustc === guest.rustc ? [] : [`${name}: DIFFERS: built with ${rustc}, the manifest says ${guest.rustc}`]),
    ];
  },
};

const [command, ...args] = process.argv.slice(2);
try {
  console.log(commands[command](...args).join('\n'));
} catch (error) {
  console.error(`guests: ${error.message}`);
  process.exitCode = 1;
}
