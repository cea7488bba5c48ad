import { controlBlock, type RecordField, wordsOf } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { ReadPlan } from '../probes/index.js';
import { proofOf } from '../proof/index.js';
import { alignment } from './code-allocator.js';
import { refuseUntilAgreed } from './inner-places.js';
import { isObjection, type PatchableCode, type PatchVerdict } from './patchable-code.js';
import { idField, outerRoom, RecordFormats } from './record-format.js';
import type { RecordFormat, RecordSources } from './record-layout.js';
import type { Piece } from './ring.js';

/** A probe that is served by trampolines. */
export interface Site extends PatchableCode {
  readonly plan: ReadPlan;
  /** Index in the plan. Its records carry `2 * index`, plus 1 at the exit. */
  readonly index: number;
  readonly entry: RecordFormat;
  readonly exit: RecordFormat;
  /** Number of words in the target that it counts in; 0: it writes records. */
  readonly counters: number;
}

/** All that a site's trampoline writes at the entry. */
export function entryFields({ index, entry }: Site): readonly RecordField[] {
  return [idField(2 * index), ...entry.fields];
}

/** All that is written at an exit. */
export function exitFields({ index, exit }: Site): readonly RecordField[] {
  return [idField(2 * index + 1), ...exit.fields];
}

export interface SitePlan {
  readonly sites: readonly Site[];
  /** Why a probe needs a stop, by its index among the candidates. */
  readonly refused: ReadonlyMap<number, string>;
  /** log2 of the bytes of the longest record. */
  readonly slotShift: number;
}

/** Longer records would leave a small ring without slots. */
const mostRecordBytes = 256;
const leastSlotShift = 6;

/**
 * Decides for every probe whether its reads can be compiled too; changes nothing. `looks` are the results of
 * {@link lookAtCode}.
 */
export function planSites(
  plans: readonly ReadPlan[],
  looks: readonly PatchVerdict[],
  sources: RecordSources,
): SitePlan {
  const sites: Site[] = [];
  const refused = new Map<number, string>();
  let longest = 1 << leastSlotShift;
  const formats = new RecordFormats(sources, outerRoom(plans));
  const able: Site[] = [];
  for (const [index, plan] of plans.entries()) {
    const look = looks[index];
    const site = !look
      ? 'its code is not in the ELF'
      : isObjection(look)
        ? look.why
        : planSite(plan, look, index, formats);
    if (typeof site === 'string') refused.set(index, site);
    else able[index] = site;
  }
  refuseUntilAgreed(plans, (index) => bytesReplaced(able[index]), refused);
  for (const site of able) {
    if (!site || refused.has(site.index)) continue;
    sites.push(site);
    longest = Math.max(longest, site.entry.size, site.exit.size);
  }
  return { sites, refused, slotShift: Math.ceil(Math.log2(longest)) };
}

/** The records of every plan, whether its code can be patched or not. */
export function planFormats(plans: readonly ReadPlan[], sources: RecordSources): readonly Site[] {
  const formats = new RecordFormats(sources, outerRoom(plans));
  const look: PatchableCode = { code: new Uint8Array(0), ways: [], ends: undefined, proof: proofOf('entry') };
  return plans.map((plan, index) => {
    return { plan, index, ...look, entry: formats.entry(plan), exit: formats.exit(plan), counters: 0 };
  });
}

/** Bytes that are run elsewhere: all ways begin at the same place. */
export function bytesReplaced(site: PatchableCode | undefined): Piece | undefined {
  const [first] = site?.ways ?? [];
  return first && site && { address: first.start, length: Math.max(...site.ways.map(({ length }) => length)) };
}

function planSite(plan: ReadPlan, look: PatchableCode, index: number, formats: RecordFormats): Site | string {
  const counters = plan.counts.reduce((sum, count) => sum + wordsOf(count), 0);
  // A probe that only counts writes no record, which need not fit.
  const none = { entryRegisters: [], entryReads: [], entryExtents: [] };
  const entry = formats.entry(counters > 0 ? { ...plan, ...none } : plan);
  const exit = formats.exit(plan);
  if (Math.max(entry.size, exit.size) > mostRecordBytes) return 'what it reads does not fit a record';
  return { plan: look.unseenReturn === undefined ? plan : entryOnly(plan), index, ...look, entry, exit, counters };
}

/** Nothing observes its return. */
export function entryOnly(plan: ReadPlan): ReadPlan {
  return { ...plan, seesReturn: false };
}

/** The place that trampolines must be near: most sites lie around the middle one. Undefined if there are none. */
export function middleOf(sites: readonly Site[]): Addr | undefined {
  const places = sites.map(({ plan }) => plan.address).sort((a, b) => (a < b ? -1 : 1));
  return places[places.length >> 1];
}

/** Bytes of code that are enough for these sites' trampolines. For memory that is divided before they are placed. */
export function codeRoom(sites: readonly Site[]): number {
  const roomOf = ({ plan, entry, exit, ends = [], counters }: Site): number => {
    // A probe that only counts writes no record.
    const recorded = counters > 0 ? 0 : 432 + 24 * (entry.fields.length + exit.fields.length);
    const hops = plan.entryReads.reduce((sum, { through = [] }) => sum + through.length, 0);
    const conditions = [...plan.when, ...plan.counts.flatMap(({ when }) => when)];
    const looked = conditions.reduce((sum, { behind }) => sum + 48 + 32 * (behind?.through.length ?? 0), 0);
    const copied = entry.extents.reduce((sum, { words }) => sum + 96 + 40 * words, 0);
    const counted = plan.counts.length * 256;
    const noted = (plan.inside?.taken.length ?? 0) + (plan.inside?.noted.length ?? 0);
    return (
      recorded +
      32 * hops +
      copied +
      128 * noted +
      looked +
      counted +
      512 * Math.max(0, ...ends.map((way) => way.length))
    );
  };
  return sites.reduce((sum, site) => sum + roomOf(site), 4096);
}

/** Bytes of a counter. */
export const counterBytes = 8;

/**
 * What lies before the ring: the control block, its lists, the counters, and the notes. Offsets from the control
 * block.
 */
export function controlRoom(
  sites: readonly Site[],
  noteBytes = 0,
): { readonly counters: number; readonly notes: number; readonly size: number } {
  const cacheLines = (bytes: number): number => Math.ceil(bytes / 64) * 64;
  const lists = sites.reduce((sum, { plan }) => sum + (plan.outer ? 128 : 0), 0);
  const counters = cacheLines(controlBlock.size + lists);
  const bytes = sites.reduce((sum, site) => sum + Math.ceil((counterBytes * site.counters) / alignment) * alignment, 0);
  const notes = counters + cacheLines(bytes);
  return { counters, notes, size: notes + cacheLines(noteBytes) };
}
