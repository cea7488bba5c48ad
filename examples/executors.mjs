// A plug-in for the command line: tasks of two executors that rsptrace does not know, each by what the executor is.
//   rsptrace tasks --plugin examples/executors.mjs --pid $(pidof program) target/release/program

/** cassette: one Future a Cassette, pinned on the stack of the function that polls it. Its variables lead there. */
const cassette = {
  name: 'cassette',
  async roots({ debug, futures, frames, variables }) {
    if (debug.functionsNamed('cassette::Cassette::poll_on').length === 0) return undefined;
    const roots = [];
    for (const { name, value } of (await Promise.all(frames.flat().map(variables))).flat()) {
      if (value.kind !== 'struct' || !value.type.startsWith('cassette::Cassette<')) continue;
      const { thing, done } = Object.fromEntries(value.fields.map((field) => [field.name, field.value]));
      const future = futures.all.find(({ instance }) => thing?.type === `&mut ${instance}`);
      const fate = done?.value ? 'ended' : 'live';
      if (future) roots.push({ future, address: thing.address, references: [], fate, facts: { variable: name } });
    }
    return roots;
  },
};

/** local-runtime: boxes in its executor's lists. `Executor::spawn` puts an async block of its own around each Future. */
const local = {
  name: 'local-runtime',
  async roots({ futures, memory, isFreed }) {
    const spawned = futures.all.filter(({ future }) => future.startsWith('local_runtime::Executor::spawn'));
    if (spawned.length === 0) return undefined;
    const roots = new Map();
    for (const future of spawned)
      for (const place of [...memory.places(future.vtables).values()].flat()) {
        const bytes = await memory.read(place - 8n, 8);
        const address = bytes && Buffer.from(bytes).readBigUInt64LE();
        const isTask = address && !(await isFreed(address, future.size));
        if (isTask) roots.set(address, { future, address, references: [place - 8n] });
      }
    return [...roots.values()];
  },
};

export default { runtimes: [cassette, local] };
