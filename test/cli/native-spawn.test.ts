// vfork and posix_spawn at a real gdbserver: the child runs in its parent's memory until it execs, with breakpoints or trampolines in it.
import t from 'tap';
import { start } from '../support/command.js';
import { compileReleased } from '../support/native.js';
import { sameCalls, trace, withoutStops } from '../support/native-trace.js';

const probes = ['work', 'other', 'launch', 'prepare'].flatMap((name) => ['-p', `fn:${name}`]);

for (const engine of ['stop', 'target']) {
  t.test(`--engine ${engine}: the parent's calls, and children that are unharmed`, async (t) => {
    const program = compileReleased(t, 'spawn.c');
    const untraced = (await start(program, []).ended).stdout;
    t.match(untraced, /(child \w+\nended 700\n){6}/);
    const { output, stdout } = await trace(t, [program], '--engine', engine, ...probes);
    t.equal(stdout, untraced, 'children compute and end as they do untraced');
    t.equal(output.end, 'guest-ended');
    t.equal(output.guest_exit, 'status 0');
    const prepared = output.functions.find(({ function: name }) => name === 'prepare')?.calls ?? 0;
    if (engine === 'target') {
      withoutStops(t, output);
      sameCalls(t, output, untraced);
    } else {
      sameCalls(t, output, untraced.replace(/ prepare=\d+/, ''));
      t.equal(prepared, 0, "what a child does in its parent's memory is not told");
    }
  });
}
