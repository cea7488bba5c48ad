// What one recording has lost, or does not know, is still known when several are merged.
import t from 'tap';
import type { TraceRead } from '../../../../src/trace/formats/read/read-trace.js';
import type { RecordingFacts } from '../../../../src/trace/index.js';
import { mergedFacts } from '../../../../src/trace/report/merge/merged-facts.js';

const whole: RecordingFacts = {
  end: 'guest-ended',
  stub: 'qemu-system',
  events: 100,
  stops: 5,
  records: 95,
  missing: 0,
  foreignHits: 0,
  neverLoaded: [],
  tailLost: false,
};
const poor: RecordingFacts = {
  end: 'until',
  stub: 'gdbserver',
  events: 10,
  stops: 10,
  records: 0,
  missing: 7,
  foreignHits: 2,
  neverLoaded: ['late'],
  tailLost: true,
  leftOut: 30,
  timesAtMost: 'stops take time',
  stopsBeside: 4,
  ringFull: 3,
  ringWaitedNs: 900,
  stoppedAt: ['5', '70'],
};

function read(recording: RecordingFacts | undefined, cut?: TraceRead['cut']): TraceRead {
  return {
    info: {
      program: 'p',
      buildId: undefined,
      arch: 'a',
      clock: { name: 'c', resolutionNs: 1, guest: true },
      harts: [],
    },
    facts: recording && { probes: [], recording, ownTime: { leastNs: 4, mostNs: 9, totalNs: 50 } },
    ...{ events: 0, isOwn: recording !== undefined, cut, otherPackets: 0 },
  };
}

t.test('losses and bounds of each stay, numbers add up', (t) => {
  const { recording, ownTime, isCut } = mergedFacts([read(whole), read(poor), read(undefined)], [0, 1000, 0]);
  t.same(recording, {
    ...{ end: 'guest-ended, until', stub: 'qemu-system + gdbserver', events: 110, stops: 15, records: 95 },
    ...{ missing: 7, foreignHits: 2, neverLoaded: ['late'], tailLost: true, leftOut: 30 },
    ...{ timesAtMost: 'stops take time', stopsBeside: 4, ringFull: 3, ringWaitedNs: 900, samples: undefined },
    // Of the merged trace's time.
    stoppedAt: ['1005', '1070'],
  });
  t.same(ownTime, { leastNs: 4, mostNs: 9, totalNs: 100 });
  t.equal(isCut, false);
  t.end();
});

t.test('of other programs nothing is known, and a missing end is', (t) => {
  t.same(mergedFacts([read(undefined), read(undefined, { at: 5, bytes: 1 })], [0, 0]), {
    ...{ probes: [], ownTime: undefined, recording: undefined, isCut: true },
  });
  t.end();
});
