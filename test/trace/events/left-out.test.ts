// What a probe is on is a member of it, and no part of its name.
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { namesLeftOut, onEvents, type ProbeFact, readTrace } from '../../../src/trace/index.js';
import { oneTask } from '../one-task.js';
import { folder, write } from '../written.js';

const probe = (name: string, subject?: string): ProbeFact => ({
  ...{ name, address: addr(0x8000_0000n), engine: 'none', why: 'too many' },
  ...(subject === undefined ? {} : { subject }),
});

t.test('left-out probes: the subject, not a part of the name', async (t) => {
  const probes = [probe('src/a in b/work.rs:3'), probe('k::leaf in k::run', 'k::leaf'), probe('k::add')];
  t.same([...namesLeftOut(probes)], ['src/a in b/work.rs:3', 'k::leaf', 'k::add']);
});

t.test('Perfetto: the subject is read back', async (t) => {
  const others = [{ name: 'k::add' }, { name: 'k::leaf in k::add', subject: 'k::leaf' }];
  const probes = [probe('k::leaf in k::run', 'k::leaf'), { ...probe('k::add'), others }];
  write('left-out.pftrace', oneTask, { probes });
  const { facts } = await readTrace(
    join(folder, 'left-out.pftrace'),
    onEvents(() => {}),
  );
  t.same(
    facts?.probes.map(({ name, subject, others }) => [name, subject, others]),
    probes.map(({ name, subject, others }) => [name, subject, others]),
  );
});
