// What the texts between the records of a recording may be.
import t from 'tap';
import { entryFrom } from '../../src/record/log-entries.js';

const probe = { name: 'poll:a', address: '0x1000', engine: 'none', why: 'too often', leftOutBy: 'stops' };
const recording = {
  ...{ end: 'duration', stub: 'QEMU', events: 1, stops: 2, records: 3, missing: 0, foreignHits: 0 },
  ...{ neverLoaded: [], tailLost: false, leftOut: 4 },
};
const end = { type: 'end', probes: [probe], recording };

t.test('an entry is what it says, without members that its type does not have', async (t) => {
  t.strictSame(entryFrom(JSON.stringify(end)), end);
  const more = { ...end, why: 1, probes: [{ ...probe, key: 7 }], recording: { ...recording, samples: 'rubbish' } };
  t.strictSame(entryFrom(JSON.stringify(more)), end);
  t.strictSame(entryFrom('{"type":"reset","time":1}'), { type: 'reset' });
});

t.test('an entry with a member of another type is not known', async (t) => {
  const wrong: readonly object[] = [
    { ...end, probes: [{ ...probe, leftOutBy: 'nobody' }] },
    { ...end, probes: [{ ...probe, name: undefined }] },
    { ...end, probes: { 0: probe } },
    { ...end, recording: { ...recording, leftOut: 'x' } },
    { ...end, recording: { ...recording, events: undefined } },
    { type: 'clock', ticks: 0, nanos: 0, nanosPerTick: 0 },
    { type: 'clock', ticks: 0, nanos: 0, nanosPerTick: 1e300 },
    { type: 'stood', time: 1e300 },
    { type: 'words', words: [['0x1']] },
    { type: 'toString' },
    [],
  ];
  for (const one of wrong) t.equal(entryFrom(JSON.stringify(one)), undefined, JSON.stringify(one));
  t.equal(entryFrom('{'), undefined);
});
