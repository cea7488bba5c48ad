// A plug-in for the command line: `symbol:NAME`, an instant each time that the code of a symbol begins, and traces as CSV.
//   rsptrace run --plugin examples/plugin.mjs -p symbol:timer_tick -o ticks.csv kernel.elf -- qemu-system-riscv64 ...

/** @type {import('rsptrace/probes').ProbeKind} */
const symbol = {
  name: 'symbol',
  help: "'symbol:NAME' the code of a symbol",
  parse: ({ text, rest }) => ({ kind: 'symbol', text, symbol: rest }),
  resolve({ elf }, probes) {
    const places = probes.map(({ symbol: name }, key) => {
      const address = elf.symbols.named(name)[0]?.address;
      if (address === undefined)
        throw Object.assign(new Error(`there is no symbol ${name}`), { code: 'symbol:NONE', hint: 'nm lists them' });
      return { key, name, category: 'symbol', address, by: { function: name } };
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

const head = 'time_ns,hart,event,name\n';
/** @type {import('rsptrace/trace').Format} */
const csv = {
  ...{ name: 'CSV', extensions: ['.csv'], about: 'a line an event', use: 'open it in a spreadsheet', isAppended: true },
  recognizes: ({ bytes }) => new TextDecoder().decode(bytes).startsWith(head),
  open: (file) => ({
    ...{ begin: () => file.textRecord(head), hart() {}, flush: () => file.flush(), end: () => file.close() },
    event: ({ time, hart, type, place }) => place && file.textRecord(`${time},${hart},${type},${place.name}\n`),
  }),
};
export default { kinds: [symbol], formats: [csv] };
