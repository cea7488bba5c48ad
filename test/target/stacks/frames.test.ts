// Names of frames. Where a poll was inlined, the profile by what is awaited has it as a poll, too.
import t from 'tap';
import { findFutures } from '../../../src/async/futures/index.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { codePlace, SampledFrames } from '../../../src/target/stacks/index.js';
import { type Frame, SourceFrames } from '../../../src/target/unwind/index.js';
import { elfPath } from '../../qemu/guests/guests.js';

t.test('inlined polls are polls of the await tree, around what they call', async (t) => {
  for (const name of ['rv-o2-long', 'x86-o2']) {
    const elf = await ElfFile.open(elfPath(name));
    const debug = DebugInfo.load(elf);
    const futures = findFutures(debug);
    const names = new SampledFrames([{ elf, debug, futures }]);
    const stack = (pc: bigint): readonly string[] | undefined => {
      const found = names.awaited([{ pc, exact: true, image: undefined } as unknown as Frame]);
      return found?.map((frame) => frame.name);
    };
    let inside = 0;
    for (const future of futures.all) {
      for (const { address, into, host } of future.inlined) {
        const found = stack(address) ?? [];
        t.ok(found.includes(`poll ${future.future}`), `${name}: ${future.future} in ${into}: ${found.join(' < ')}`);
        const around = futures.byPollAddress(elf.codes.fromCode(host.lowPc ?? 0));
        if (around === undefined) continue;
        inside++;
        t.equal(found.at(-1), `poll ${around.future}`, 'the poll around it is the outermost');
      }
    }
    t.ok(inside > 5, `${inside} inside a poll function`);
    const other = [...elf.symbols].find(
      (symbol) => symbol.name.includes('poll') === false && symbol.type === 'function',
    );
    t.equal(other && stack(other.address), undefined, 'no poll, no tree');
  }
});

t.test(
  'a caller is named by its call, which may be the last of its function, whatever was sampled before',
  async (t) => {
    const elf = await ElfFile.open(elfPath('rv-o2'));
    const debug = DebugInfo.load(elf);
    const futures = findFutures(debug);
    const made = () => new SampledFrames([{ elf, debug, futures }]);
    const frame = (pc: bigint, exact: boolean) => ({ pc, exact, image: { elf, debug } }) as unknown as Frame;
    const names = (frames: SampledFrames, at: Frame): readonly string[] => frames.of([at]).map(({ name }) => name);
    const functions = [...elf.symbols].filter(({ type, size }) => type === 'function' && size > 0);
    const ends = new Set(functions.map(({ address, size }) => address + BigInt(size)));
    const frames = made();
    let differ = 0;
    for (const { address } of functions.filter((one) => ends.has(one.address)).slice(0, 40)) {
      const [callee, caller] = [frame(address, true), frame(address, false)];
      const called = names(frames, callee);
      t.equal(frames.areNamed([caller]), false);
      const before = names(made(), frame(address - 1n, true));
      t.strictSame(names(frames, caller), before);
      t.strictSame(names(frames, callee), called);
      t.equal(frames.areNamed([caller, callee]), true);
      differ += called.at(-1) === before.at(-1) ? 0 : 1;
    }
    t.ok(differ > 10, `${differ} at the begin of another function`);
    const [named] = frames.of([frame(functions.at(-1)?.address ?? 0n, true)]);
    t.match(frames.mark(named?.name ?? ''), { name: named?.name, file: undefined }, 'a mark is no function');
  },
);

/** The names of code in std, of Rust 1.65 to 1.96, and the path that its documentation has. */
const documented: Readonly<Record<string, string>> = {
  'std::sync::mpsc::Receiver<T>::recv': 'std::sync::mpsc::Receiver<T>::recv',
  'std::sync::mutex::Mutex::lock': 'std::sync::Mutex::lock',
  'std::sync::poison::mutex::Mutex<std::string::String>::lock': 'std::sync::Mutex<std::string::String>::lock',
  '<std::sync::poison::condvar::Condvar>::wait': 'std::sync::Condvar::wait',
  '<std::sync::poison::rwlock::RwLock<u8>>::read': '<std::sync::RwLock<u8>>::read',
  'std::sync::nonpoison::mutex::Mutex::lock': 'std::sync::nonpoison::Mutex::lock',
  'std::sync::atomic::AtomicUsize::load': 'std::sync::atomic::AtomicUsize::load',
  'std::sync::barrier::Barrier::wait': 'std::sync::Barrier::wait',
  'std::thread::functions::sleep': 'std::thread::sleep',
  'std::thread::join_handle::JoinHandle<T>::join': 'std::thread::JoinHandle<T>::join',
  'std::os::unix::net::stream::UnixStream::connect': 'std::os::unix::net::UnixStream::connect',
  'std::net::tcp::TcpListener::accept': 'std::net::TcpListener::accept',
  'std::io::stdio::Stdin::read_line': 'std::io::Stdin::read_line',
  'std::io::buffered::bufreader::BufReader<R>::buffer': 'std::io::BufReader<R>::buffer',
  'std::collections::hash_map::Entry::or_insert': 'std::collections::hash_map::Entry::or_insert',
  'std::sys::pal::unix::futex::futex_wait': 'std::sys::pal::unix::futex::futex_wait',
};

t.test('a function of std has the path by which it is known', async (t) => {
  const elf = await ElfFile.open(elfPath('rv-o2'));
  for (const [name, known] of Object.entries(documented)) {
    const sources = new SourceFrames(elf, undefined);
    sources.of = () => [{ function: name, file: undefined, line: undefined, inlined: false }];
    t.equal(codePlace([{ pc: 0n, exact: true, image: undefined } as unknown as Frame], sources).inside, known);
  }
});
