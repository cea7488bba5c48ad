// Does the kernel boot, how far, and what hangs where it does not? Ends with status 1 where it does not come to a function in time.
//   node --import=tsx examples/boot-check.ts kernel.elf crate::exec::run -- qemu-system-riscv64 ...
import { launch } from 'rsptrace';

const [elf = '', until = '', , ...command] = process.argv.slice(2);
await using target = await launch({ elf, command, onConsole: (text) => process.stderr.write(text) });

const { end, guestNs } = await target.run({ until, duration: '20s' });
const { tasks } = await target.tasks();
console.log(end === 'until' ? `booted: came to ${until}` : `never came to ${until}: ${end} (${guestNs} ns)`);
console.log(`${tasks.length} tasks are waiting`);
for (const { future, state } of tasks) console.log(`  ${future?.future} ${state?.name}`);
if (end !== 'until') {
  const { SourceFrames } = await import('rsptrace/unwind');
  const sources = new SourceFrames(target.elf, undefined);
  for (const { hart, stack } of await target.backtraces())
    console.log(`hart ${hart.id}:`, ...stack.frames.flatMap((frame) => sources.of(frame).map((each) => each.function)));
  process.exitCode = 1;
}
