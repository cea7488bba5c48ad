// Room for a copy: what is taken does not overlap, and what a process on this machine can write to fits.
import { spawn } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import t from 'tap';
import { CopyRoom, roomForCopy } from '../../src/target/process-memory.js';
import { gdbserver } from '../support/native.js';

t.test('pieces lie one behind the other, and the last one can be given back', async (t) => {
  const room = new CopyRoom(10_000);
  const [first, second] = [room.take(4096), room.take(5000)];
  t.equal(first?.length, 4096);
  t.equal(second?.byteOffset, 4096);
  t.equal(room.take(905), undefined, 'there are 904');
  if (second) room.giveBack(second);
  t.equal(room.take(5904)?.byteOffset, 4096);
  t.equal(room.take(1), undefined);
});

t.test('a process has room if it is traced', async (t) => {
  const program = realpathSync('/bin/sleep');
  const child = spawn(program, ['100']);
  t.teardown(() => void child.kill('SIGKILL'));
  t.equal(roomForCopy(program).take(4096), undefined, 'nobody traces it');
  await gdbserver(t, '--attach', String(child.pid));
  // Total of proc(5)'s own sizes: `Size: N kB` of each mapping that is writable.
  const smaps = readFileSync(`/proc/${child.pid}/smaps`, 'latin1').split(/^(?=[0-9a-f]+-)/m);
  const sizes = smaps.filter((each) => / rw.. /.test(each)).map((each) => Number(/^Size:\s+(\d+)/m.exec(each)?.[1]));
  const bytes = sizes.reduce((a, b) => a + b, 0) * 1024;
  const room = roomForCopy(program);
  t.equal(room.take(bytes)?.length, bytes);
  t.equal(room.take(1), undefined);
  t.equal(roomForCopy(import.meta.filename).take(1), undefined, 'a file that no process runs');
});
