// Run by a supervisor whose rsptrace has been killed, with the words of `whenKilled`.
import { text } from 'node:stream/consumers';
import { serverOf, takenOutText, takeOverServer, waitsForEnd } from '../api/index.js';
import { messageOf } from '../base/errors.js';
import { ElfFile } from '../elf/index.js';
import { removeLeftovers } from '../inject/index.js';
import { architectureFor, connect, loadedElf } from '../target/index.js';
import { plural } from '../text/index.js';
import { note } from './failure.js';

/** How long a stub may take to answer, in milliseconds. */
const answerMs = 5000;

/** Takes out what is in a process of this machine, and ends its gdbserver. */
async function leaveProcess(word: string): Promise<string | undefined> {
  const server = await serverOf(word);
  const taken = server === undefined ? undefined : await takeOverServer(server);
  return taken && takenOutText(taken);
}

/** Takes out what is in a target at a stub, and lets it run on. Somebody else's that never ran stands as before. */
async function leaveStub(whose: string, path: string, remote: string): Promise<string | undefined> {
  const linked = await ElfFile.open(path);
  const arch = architectureFor(linked);
  await arch.prepare();
  await using session = await connect(remote, { timeoutMs: answerMs, expectedArchitecture: arch.name });
  if (whose === 'stub' && (await (await session.stub()).neverRan())) {
    session.close();
    return undefined;
  }
  const { restored } = await removeLeftovers(session, arch, await loadedElf(session, linked));
  await session.detach();
  return `${plural(restored.length, 'function')} restored in the target at ${remote}, which runs on`;
}

/** Waits until rsptrace has ended, loaded as it is. Undefined if there is nothing to do: see `Supervisor`. */
async function wordsAtEnd(words: readonly string[]): Promise<readonly string[] | undefined> {
  // Its rsptrace may be gone before it is loaded: then the shell cleans up.
  process.stdout.on('error', () => {}).write('loaded\n');
  const said = await text(process.stdin);
  const [first, ...more] = said.split('\n').slice(0, -1);
  return first === undefined || more.includes('') ? undefined : [...words, ...more];
}

/** Runs with the words of the process. */
async function cleanUp(): Promise<void> {
  const given = process.argv.slice(2);
  const [kind = '', path = '', remote = ''] =
    given[0] === waitsForEnd ? ((await wordsAtEnd(given.slice(1))) ?? process.exit()) : given;
  const isServer = kind === 'server';
  try {
    const done = await (isServer ? leaveProcess(path) : leaveStub(kind, path, remote));
    if (done !== undefined) note(`it was killed. ${done}`);
  } catch (thrown) {
    const [what, wayOut] = isServer
      ? ['its gdbserver', '']
      : ['its target', `; rsptrace detach --remote ${remote} ${path} tries again`];
    note(`it was killed, and ${what} could not be left in order: ${messageOf(thrown)}${wayOut}`);
  }
}

void cleanUp();
