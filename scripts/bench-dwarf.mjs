// Reading debug info, from process start to exit: wall time and peak resident memory of rsptrace, gdb and llvm-dwarfdump on the
// same file, in interleaved rounds; medians and ratios. With a vmlinux (--vmlinux PATH; Debian's linux-image-*-dbg package has one)
// also the index of all its names and addresses, one large type, and the time per megabyte from small files to large ones.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DebugInfo } from '../dist/dwarf/index.js';
import { ElfFile } from '../dist/elf/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    guest: { type: 'string', default: 'rv-o2' },
    vmlinux: { type: 'string', default: systemVmlinux() },
    type: { type: 'string', default: 'task_struct' },
  },
});
const rounds = Number(values.rounds);
const main = resolve(import.meta.dirname, '../dist/cli/main.js');
const library = resolve(import.meta.dirname, '../dist/dwarf/index.js');
const folder = mkdtempSync(join(tmpdir(), 'rsptrace-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function systemVmlinux() {
  const boot = '/usr/lib/debug/boot';
  const found = existsSync(boot) ? readdirSync(boot).filter((name) => name.startsWith('vmlinux')) : [];
  return found.length > 0 ? join(boot, found.sort().at(-1)) : '';
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

/** Wall time in ms, and the highest resident set in MB that the kernel kept count of while the process lived. */
function measure([program, ...args]) {
  return new Promise((done, failed) => {
    const began = performance.now();
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let peak = 0;
    let complaints = '';
    const look = () => {
      try {
        peak = Math.max(
          peak,
          Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0),
        );
      } catch {
        // It has just ended.
      }
    };
    const timer = setInterval(look, 4);
    child.stderr.on('data', (text) => {
      complaints += text;
    });
    child.on('error', failed);
    child.on('close', (status) => {
      const ms = performance.now() - began;
      clearInterval(timer);
      if (status === 0) done({ ms, mb: peak / 1024 });
      else failed(new Error(`${program} ${args.join(' ')} ended with ${status}: ${complaints}`));
    });
  });
}

async function compare(title, commands) {
  const results = Object.fromEntries(Object.keys(commands).map((name) => [name, []]));
  // The first round warms the page cache.
  for (let round = 0; round <= rounds; round++)
    for (const [name, command] of Object.entries(commands)) {
      const result = await measure(command);
      if (round > 0) results[name].push(result);
    }
  console.log(title);
  const [first] = Object.keys(results);
  const own = { ms: median(results[first].map((r) => r.ms)), mb: median(results[first].map((r) => r.mb)) };
  for (const [name, list] of Object.entries(results)) {
    const ms = median(list.map((r) => r.ms));
    const mb = median(list.map((r) => r.mb));
    const low = Math.min(...list.map((r) => r.ms));
    const high = Math.max(...list.map((r) => r.ms));
    const ratio =
      name === first
        ? ''
        : `   rsptrace: ${(ms / own.ms).toFixed(1)}x as fast, ${(own.mb / mb).toFixed(2)} of the memory`;
    const spread = `(${low.toFixed(0)} .. ${high.toFixed(0)})`;
    console.log(
      `  ${name.padEnd(46)} ${ms.toFixed(0).padStart(6)} ms ${spread.padEnd(16)} ${mb.toFixed(0).padStart(5)} MB${ratio}`,
    );
  }
}

const node = process.execPath;
const script = (text) => [
  node,
  '--input-type=module',
  '-e',
  `import { DebugInfo, ElfFile } from ${JSON.stringify(library)};\n${text}`,
];
const indexOf = (path) =>
  script(
    `const debug = DebugInfo.load(await ElfFile.open(${JSON.stringify(path)})); debug.unitFor(debug.elf.entry); debug.names;`,
  );

const guest = unpack(findGuest(values.guest));
await compare(`${values.guest}: every Future`, {
  'rsptrace futures --json': [node, main, 'futures', guest, '--json'],
  'gdb, info functions poll': ['gdb', '-nx', '-batch', '-ex', 'info functions poll', guest],
  'llvm-dwarfdump --debug-info': ['llvm-dwarfdump', '--debug-info', guest],
});
if (values.vmlinux === '') {
  console.log('no vmlinux: give one with --vmlinux PATH');
} else {
  const { vmlinux, type } = values;
  await compare(`${vmlinux}: names and addresses of everything`, {
    'rsptrace, address and name index': indexOf(vmlinux),
    'gdb, load and break start_kernel': ['gdb', '-nx', '-batch', '-ex', 'break start_kernel', vmlinux],
    'llvm-dwarfdump --statistics': ['llvm-dwarfdump', '--statistics', vmlinux],
  });
  await compare(`${vmlinux}: the layout of ${type}`, {
    [`rsptrace types ${type}`]: [node, main, 'types', vmlinux, type],
    [`gdb, ptype struct ${type}`]: ['gdb', '-nx', '-batch', '-ex', `ptype struct ${type}`, vmlinux],
    [`llvm-dwarfdump --name=${type}`]: ['llvm-dwarfdump', `--name=${type}`, vmlinux],
  });
  await growth(vmlinux);
}

/** The first units of a file, up to a size, in an ELF of their own with the sections that an index looks into. */
async function growth(path) {
  console.log('time per megabyte of .debug_info, of the index of names and addresses');
  const whole = await ElfFile.open(path);
  const { units } = DebugInfo.load(whole);
  for (const wanted of [1, 4, 16, 64, 256]) {
    const end = (units.find((unit) => unit.end >= wanted * 1e6) ?? units.at(-1)).end;
    const small = join(folder, `first-${wanted}.elf`);
    writeFileSync(small, prefix(whole, end));
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const debug = DebugInfo.load(await ElfFile.open(small));
      const began = performance.now();
      debug.unitFor(whole.entry);
      debug.names;
      times.push(performance.now() - began);
    }
    const mb = end / 1e6;
    console.log(
      `  ${mb.toFixed(1).padStart(6)} MB: ${median(times).toFixed(0).padStart(5)} ms, ${(median(times) / mb).toFixed(2)} ms/MB`,
    );
    if (end === units.at(-1).end) break;
  }
}

