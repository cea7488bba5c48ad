// Polls whose records have come before are emitted without looking at each record. What comes of it is held against
// what comes of the same records one by one.
import { join } from 'node:path';
import t from 'tap';
import { RecordDispatcher } from '../../src/inject/record-dispatcher.js';
import { parseProbe } from '../../src/probes/index.js';
import { KeptRecords, prepare } from '../../src/record/index.js';
import {
  onEvents,
  type PollBegin,
  type PollEnd,
  type StateChange,
  type TraceEvent,
  type Wake,
} from '../../src/trace/index.js';
import { elfPath, qemuArgv } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';

const numbers = new WeakMap<object, number>();

/** Of the other events. */
type Members = Omit<PollEnd, 'type'> & Omit<StateChange, 'type'> & Omit<Wake, 'type' | 'root'>;

/** All of an event; others that it names by their numbers. */
function textOf(event: TraceEvent, number: number): string {
  numbers.set(event, number);
  const one = event as Partial<Omit<PollBegin, 'type'> & Members>;
  const chain = one.chain?.map(({ future, typeName, address, state }) =>
    [future?.key, typeName, address, state?.name].join(),
  );
  const others = [one.begin, one.around].map((other) => other && numbers.get(other));
  const names = [one.future?.key, one.root?.key, one.thread?.key, one.by?.key, one.caller?.function];
  const states = [one.state?.name, one.from?.name, one.to?.name, one.derived, one.result, one.wasLost];
  const places = [event.type, one.time, one.hart, one.address, one.waker, one.depth, one.began];
  return [...places, ...names, ...states, ...others, ...(chain ?? [])].join(' ');
}

/** And how much of it comes again at least. */
const guests = [
  ['rv-o2', 0.3],
  ['x86-o2', 0.3],
  ['rv-o0', 0.3],
] as const;

for (const [name, least] of usually(guests, ([name]) => name !== 'rv-o0')) {
  t.test(`${name}: polls that come again`, async (t) => {
    const trace = join(scratchFolder(t), 'a.records');
    const asked = ['-p', 'poll:**', '--engine', 'target', '-o', trace, '--json', elfPath(name)];
    const ran = await rsptrace('run', ...asked, '--', ...qemuArgv(name, ['-icount', 'shift=0'])).ended;
    t.equal(ran.status, 0, ran.stderr.slice(-300));
    const program = await prepare(elfPath(name), [parseProbe('poll:**')], undefined, {
      inlined: 'patched',
      wakes: 'auto',
    });
    const eventsOf = async (oneByOne: boolean): Promise<{ texts: string[]; records: number }> => {
      const texts: string[] = [];
      const sink = onEvents((event) => texts.push(textOf(event, texts.length)));
      const kept = new KeptRecords(trace);
      const inputs = oneByOne ? { entry: () => {}, record: () => {} } : undefined;
      const options = {
        program,
        engine: 'target',
        functions: {},
        stackDepth: undefined,
        thresholdNs: undefined,
      } as const;
      const { records } = await kept.recover({ ...options, sink, inputs });
      kept.close();
      return { texts, records };
    };
    const { dispatch } = RecordDispatcher.prototype;
    let alone = 0;
    RecordDispatcher.prototype.dispatch = function (view, offset) {
      alone++;
      dispatch.call(this, view, offset);
    };
    t.teardown(() => {
      RecordDispatcher.prototype.dispatch = dispatch;
    });
    const whole = await eventsOf(false);
    const repeated = whole.records - alone;
    const single = await eventsOf(true);
    t.equal(whole.records, single.records);
    t.equal(whole.texts.length, single.texts.length);
    const other = whole.texts.findIndex((text, i) => text !== single.texts[i]);
    t.equal(whole.texts[other], single.texts[other], `event ${other}`);
    t.ok(repeated > least * whole.records, `${repeated} of ${whole.records} records came again`);
  });
}
