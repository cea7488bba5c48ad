#!/usr/bin/env node
// Nothing outside of src/arch names an architecture in code: the code asks the architecture's object instead.
// Comments may name one, because they say where a fact is from. Exits 1 and names each line that breaks the rule, and
// each exception that is not needed any more. The recipe for a new architecture has a line for every optional member.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const own = 'scripts/check-architectures.mjs';
const root = resolve(import.meta.dirname, '..', 'src');
const names = /riscv|rv(?:32|64)|(?<!\d)x86|amd64|i386|aarch64|loongarch|\btsc\b|\brip\b|\brsp\b(?!\/)/i;
/** Files that may, and why. */
const allowed = {
  'cli/command-line.ts': 'help text: an example command',
  'cli/logging.ts': 'the name of a room: a part of --log',
  'cli/options/common.ts': "help text: whose counter's frequency it is",
  'api/qemu.ts': "help texts: an example command, Debian's packages",
  'scratch/hide-in-memory-map.ts': "boot protocols of QEMU's PCs: which registers hold them",
  'scratch/machines/virt.ts': "the name of a ROM of QEMU's",
  'rsp/session/connect.ts': 'its own name, as a part of --log',
  'rsp/session/handshake.ts': 'how stubs spell the program counter where nobody has told which architecture it is',
  'rsp/session/packets.ts': 'a word of the protocol: xmlRegisters=i386',
  'rsp/wire/transport.ts': 'help text: an example command',
};

/** The code of a file. Comments become blanks, so that lines keep their numbers. */
function withoutComments(text) {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
  return text.replace(token, (found) => (/^\/[/*]/.test(found) ? found.replace(/[^\n]/g, ' ') : found));
}

const problems = [];
const used = new Set();
let files = 0;
for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
  const file = join(entry.parentPath, entry.name);
  const name = relative(root, file);
  if (name.startsWith('arch/')) continue;
  files++;
  const lines = withoutComments(readFileSync(file, 'utf8')).split('\n');
  for (const [index, line] of lines.entries()) {
    const found = names.exec(line.replaceAll(/from '[^']*'/g, ''));
    if (!found) continue;
    if (name in allowed) used.add(name);
    else problems.push(`src/${name}:${index + 1} names ${found[0]}: ask src/arch, or give a reason in ${own}`);
  }
}
for (const name of Object.keys(allowed))
  if (!used.has(name)) problems.push(`src/${name} names no architecture: take it out of ${own}`);
/** Optional members of an interface of src/arch. */
function optionalMembers(file, name) {
  const text = withoutComments(readFileSync(join(root, 'arch', file), 'utf8'));
  const [, body = ''] = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text) ?? [];
  const found = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\?[:(]/gm)].map(([, member]) => member);
  if (found.length === 0) problems.push(`src/arch/${file} has no interface ${name} with optional members`);
  return found;
}

const [recipe] = /\/\*\*\n \* An architecture: all[\s\S]*?\*\//.exec(
  readFileSync(join(root, 'arch/architecture.ts'), 'utf8'),
) ?? [''];
for (const [file, name] of [
  ['architecture.ts', 'Architecture'],
  ['architecture.ts', 'Capabilities'],
  ['calls.ts', 'CallingConvention'],
  ['instructions.ts', 'InstructionModel'],
])
  for (const member of optionalMembers(file, name))
    if (!recipe.includes(`\`${member}\``))
      problems.push(`src/arch/architecture.ts: the recipe at its head has no line for \`${member}\` of ${name}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`no architecture is named outside of src/arch (${files} files, ${used.size} may)`);
