// The tasks of programs whose tasks come and go, stopped at any instruction, against the list that the program keeps itself: which live, at
// which await each waits, and who has the mutex. scripts/coverage/live.ts does it for more programs and builds.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { long, usually } from '../support/long.js';
import { gdbserver, pollsProgram, waitingProgram } from '../support/native.js';
import { compare, nativeBook, Watched } from '../support/task-book.js';

const LOOKS = long ? 20 : 3;

const programs = usually(
  [
    ...(['live-tokio-o0', 'live-tokio-o3'] as const).flatMap((name) =>
      ['ct', 'mt', 'local'].map((mode) => [name, mode] as const),
    ),
    ['live-smol-o3', '1'],
    ['live-smol-o3', '3'],
  ] as const,
  ([name, mode]) => (name === 'live-tokio-o3' && mode === 'mt') || (name === 'live-smol-o3' && mode === '3'),
);

for (const [name, mode] of programs) {
  t.test(`${name} ${mode}: at ${LOOKS} moments, the tasks of the program's own list and no others`, async (t) => {
    const elf = pollsProgram(t, name);
    const { pid } = await waitingProgram(t, elf, [mode]);
    const server = await gdbserver(t, '--attach', pid);
    const watched = await Watched.at(server.address, elf);
    for (let look = 1; look <= LOOKS; look++) {
      const resumed = watched.session.resume();
      await sleep(1 + ((look * 7) % 10));
      await watched.session.interrupt();
      await resumed;
      const book = await nativeBook(watched);
      const found = await watched.tasks();
      t.ok(book.filter(({ phase }) => phase === 'live').length >= 5);
      t.strictSame(compare(found, book, `live_${/-(\w+)-/.exec(name)?.[1]}.rs`), [], `look ${look}`);
    }
    watched.session.close();
  });
}
