import type { Slice } from './decode-perfetto.js';

export interface ChromeRecord {
  readonly ph: string;
  readonly ts: number;
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  readonly cat?: string;
  readonly id?: string;
  readonly s?: string;
  readonly args: Record<string, unknown>;
}

/** The members that the spec asks for, by phase; what is written has these and no others. */
const MEMBERS: Record<string, string> = {
  M: 'args,name,ph,pid,tid,ts',
  B: 'args,cat,name,ph,pid,tid,ts',
  E: 'args,cat,name,ph,pid,tid,ts',
  b: 'args,cat,id,name,ph,pid,tid,ts',
  n: 'args,cat,id,name,ph,pid,tid,ts',
  e: 'args,cat,id,name,ph,pid,tid,ts',
  i: 'args,cat,name,ph,pid,s,tid,ts',
};

/**
 * Checks each record against the Trace Event Format and pairs them as viewers do: B and E by thread, strictly nested; b and e
 * by cat and id, nested, ends with the name of the begin that they end, E also with its args. Times come back in nanoseconds.
 */
export function readChrome(records: readonly ChromeRecord[]): Slice[] {
  const open = new Map<string, Slice[]>();
  const slices: Slice[] = [];
  const began = new Map<Slice, object>();
  for (const record of records) {
    const { ph, ts, name, args } = record;
    const members = Object.keys(record).sort().join();
    if (members !== MEMBERS[ph]) throw new Error(`a ${ph} record has ${members}`);
    if (typeof args !== 'object' || args === null || Array.isArray(args)) throw new Error('args is no object');
    if (typeof ts !== 'number' || ts < 0) throw new Error(`ts is ${ts}`);
    if (ph === 'i' && !['g', 'p', 't'].includes(record.s ?? '')) throw new Error(`an instant's scope is ${record.s}`);
    if (ph === 'M') continue;
    const track = 'bne'.includes(ph) ? `${record.cat} ${record.id}` : `tid ${record.tid}`;
    const stack = open.get(track) ?? [];
    open.set(track, stack);
    const time = Math.round(ts * 1000);
    const texts = Object.fromEntries(Object.entries(args).map(([key, value]) => [key, String(value)]));
    if (ph === 'E' || ph === 'e') {
      const slice = stack.pop();
      if (slice?.name !== name) throw new Error(`${ph} of ${name} on ${track} would end ${slice?.name}`);
      if (ph === 'E' && JSON.stringify(args) !== JSON.stringify(began.get(slice)))
        throw new Error(`other args at ${name}'s end`);
      slice.end = time;
      Object.assign(slice.args, texts);
      continue;
    }
    // Of one call: it is told of the slice that it stands in.
    if (ph === 'i' && record.cat === 'detail') {
      const around = stack.at(-1);
      if (around === undefined) throw new Error(`a detail, ${name}, of no slice on ${track}`);
      Object.assign(around.args, texts);
      continue;
    }
    const isSlice = ph === 'B' || ph === 'b';
    const slice: Slice = {
      track,
      kind: isSlice ? 'slice' : 'instant',
      category: record.cat ?? '',
      name,
      begin: time,
      depth: stack.length,
      end: isSlice ? undefined : time,
      place: undefined,
      args: texts,
    };
    slices.push(slice);
    if (isSlice) stack.push(slice);
    if (ph === 'B') began.set(slice, args);
  }
  return slices;
}
