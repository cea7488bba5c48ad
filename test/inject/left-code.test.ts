// What a forked child has inherited, taken out of a real process past its server.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, readSync } from 'node:fs';
import t from 'tap';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { cleanChild } from '../../src/inject/index.js';
import type { Session } from '../../src/rsp/index.js';

t.test('the code of a child here is written past the server, but for what lies under its breakpoints', async (t) => {
  const child = spawn('cat');
  t.teardown(() => void child.kill());
  child.stdin.write('x');
  await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  const [, stack = ''] = /^([0-9a-f]+)-.*\[stack\]$/m.exec(readFileSync(`/proc/${pid}/maps`, 'latin1')) ?? [];
  const start = addr(BigInt(`0x${stack}`));
  const file = openSync(`/proc/${pid}/mem`, 'r');
  const read = (at: Addr, length: number): Uint8Array => {
    const bytes = new Uint8Array(length);
    readSync(file, bytes, 0, length, at);
    return bytes;
  };
  const sent: Addr[] = [];
  const session: unknown = {
    ...{ processHere: 1, breakpoints: [{ type: 0, address: addOffset(start, 18), kind: 1 }] },
    memory: () => ({ read: async (at: Addr, length: number) => read(at, length) }),
    batch: () => ({ writeMemory: (at: Addr) => ({ value: sent.push(at) > 0 }), send: async () => {} }),
  };
  const writes = [0, 16, 32].map((at) => ({ address: addOffset(start, at), bytes: Uint8Array.of(1, 2, 3, 4, 5) }));
  const [first, ...exits] = writes;
  const originals = first ? [first] : [];
  t.equal(await cleanChild(session as Session, `p${pid.toString(16)}.1`, { originals }, exits), true);
  t.same(sent, [addOffset(start, 16)]);
  t.same([...read(start, 5), ...read(addOffset(start, 32), 5)], [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
});
