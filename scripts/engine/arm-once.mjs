// Arms every function of a program that runs in QEMU, or under gdbserver, and leaves again; prints when it was how far, in milliseconds.
//   arm-once.mjs qemu|gdbserver ELF
import { parseProbe } from '../../dist/probes/index.js';
import { enginePlan, prepare, record } from '../../dist/record/index.js';
import { connect } from '../../dist/rsp/index.js';
import { startGdbserver } from '../bench-lib.mjs';
import { sinkOf, whenInstalled, withQemu } from './hidden.mjs';

const [kind, elf] = process.argv.slice(2);
const program = await prepare(elf, [parseProbe('fn:f*')]);
// As the command does before it connects.
enginePlan(program, { wanted: 'target', values: false });

async function measure({ session, scratch, began }) {
  const cpuBefore = process.cpuUsage();
  const since = () => performance.now() - began;
  const stopper = new AbortController();
  const times = {};
  // The first event that is not the hit at which they were installed: the target runs.
  const sink = sinkOf(() => {
    if (times.running !== undefined || times.installedAt === undefined) return;
    times.running = since();
    const { user, system } = process.cpuUsage(cpuBefore);
    times.cpu = (user + system) / 1000;
    stopper.abort();
  });
  const logger = whenInstalled(({ probes }) => {
    times.installedAt = since();
    times.installed = probes;
  });
  const { engines, error } = await record({
    session,
    program,
    logger,
    sink: {
      ...sink,
      // LogEntry when the clock is known: at the first hit.
      begin: () => {
        times.called = since();
      },
    },
    engine: 'target',
    signal: stopper.signal,
    functions: { values: false },
    ...(scratch ? { scratch } : {}),
    onStart: () => {
      times.planted = since();
    },
  });
  if (error) throw error;
  const stopping = engines.filter(({ engine }) => engine === 'stop').length;
  console.log(JSON.stringify({ ...times, stopping, left: since() - times.running }));
}

if (kind === 'qemu') {
  await withQemu(
    ['qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', '-nic', 'none', '-kernel', elf],
    measure,
  );
} else {
  const stub = startGdbserver(elf);
  const began = performance.now();
  const session = await connect(stub.address);
  await measure({ session, began });
  session.close();
  stub.stop();
}
process.exit();
