// Whose result is that of what it holds: types told by hand.
import t from 'tap';
import type { FutureType, HeldFuture } from '../../../../src/async/futures/index.js';
import { handedOn } from '../../../../src/probes/kinds/poll/traced-poll.js';

const body = { output: 'u64', states: [{ name: 'Unresumed' }], holds: [] } as unknown as FutureType;
const held = (hops: unknown[] = []) => ({ offset: 8, future: body, hops, repeats: [] }) as unknown as HeldFuture;
const byHand = (output: string | undefined, ...holds: HeldFuture[]) =>
  ({ output, states: [], holds }) as unknown as FutureType;

t.test('one that holds a single Future in place, and has its output', async (t) => {
  t.strictSame(handedOn(byHand('u64', held())), { future: body, offset: 8 });
  t.equal(handedOn(byHand('Result<u64, Elapsed>', held())), undefined, 'a timeout');
  t.equal(handedOn(byHand(undefined, held())), undefined);
  t.equal(handedOn(byHand('u64', held(), held())), undefined, 'a select');
  t.equal(handedOn(byHand('u64', held([{}]))), undefined, 'what it points to may be another one');
  t.equal(handedOn({ ...byHand('u64', held()), states: body.states }), undefined, 'one that tells by itself');
});
