// A trace format of one's own: a line an event, for a spreadsheet.
//   node --import=tsx examples/format.ts kernel.elf 'fn:crate::exec::poll_task' out.csv -- qemu-system-riscv64 ...
import { launch } from 'rsptrace';
import type { Format } from 'rsptrace/trace';

const head = 'time_ns,hart,event,name\n';
const csv: Format = {
  name: 'CSV',
  extensions: ['.csv'],
  about: 'a line an event',
  use: 'open it in a spreadsheet',
  isAppended: true,
  recognizes: ({ bytes }) => new TextDecoder().decode(bytes).startsWith(head),
  open: (file) => ({
    begin: () => file.textRecord(head),
    event(event) {
      if (event.type === 'call-begin' || event.type === 'call-end')
        file.textRecord(`${event.time},${event.hart},${event.type},${event.function.name}\n`);
    },
    hart: () => {},
    flush: () => file.flush(),
    end: () => file.close(),
  }),
};

const [elf = '', probe = '', trace = '', , ...command] = process.argv.slice(2);
const console_ = (text: Uint8Array): boolean => process.stderr.write(text);
await using target = await launch({ elf, command, formats: [csv], onConsole: console_ });
target.probe(probe);
const { end, events } = await target.run({ trace, duration: '60s' });
console.log(`${end}: ${events} events in ${trace}`);
