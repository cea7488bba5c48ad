// Compiles the programs of this folder and live_*.rs of scripts/coverage with the rustc of this machine, and keeps them,
// packed, as *.elf.br. The standard library's own debug info is left out: it would be nine tenths of the file. tokio comes
// from the registry, for tokio.rs with calls added that count its polls.
//   node test/native/build.mjs [NAME...]
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const here = import.meta.dirname;
const names = process.argv.slice(2);
const isWanted = (name) => names.length === 0 || names.includes(name);
const SOCKETS = ['net', 'io-util'];
const folder = mkdtempSync(join(tmpdir(), 'rsptrace-native-'));
try {
  for (const [name, source, level, panic, place = '/native', compiler] of [
    ['polls', 'polls.rs', 0, 'abort'],
    // Its paths are those of `cargo install`.
    ['installed', 'polls.rs', 0, 'abort', '/cargo/registry/src/index/polls-1.0.0/src/bin'],
    ['executor', 'executor.rs', 2, 'abort'],
    ['faults', 'faults.rs', 0, 'abort'],
    ['results-o0', 'results.rs', 0, 'abort'],
    ['results-o2', 'results.rs', 2, 'abort'],
    ['texts', 'texts.rs', 2, 'abort'],
    ['panics-o0', 'panics.rs', 0, 'unwind'],
    ['panics-o2', 'panics.rs', 2, 'unwind'],
    ['promoted', 'promoted.rs', 3, 'abort'],
    ['never-o0', 'never.rs', 0, 'abort'],
    ['never-o2', 'never.rs', 2, 'abort'],
    ['merged', 'merged.rs', 3, 'abort'],
    ['names', 'names.rs', 0, 'abort'],
    // Of the Future that they poll, 1.70 to 1.91 list no parameter; 1.92 lists no parameter at all.
    ...['1.70', '1.90', '1.92'].flatMap((version) =>
      [0, 3].map((level) => [
        `compilers-${version}-o${level}`,
        'compilers.rs',
        level,
        'abort',
        '/native',
        `${version}.0`,
      ]),
    ),
  ]) {
    if (!isWanted(name)) continue;
    const program = join(folder, name);
    const edition = source === 'never.rs' ? 2024 : 2021;
    const options =
      `--edition ${edition} -C opt-level=${level} -C debuginfo=2 -C panic=${panic} -C codegen-units=1`.split(' ');
    const paths = [
      '--sysroot',
      sysroot(compiler),
      '--remap-path-prefix',
      `${here}=${place}`,
      '-o',
      program,
      join(here, source),
    ];
    const which = compiler === undefined ? [] : [`+${compiler}`];
    execFileSync('rustc', [...which, ...options, ...paths], { cwd: here, stdio: 'inherit' });
    keep(name, program);
  }
  if (isWanted('tokio')) keep('tokio', tokio());
  if (isWanted('orders')) keep('orders', orders());
  if (isWanted('tasks')) keep('tasks', tasks('tasks', 3));
  if (isWanted('blocked-o0')) keep('blocked-o0', tasks('blocked', 0, ['--cfg', 'tokio_unstable'], SOCKETS));
  if (isWanted('blocked-o3')) keep('blocked-o3', tasks('blocked', 3, [], SOCKETS));
  if (isWanted('tokio-faults-o0')) keep('tokio-faults-o0', tasks('tokio-faults', 0));
  if (isWanted('tokio-faults-o3')) keep('tokio-faults-o3', tasks('tokio-faults', 3));
  if (isWanted('cancels-o0')) keep('cancels-o0', tasks('cancels', 0));
  if (isWanted('cancels-o3')) keep('cancels-o3', tasks('cancels', 3));
  if (isWanted('futures-waits-o0')) keep('futures-waits-o0', futuresWaits(0));
  if (isWanted('futures-waits-o3')) keep('futures-waits-o3', futuresWaits(3));
  if (isWanted('adapters')) keep('adapters', adapters());
  if (isWanted('roots-o0')) keep('roots-o0', roots(0));
  if (isWanted('roots-o3')) keep('roots-o3', roots(3));
  if (isWanted('nested-o0')) keep('nested-o0', nested(0));
  if (isWanted('nested-o3')) keep('nested-o3', nested(3));
  if (isWanted('rings')) keep('rings', rings());
  for (const level of [0, 3])
    for (const [name, crate] of [
      ['cassettes', 'cassette = "=0.3.0"'],
      ['local-tasks', 'local-runtime = "=0.2.1"'],
    ])
      if (isWanted(`${name}-o${level}`)) keep(`${name}-o${level}`, ownExecutor(name, crate, level));
  for (const [name, ...how] of [
    ['embassy-08-o3', '0.8', 3],
    ['embassy-09-o0', '0.9', 0],
  ])
    if (isWanted(name)) keep(name, embassy(...how));
  for (const [name, level] of [
    ['live-tokio-o0', 0],
    ['live-tokio-o3', 3],
    ['live-smol-o3', 3],
  ])
    if (isWanted(name)) keep(name, live(name, level));
  console.log(execFileSync('rustc', ['-V'], { encoding: 'utf8' }));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** A compiler's library without its debug info. `compiler`: an installed toolchain; the default one if left out. */
function sysroot(compiler) {
  const made = join(folder, compiler ?? 'default');
  const libraries = 'lib/rustlib/x86_64-unknown-linux-gnu/lib';
  const to = join(made, libraries);
  if (existsSync(to)) return made;
  const which = compiler === undefined ? [] : [`+${compiler}`];
  const print = [...which, '--print', 'sysroot'];
  const from = join(execFileSync('rustc', print, { encoding: 'utf8' }).trim(), libraries);
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    if (!/\.r(lib|meta)$/.test(name)) continue;
    copyFileSync(join(from, name), join(to, name));
    if (name.endsWith('.rlib')) execFileSync('strip', ['--strip-debug', join(to, name)]);
  }
  return made;
}

