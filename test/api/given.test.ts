// What a program in JavaScript gives is checked when it gives it: an error has a code, and no option is passed over.
import t from 'tap';
import { attach, launch, RsptraceError } from '../../src/index.js';
import { compileC, gdbserver } from '../support/native.js';

t.test('of a wrong type, or of no such name', async (t) => {
  const program = compileC(t, 'int main(void) { return 0; }');
  const server = await gdbserver(t, program);
  await using target = await attach(server.address, program, {});
  const probe = target.probe.bind(target) as (...words: readonly unknown[]) => unknown;
  const run = target.run.bind(target) as (options: unknown) => Promise<unknown>;
  const wrong: Record<string, () => unknown> = {
    'a probe: this is not a text': () => probe(),
    'the options of probe: this is not an object': () => probe('fn:main', null),
    'capture of probe: this is not a list of texts': () => probe('fn:main', { capture: 'x' }),
    'probe has no option onreturn': () => probe('fn:main', { onreturn: () => {} }),
    'the handler of a probe: this is not a function': () => probe('fn:main', {}, 'x'),
    'the options of run: this is not an object': () => run(5),
    'run has no option durationMs': () => run({ durationMs: 5 }),
    'duration of run: this is not a length of time': () => run({ duration: null }),
    'maxEvents of run: this is not a whole number above 0': () => run({ maxEvents: Number.NaN }),
    'until of run: this is not a text': () => run({ until: 5 }),
    'sink of run: this is not an object with begin, event, hart, flush, end': () => run({ sink: {} }),
    'engine of attach: this is not one of auto, mixed, target, stop': () =>
      attach(':1', program, { engine: 'fast' } as object),
    'the address of the stub: this is not a text': () => attach(5 as unknown as string, program),
    'command of launch: this is not a list of texts': () =>
      launch({ elf: program, command: 'qemu' as unknown as string[] }),
  };
  for (const [sentence, act] of Object.entries(wrong)) {
    const error = await Promise.resolve()
      .then(act)
      .catch((thrown: unknown) => thrown);
    t.ok(error instanceof RsptraceError && error.code === 'USAGE', `${sentence}: ${error}`);
    t.match(error, { message: sentence });
  }
  t.match(await target.run({ duration: '20s', signal: undefined }), { end: 'guest-ended' });
});
