// The tasks of an executor by its own book, instead of a search of memory: those that its queue of ready tasks holds.
//   node --import=tsx examples/runtime.ts kernel.elf crate::exec::READY crate::exec::run -- qemu-system-riscv64 ...
import { launch } from 'rsptrace';
import type { FoundRoot, Runtime } from 'rsptrace/tasks';
import { evaluateMemberExpr, ProgramNames, parseMemberExpr, readValue, Shapes, type Value } from 'rsptrace/values';

const [elf = '', queue = '', until = '', , ...command] = process.argv.slice(2);

/** Every pointer to a `dyn Future` inside a value. */
function* boxed(value: Value | undefined): Generator<Value & { kind: 'pointer' }> {
  if (value?.kind === 'pointer' && value.dyn) yield value;
  else if (value?.kind === 'pointer' || value?.kind === 'wrapper')
    yield* boxed('target' in value ? value.target : value.value);
  else if (value?.kind === 'struct') for (const field of value.fields) yield* boxed(field.value);
  else if (value?.kind === 'sequence') for (const element of value.elements) yield* boxed(element);
}

const executor: Runtime = {
  name: 'ready-queue',
  async roots({ debug, futures, memory }) {
    const [shapes, names] = [new Shapes(debug), new ProgramNames(debug)];
    if (names.statics(queue).length === 0) return undefined;
    const { shape, place } = await evaluateMemberExpr(parseMemberExpr(queue), { shapes, names, memory });
    const roots: FoundRoot[] = [];
    for (const { address, dyn } of boxed(await readValue(shapes, memory, shape, place))) {
      const future = dyn && futures.byVtable(dyn.vtable);
      if (future) roots.push({ future, address, references: [] });
    }
    return roots;
  },
};

const own = { runtimes: [executor], onConsole: (text: Uint8Array) => process.stderr.write(text) };
await using target = await launch({ elf, command, ...own });
await target.run({ until, duration: '20s' });
const { runtimes, tasks } = await target.tasks({ runtime: executor.name });
console.log(`${runtimes}: ${tasks.length} tasks`);
for (const { future, state } of tasks) console.log(`${future?.future} ${state?.name}`);
await target.run({ duration: '60s' });