// An ELF64 header, program headers (of segments without their bytes), the sections one after the other, their names, their headers.
function prefix(elf, end) {
  const names = [
    '.debug_info',
    '.debug_abbrev',
    '.debug_str',
    '.debug_line_str',
    '.debug_str_offsets',
    '.debug_addr',
    '.debug_ranges',
    '.debug_rnglists',
  ];
  const sections = names
    .map((name) => ({ name, bytes: elf.section(name) }))
    .filter(({ bytes }) => bytes !== undefined)
    .map(({ name, bytes }) => ({ name, bytes: name === '.debug_info' ? bytes.subarray(0, end) : bytes }));
  const loads = elf.segments.filter((s) => s.type === 1);
  const strings = Buffer.from(`\0${[...sections.map((s) => s.name), '.shstrtab'].join('\0')}\0`);
  sections.push({ name: '.shstrtab', bytes: strings });
  const headers = Buffer.alloc(64 * (sections.length + 1));
  let at = 64 + 56 * loads.length;
  sections.forEach(({ name, bytes }, i) => {
    const header = 64 * (i + 1);
    headers.writeUInt32LE(strings.indexOf(`\0${name}\0`) + 1, header);
    headers.writeUInt32LE(name === '.shstrtab' ? 3 : 1, header + 4);
    headers.writeBigUInt64LE(BigInt(at), header + 24);
    headers.writeBigUInt64LE(BigInt(bytes.length), header + 32);
    at += bytes.length;
  });
  const header = Buffer.alloc(64);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(elf.machine, 18);
  header.writeBigUInt64LE(BigInt(at), 0x28);
  header.writeBigUInt64LE(64n, 0x20);
  [64, 56, loads.length, 64, sections.length + 1, sections.length].forEach((value, i) => {
    header.writeUInt16LE(value, 0x34 + 2 * i);
  });
  const programs = loads.map((load) => {
    const program = Buffer.alloc(56);
    program.writeUInt32LE(1, 0);
    program.writeBigUInt64LE(load.address, 16);
    program.writeBigUInt64LE(BigInt(load.memorySize), 40);
    return program;
  });
  return Buffer.concat([header, ...programs, ...sections.map((s) => s.bytes), headers]);
}
