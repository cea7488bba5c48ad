// What reading one file may cost: allowances and prices as the head of the class has them.
import t from 'tap';
import { Budget } from '../../src/base/budget.js';
import { RsptraceError } from '../../src/base/errors.js';

/** Units of work and bytes that a file of no size may cost, and what each byte adds. */
const work = 20_000_000;
const memory = 134_217_728;
const tooCostly = { code: 'ELF_TOO_COSTLY' };

t.test('all that is allowed may be spent, and no unit more', async (t) => {
  const exact = new Budget('a.elf', 0, 1);
  exact.spend(work, 'x');
  t.strictSame(exact.used, { work: 1, memory: 0 });
  t.throws(() => exact.spend(1, '.debug_info'), {
    ...tooCostly,
    message: 'reading .debug_info of a.elf takes more work than a file of 0 bytes should need',
    hint: /RSPTRACE_BUDGET=10 /,
  });
  const held = new Budget('a.elf', 0, 1);
  held.hold(memory, 'x');
  t.strictSame(held.used, { work: 0, memory: 1 });
  t.throws(() => held.hold(1, 'names'), { ...tooCostly, message: /names of a\.elf takes more memory than/ });
});

t.test('each byte of the file adds to it, and so does the factor', async (t) => {
  const sized = new Budget('a.elf', 1000, 1);
  sized.spend(work + 32_000, 'x');
  sized.hold(memory + 24_000, 'x');
  t.strictSame(sized.used, { work: 1, memory: 1 });
  const half = new Budget('a.elf', 1000, 2);
  half.spend(work + 32_000, 'x');
  half.hold(memory + 24_000, 'x');
  t.strictSame(half.used, { work: 0.5, memory: 0.5 });
  half.spend(work + 32_000, 'x');
  t.throws(() => half.spend(1, 'x'), { ...tooCostly, hint: /RSPTRACE_BUDGET=20 / });
});

t.test('a fault costs a hundred units', async (t) => {
  const budget = new Budget('a.elf', 0, 1);
  for (let i = 0; i < work / 100; i++) budget.fault('x');
  t.equal(budget.used.work, 1);
  t.throws(() => budget.fault('x'), tooCostly);
});

t.test('beyond it every reader gets the first error', async (t) => {
  const budget = new Budget('a.elf', 0, 1);
  const thrown: unknown[] = [];
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      thrown.push(error);
    }
  };
  attempt(() => budget.hold(2 * memory, 'first'));
  attempt(() => budget.spend(0, 'second'));
  attempt(() => budget.answer(() => budget.spend(1, 'third')));
  t.equal(thrown.length, 3);
  t.ok(thrown.every((error) => error === thrown[0]));
  t.match((thrown[0] as RsptraceError).message, /reading first /);
  t.strictSame(budget.used, { work: 1, memory: 1 });
});

t.test('what is no number is beyond it too', async (t) => {
  t.throws(() => new Budget('a.elf', 0, 1).spend(Number.NaN, 'x'), tooCostly);
  t.throws(() => new Budget('a.elf', 0, 1).hold(Number.NaN, 'x'), tooCostly);
});

t.test('the first 2,000 units of an answer are free, once for questions inside questions', async (t) => {
  const budget = new Budget('a.elf', 0, 1);
  budget.spend(work - 1000, 'x');
  const before = budget.used.work;
  for (let i = 0; i < 10; i++) budget.answer(() => budget.spend(2000, 'x'));
  t.equal(budget.used.work, before, 'ten answers of 2,000');
  t.equal(
    budget.answer(() => 'read'),
    'read',
  );
  budget.answer(() => budget.spend(1, 'x'));
  t.equal(budget.used.work, before, 'what was not used is not kept');
  budget.answer(() => budget.spend(2500, 'x'));
  t.equal(budget.used.work, 1 - 500 / work, 'what goes beyond is counted');
  const nested = new Budget('a.elf', 0, 1);
  nested.answer(() => {
    nested.answer(() => nested.spend(2000, 'x'));
    nested.answer(() => nested.spend(2000, 'x'));
  });
  t.equal(nested.used.work, 1 - (work - 2000) / work);
  t.throws(
    () =>
      nested.answer(() => {
        throw new RsptraceError('INPUT_DAMAGED', 'damaged');
      }),
    { code: 'INPUT_DAMAGED' },
  );
  nested.answer(() => nested.spend(2000, 'x'));
  t.equal(nested.used.work, 1 - (work - 2000) / work, 'after an error answers are free again');
  const spent = new Budget('a.elf', 0, 1);
  spent.spend(work, 'x');
  spent.answer(() => spent.spend(2000, 'x'));
  t.equal(spent.used.work, 1, 'with nothing left, but nothing owed either');
});

t.test('a size as people say it', async (t) => {
  const said: [number, string][] = [
    [0, '0 bytes'],
    [1023, '1023 bytes'],
    [1024, '1 KiB'],
    [1_048_575, '1024 KiB'],
    [1_048_576, '1 MiB'],
    [5 << 20, '5 MiB'],
  ];
  for (const [size, text] of said)
    t.throws(() => new Budget('a.elf', size, 1).spend(1e12, 'x'), { message: new RegExp(` file of ${text} should`) });
});

t.test('RSPTRACE_BUDGET is the factor, where it is a sensible number', async (t) => {
  const factor = (value: string | undefined): number => {
    if (value === undefined) delete process.env.RSPTRACE_BUDGET;
    else process.env.RSPTRACE_BUDGET = value;
    const budget = new Budget('a.elf', 0);
    budget.spend(work / 10, 'x');
    return Math.round((1000 * 0.1) / budget.used.work) / 1000;
  };
  const before = process.env.RSPTRACE_BUDGET;
  t.teardown(() => {
    if (before === undefined) delete process.env.RSPTRACE_BUDGET;
    else process.env.RSPTRACE_BUDGET = before;
  });
  t.equal(factor(undefined), 1);
  t.equal(factor('4'), 4);
  t.equal(factor('0.5'), 0.5);
  for (const odd of ['0', '-2', 'much', '1e6', '']) t.equal(factor(odd), 1, odd);
});

t.test('who asks for something else may spend as much again, unless it was too much', (t) => {
  const budget = new Budget('some.elf', 0, 1);
  for (const _ of [1, 2, 3]) {
    budget.renew();
    budget.spend(20_000_000, 'a part');
    budget.hold(128 << 20, 'a part');
  }
  t.throws(() => budget.spend(1, 'a part'), { code: 'ELF_TOO_COSTLY' });
  budget.renew();
  t.throws(() => budget.spend(1, 'a part'), { code: 'ELF_TOO_COSTLY' });
  t.end();
});
