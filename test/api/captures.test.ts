// Which values a record holds whole, of types made by hand: a damaged or made-up program may nest them as it likes.
import t from 'tap';
import { parseCapture, planCapture } from '../../src/api/captures.js';
import type { Shape } from '../../src/values/index.js';

const integer: Shape = { name: 'int', size: 4, die: undefined, kind: 'integer', signed: true, character: false };
const reference: Shape = { ...integer, name: '&int', size: 8, kind: 'pointer', style: 'ref', target: () => integer };

let asked = 0;

/** A struct with `count` members of a type, as a damaged program has them: all at its start. */
function around(inner: Shape, count: number): Shape {
  const type = (): Shape => {
    asked++;
    return inner;
  };
  const fields = Array.from({ length: count }, (_, i) => ({ name: `m${i}`, offset: 0, bits: undefined, type }));
  return { name: 'S', size: inner.size, die: undefined, kind: 'struct', short: 'S', fields, view: () => undefined };
}

function nested(inner: Shape, levels: number, members: number): Shape {
  let shape = inner;
  for (let i = 0; i < levels; i++) shape = around(shape, members);
  return shape;
}

function planned(shape: Shape): unknown {
  const where = { kind: 'pointer', register: 'a0' } as const;
  const plan = planCapture(parseCapture('self'), [{ name: 'self', shape, where }], undefined);
  return typeof plan === 'string' ? plan.replace(/.*: /, '') : plan.kind;
}

t.test('each type inside is asked about a few times, however often it repeats', async (t) => {
  asked = 0;
  t.equal(planned(nested(integer, 8, 4)), 'memory');
  t.ok(asked <= 8 * 4 * 2, `${asked} members were asked for`);
});

t.test('what points to more, at any depth, and what is nested too deep, is read at a stop', async (t) => {
  const stop = 'a S points to what it is';
  t.equal(planned(nested(reference, 3, 2)), stop);
  t.equal(planned(nested(integer, 9, 1)), stop);
  t.equal(planned(around({ ...integer, size: undefined }, 1)), stop);
  t.equal(planned(reference), 'a &int points to what it is');
});
