import type { TaskPlaces, TaskPoller } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import { littleEndian } from '../../../base/little-endian.js';
import type { InstantKind, InstantSite, MemoryRequest, Moment, SpaceNumbers } from '../../../calls/index.js';
import { type DebugInfo, rangesOf } from '../../../dwarf/index.js';
import { entryPlan, type PlannedReads, type ReadPlan } from '../../read-plan.js';
import type { TaskBook } from './wakes.js';

const WORD = 8;
/** A header is shorter than this, in bytes: debug info that says otherwise is wrong. */
const LONGEST = 4096;

/** A function by which a runtime polls tasks, and its code. */
export interface PollerProbe extends Pick<TaskPoller, 'name' | 'header' | 'words' | 'taskOf'> {
  readonly address: Addr;
  readonly size: number;
}

/** The functions by which runtimes poll tasks, where they show what a task is called. */
export function pollerProbes(debug: DebugInfo, { pollers }: TaskPlaces): PollerProbe[] {
  const found = new Map<Addr, PollerProbe>();
  const unlike = new Set<Addr>();
  for (const { die, name, header, words, taskOf } of pollers) {
    const [range] = debug.attempt(die.unit, () => rangesOf(die)) ?? [];
    const isHeader = words.length > 0 && words.every((offset) => offset >= 0 && offset + WORD <= LONGEST);
    if (!range || !isHeader || !debug.elf.isLoaded(range.low)) continue;
    const address = debug.elf.codes.fromCode(range.low);
    const known = found.get(address);
    // The linker folded functions of several types into one.
    if (known && (known.header !== header || known.words.join() !== words.join())) unlike.add(address);
    found.set(address, { address, size: Number(range.high - range.low), name, header, words, taskOf });
  }
  return [...found.values()].filter(({ address }) => !unlike.has(address));
}

/** Notes what a runtime knows of a task, before the task's poll begins. */
export class PollerTracer implements InstantKind {
  readonly #probes = new AddressMap<PollerProbe>();
  readonly #tasks: TaskBook;
  readonly #header: string;
  readonly #spaces: SpaceNumbers | undefined;

  constructor(probes: readonly PollerProbe[], tasks: TaskBook, header: string, spaces?: SpaceNumbers) {
    this.#spaces = spaces;
    for (const probe of probes) this.#probes.set(probe.address, probe);
    this.#tasks = tasks;
    this.#header = header;
  }

  isAt(pc: Addr): boolean {
    return this.#probes.get(pc) !== undefined;
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    const probe = this.#probes.get(pc);
    const header = probe && registers.register(this.#header);
    if (!probe || header === undefined) return undefined;
    return [{ address: addr(header), length: lengthOf(probe) }];
  }

  hit({ pc, registers, space }: Moment, { memory }: InstantSite): (() => void) | undefined {
    const probe = this.#probes.get(pc);
    const header = probe && registers.register(this.#header);
    const bytes = probe && header !== undefined && memory.at(addr(header), lengthOf(probe))?.bytes;
    if (!probe || !bytes || bytes.length < lengthOf(probe)) return undefined;
    const words = probe.words.map((offset) => littleEndian(bytes, offset, WORD));
    const at = addOffset(addr(header), -probe.header);
    this.#tasks.saw(inSpace(at, this.#spaces?.root(space)), words, probe.taskOf);
    return undefined;
  }
}

/** Reads the words behind the header. */
export function planPoller(probe: PollerProbe, header: string): ReadPlan {
  const loads = probe.words.map((offset) => ({ offset, size: WORD }) as const);
  const reads: PlannedReads = { pointer: header, align: WORD, size: lengthOf(probe), loads };
  const plan = entryPlan({ ...probe, codeSize: probe.size });
  return { ...plan, entryRegisters: [header], entryReads: [reads], notByStops: 'ids and names' };
}

function lengthOf({ words }: PollerProbe): number {
  return Math.max(...words) + WORD;
}