function keep(name, program) {
  const elf = readFileSync(program);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const packed = brotliCompressSync(elf, { params });
  writeFileSync(join(here, `${name}.elf.br`), packed);
  console.log(`${name}: ${elf.length} bytes, ${packed.length} packed`);
}

/** Builds tokio.rs as it is released, with a copy of tokio that calls it where a Future of its own is polled. */
function tokio() {
  const project = projectOf('tokio', ['sync', 'rt', 'rt-multi-thread', 'macros']);
  const copy = join(folder, 'tokio');
  const { packages } = JSON.parse(project.cargo(['metadata', '--format-version', '1']));
  const original = packages.find(({ name }) => name === 'tokio').manifest_path;
  cpSync(join(original, '..'), copy, { recursive: true });
  addCall(
    join(copy, 'src/sync/batch_semaphore.rs'),
    /impl Future for Acquire<'_> \{[^{]*\{/,
    'fn acquire_polled(semaphore: usize, permits: usize);',
    'acquire_polled(self.semaphore as *const Semaphore as usize, self.num_permits)',
  );
  addCall(
    join(copy, 'src/sync/mpsc/chan.rs'),
    /fn recv\(&mut self, cx: &mut Context<'_>\) -> Poll<Option<T>> \{/,
    'fn recv_polled();',
    'recv_polled()',
  );
  return project.build('[patch.crates-io]\ntokio = { path = "../tokio" }\n', [`${copy}=/tokio`]);
}

/** Builds a source with tokio as it is. */
function tasks(name, level, flags = [], more = []) {
  const beside = name === 'blocked' ? 'async-lock = "=3.5.0"' : '';
  const project = projectOf(name, ['sync', 'rt', 'rt-multi-thread', 'macros', 'time', ...more], { beside });
  return project.build(`opt-level = ${level}\n`, [], flags);
}

/** Builds the program of docs/tutorial.md as a reader does, in /orders. */
function orders() {
  const about = { crate: 'orders', place: '/orders', binary: 'orders' };
  return projectOf('orders', ['rt', 'time', 'macros', 'sync'], about).build('opt-level = 0\n', []);
}

/** Builds futures-waits.rs with the futures crate as it is, in tokio. */
function futuresWaits(level) {
  const features = ['rt', 'time'];
  const project = projectOf('futures-waits', features, { beside: 'futures = "=0.3.34"' });
  return project.build(`opt-level = ${level}\n`, []);
}

/** Builds adapters.rs, which needs no runtime. */
function adapters() {
  const project = projectOf('adapters', [], {
    dependency: 'futures = { version = "=0.3.34", default-features = false, features = ["std"] }',
    beside: 'futures-intrusive = "=0.5.0"',
  });
  return project.build('opt-level = 3\n[profile.release.package."*"]\ndebug = 0\n', []);
}

/** Builds roots.rs with the crates whose `block_on` it calls. */
function roots(level) {
  const beside = 'futures = "=0.3.34"\nsmol = "=2.0.2"\npollster = "=0.4.0"';
  const project = projectOf('roots', ['rt', 'rt-multi-thread', 'macros'], { beside });
  return project.build(`opt-level = ${level}\n`, []);
}

/** Builds nested.rs with the crates whose executors poll tasks inside polls. */
function nested(level) {
  const beside =
    'futures = { version = "=0.3.34", default-features = false, features = ["std"] }\nasync-executor = "1"';
  const project = projectOf('nested', ['rt', 'rt-multi-thread'], { beside });
  return project.build(`opt-level = ${level}\n`, []);
}

/** Builds a program of an executor that only a plug-in of examples/ knows. */
function ownExecutor(name, dependency, level) {
  return projectOf(name, [], { dependency }).build(`opt-level = ${level}\n`, []);
}

/** Builds rings.rs with the executors that run a thread each on io_uring. */
function rings() {
  const project = projectOf('rings', [], {
    dependency: 'monoio = { version = "=0.2.4", default-features = false, features = ["legacy"] }',
    beside: `compio = { version = "=0.19.2", default-features = false, features = ["runtime", "io-uring"] }
glommio = "=0.9.0"`,
  });
  // What the program makes of their generic types is in its own debug info.
  return project.build('opt-level = 3\n[profile.release.package."*"]\ndebug = 0\n', []);
}

/** Builds embassy.rs with a release of embassy-executor that is no more the newest. */
function embassy(version, level) {
  const project = projectOf('embassy', [], {
    dependency: `embassy-executor = { version = "${version}", features = ["arch-std", "executor-thread"] }`,
    beside: `embassy-sync = "=0.8.0"
embassy-time = { version = "=0.5.1", features = ["std", "generic-queue-16"] }
embassy-futures = "=0.1.2"
critical-section = { version = "=1.2.0", features = ["std"] }`,
  });
  return project.build(`opt-level = ${level}\n`, [], ['--cfg', 'older']);
}

/** A program of scripts/coverage, alone with its list of tasks: `live-tokio-o3` is live_tokio.rs. */
function live(name, level) {
  const sources = join(here, '../../scripts/coverage/src');
  const source = name.replace(/-o\d$/, '').replace('-', '_');
  const isSmol = source === 'live_smol';
  const features = ['sync', 'rt', 'rt-multi-thread', 'macros', 'time'];
  const project = projectOf(name, features, {
    source: join(sources, `bin/${source}.rs`),
    edition: 2024,
    crate: 'coverage',
    ...(isSmol ? { dependency: 'smol = "=2.0.2"' } : {}),
  });
  copyFileSync(join(sources, 'book.rs'), join(project.folder, 'src/book.rs'));
  writeFileSync(join(project.folder, 'src/lib.rs'), 'pub mod book;\n');
  // As in scripts/coverage, where its path ends so.
  const main = join(project.folder, `src/${source}.rs`);
  copyFileSync(join(project.folder, 'src/main.rs'), main);
  rmSync(join(project.folder, 'src/main.rs'));
  return project.build(`opt-level = ${level}\n[[bin]]\nname = "coverage-program"\npath = "src/${source}.rs"\n`, []);
}

/** A crate of one source and tokio. */
function projectOf(
  name,
  features,
  { source = join(here, `${name}.rs`), edition = 2021, crate, dependency, beside = '', place = '/native', binary } = {},
) {
  const project = join(folder, `project-${name}`);
  mkdirSync(join(project, 'src'), { recursive: true });
  copyFileSync(source, join(project, 'src/main.rs'));
  const write = (patch) =>
    writeFileSync(
      join(project, 'Cargo.toml'),
      `[package]
name = "${crate ?? `${name}-program`}"
version = "0.1.0"
edition = "${edition}"
[dependencies]
${dependency ?? `tokio = { version = "=1.54.1", features = ${JSON.stringify(features)} }`}
${beside}
[profile.release]
debug = 2
codegen-units = 1
${patch}`,
    );
  write('');
  const cargo = (command, env = {}) =>
    execFileSync('cargo', command, { cwd: project, env: { ...process.env, ...env }, maxBuffer: 64 << 20 });
  const build = (patch, remaps, more = []) => {
    write(patch);
    const own = [`${project}=${place}`, `${process.env.CARGO_HOME ?? join(process.env.HOME, '.cargo')}=/cargo`];
    const flags = [
      ...more,
      '--sysroot',
      sysroot(),
      ...[...remaps, ...own].map((prefix) => `--remap-path-prefix=${prefix}`),
    ];
    // With a target of their own flags do not reach what runs while compiling.
    const target = 'x86_64-unknown-linux-gnu';
    cargo(['build', '--release', '--target', target], { CARGO_ENCODED_RUSTFLAGS: flags.join('\x1f') });
    return join(project, 'target', target, `release/${binary ?? `${crate ?? name}-program`}`);
  };
  return { folder: project, cargo, build };
}

/** Adds a call, declared so, behind the text that matches. */
function addCall(file, where, declaration, call) {
  const text = readFileSync(file, 'utf8');
  const found = where.exec(text);
  if (found === null) throw new Error(`${file} has no ${where}`);
  const at = found.index + found[0].length;
  const added = `\nextern "Rust" { ${declaration} }\nunsafe { ${call} };\n`;
  writeFileSync(file, text.slice(0, at) + added + text.slice(at));
}
