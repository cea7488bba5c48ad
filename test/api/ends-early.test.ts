// A target that is disposed of while it runs, and probes that are asked for meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { attach } from '../../src/index.js';
import { start } from '../support/command.js';
import { compileC, gdbserver, pollsProgram } from '../support/native.js';

const counting = `#include <stdio.h>
#include <unistd.h>
__attribute__((noipa)) int work(int x) { return x * 3; }
int main(void) {
  long sum = 0;
  for (int i = 0; i < 4000; i++) { sum += work(i); usleep(300); }
  printf("sum %ld\\n", sum);
  fflush(stdout);
}
`;

for (const engine of ['auto', 'stop'] as const) {
  t.test(`disposed of in a run, engine ${engine}: the program computes as it does untraced`, async (t) => {
    const program = compileC(t, counting);
    const server = await gdbserver(t, program);
    const target = await attach(server.address, program, { engine });
    const probe = target.probe('fn:work');
    const run = target.run({ duration: '60s' });
    for (let tries = 0; probe.hits === 0 && tries < 600; tries++) await sleep(50);
    await target[Symbol.asyncDispose]();
    t.match(await run, { end: 'interrupted', missing: 0 });
    await server.shows('sum');
    t.match((await server.ended).stdout, (await start(program, []).ended).stdout);
  });
}

t.test('a probe that a handler asks for is for the runs from then on', async (t) => {
  const program = pollsProgram(t);
  const server = await gdbserver(t, program, 'alone');
  await using target = await attach(server.address, program);
  let late: ReturnType<typeof target.probe> | undefined;
  const first = target.probe('poll:**', () => {
    late ??= target.probe('poll:**', { capture: ['self'] });
  });
  t.match(await target.run({ duration: '60s' }), { end: 'guest-ended' });
  t.ok(first.hits > 1, `${first.hits} hits`);
  t.equal(late?.hits, 0);
});
