// A kind of probe of one's own, `symbol:NAME`: an instant each time that the code of a symbol begins, with no debug info needed.
//   node --import=tsx examples/custom-probe.ts kernel.elf symbol:deep7 -- qemu-system-riscv64 ...
import { launch } from 'rsptrace';
import type { AnyProbe, Found, ProbeKind } from 'rsptrace/probes';
import type { PlaceRef } from 'rsptrace/trace';

type Symbols = Found & { readonly places: readonly PlaceRef[] };
const symbol: ProbeKind<AnyProbe & { readonly symbol: string }, Symbols> = {
  name: 'symbol',
  help: "'symbol:NAME' the code of a symbol",
  parse: ({ text, rest }) => ({ kind: 'symbol', text, symbol: rest }),
  resolve({ elf }, probes) {
    const places = probes.map(({ symbol: name }, key): PlaceRef => {
      const address = elf.symbols.named(name)[0]?.address;
      if (address === undefined) throw new Error(`there is no symbol ${name}`);
      return { key, name, category: 'symbol', address, by: { function: name, file: undefined, line: undefined } };
    });
    return { places, addresses: places.map(({ address }) => address) };
  },
  tracer: ({ places }, { output }) => ({
    instants: {
      hit({ pc, hart }) {
        const place = places.find(({ address }) => address === pc);
        return place && (() => output.emit({ type: 'place', time: output.time, hart, place }));
      },
    },
  }),
  report: () => ({ json: () => ({}), tables: () => [] }),
};

const [elf = '', probe = '', , ...command] = process.argv.slice(2);
const own = { kinds: [symbol as ProbeKind], onConsole: (text: Uint8Array) => process.stderr.write(text) };
await using target = await launch({ elf, command, ...own });
const times: number[] = [];
const { text } = target.probe(probe, (hit) => void times.push(hit.time));
await target.run({ duration: '60s' });
console.log(
  `${text}: ${times.length} hits, ${((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1e6} ms from the first to the last`,
);
