import type { Architecture, FlowStep, MemoryOperand, MemoryPlace } from '../../../arch/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import { addTo, madeOnce } from '../../../base/made-once.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  functionName,
  inlinedCopies,
  inlinedInto,
  locationAt,
  parametersOf,
  rangesOf,
  typeOf,
} from '../../../dwarf/index.js';
import { type Shape, Shapes } from '../../../values/index.js';
import { leavesScratch } from '../../describer.js';
import type { FlowGraph } from '../../flow-graph.js';
import { type FramePlace, mayLeadAnywhere } from '../../function-graphs.js';
import { inlinedBlock } from '../../inlined-block.js';
import { InlinedCode, nodesIn } from '../../inlined-code.js';
import { chooseWindows } from '../../inner-windows.js';
import type { PatchWindow } from '../../read-plan.js';
import { linear } from '../poll/self-place.js';
import { type IsFuture, type LockRole, lockRole, takenByPolls, whyUntaken } from './names.js';
import type { LockType } from './resolve.js';

/** Where a copy shows which lock it is about: the lock's address, or that of a word in it. */
export interface LockPlace extends MemoryPlace {
  /** The register leads to a word, so many bytes behind it, that has the address. */
  readonly through?: number | undefined;
}

interface InnerPlace {
  readonly address: Addr;
  readonly window: PatchWindow | string;
}

/** A copy of a function that takes or releases a lock, inside another function. */
export interface InlinedLock {
  readonly role: LockRole;
  /** `spin::Mutex::lock`. */
  readonly name: string;
  readonly into: string;
  readonly type: LockType | undefined;
  readonly scratchIsFree: boolean;
  readonly begins: readonly (InnerPlace & { readonly lock: LockPlace; readonly frame: FramePlace })[];
  /** None of a copy that releases. */
  readonly ends: readonly (InnerPlace & { readonly frame: FramePlace })[];
}

/** A copy that is not seen, and why. */
export interface UnseenCopy {
  readonly name: string;
  readonly into: string;
  readonly reason: string;
}

interface Copy {
  readonly die: Die;
  readonly host: Die;
  readonly name: string;
  readonly role: LockRole;
}

/** A copy that cannot be traced; in words for the user. */
class Unseen extends Error {}

/**
 * Finds where inlined copies of a lock's functions begin and end, by the control flow of the functions around them. The
 * lock's address is that of the first atomic instruction, or what debug info says of `self`.
 */
export class InlinedLocks {
  readonly #debug: DebugInfo;
  readonly #arch: Architecture;
  readonly #code: InlinedCode;
  readonly #shapes: Shapes;
  readonly found: InlinedLock[] = [];
  readonly unseen: UnseenCopy[] = [];

  /** `isTraced`: a function with code of its own that has probes as one of a lock's. */
  constructor(debug: DebugInfo, arch: Architecture, isTraced: (host: Die) => boolean, isFuture: IsFuture) {
    this.#debug = debug;
    this.#arch = arch;
    this.#code = new InlinedCode(debug, arch);
    this.#shapes = new Shapes(debug);
    const drafts: { readonly copy: Copy; readonly graph: FlowGraph; readonly sites: Sites }[] = [];
    for (const copy of copiesIn(debug, isTraced)) {
      if (copy.role.isGuard && this.#isOther(copy)) continue;
      const isMethod = copy.role.does !== 'release' && copy.name.includes('::');
      const untaken = isMethod ? whyUntaken(originOf(copy.die), this.#shapes, isFuture) : undefined;
      if (untaken === takenByPolls) continue;
      const graph = arch.codeFlow?.memory && this.#code.graphs.of(copy.host);
      const sites =
        untaken ?? debug.attempt(copy.die.unit, () => this.#sites(copy, graph)) ?? 'its debug info is damaged';
      if (typeof sites === 'string') this.unseen.push({ ...named(copy), reason: sites });
      else if (graph) drafts.push({ copy, graph, sites });
    }
    const windows = chooseWindows(
      drafts.flatMap(({ graph, sites }) =>
        [...sites.begins, ...sites.ends].map(({ node }) => this.#code.windows.around({ graph, node })),
      ),
    );
    for (const { copy, graph, sites } of drafts) {
      const at = <T extends { readonly node: number }>(site: T) => {
        const { address } = graph.steps[site.node] as FlowStep;
        return { ...site, address, window: windows.get(address) ?? 'its code is not known' };
      };
      this.found.push({
        ...{ ...named(copy), role: copy.role, type: this.#typeOf(copy.die) },
        scratchIsFree: leavesScratch(copy.host),
        begins: sites.begins.map(at),
        ends: sites.ends.map(at),
      });
    }
  }

  #typeOf(copy: Die): LockType | undefined {
    const target = this.#targetOf(copy);
    return target && { name: target.name, size: target.size };
  }

  /** What `self` leads to. */
  #targetOf(copy: Die): Shape | undefined {
    const [self] = parametersOf(originOf(copy));
    const shape = self && this.#shapes.of(typeOf(self));
    return shape?.kind === 'pointer' ? shape.target() : undefined;
  }

  /** It is a guard, but not of a lock. Without its type the name says so: the library has but line tables. */
  #isOther({ die, name }: Copy): boolean {
    const target = this.#targetOf(die);
    return target ? !pointerWithin(target) : !/(Mutex|Lock|Spin)\w*Guard/.test(name);
  }

  #sites(copy: Copy, graph: FlowGraph | undefined): Sites | string {
    if (!graph) return 'the code around it cannot be followed';
    if (!this.#code.graphs.isClosed(graph)) return mayLeadAnywhere;
    if (copy.role.does === 'try') return 'nothing says whether it has taken the lock';
    const own = nodesIn(graph, [copy.die]);
    const isForeign = (node: number): boolean => this.#code.isLocated(graph, node);
    const block = inlinedBlock(graph, {
      ...{ copy: own, shared: new Set<number>(), isForeign },
      ...{ isSwitch: () => false, isWithinPoll: () => true, endsAnywhere: true },
    });
    if (typeof block === 'string') return block.replaceAll('poll', 'call');
    if (copy.role.does !== 'release' && block.ends.length === 0) return 'nothing shows that it has taken the lock';
    if (block.begins.length > 1 && copy.role.does === 'release') return 'it begins in several places';
    try {
      const taken = this.#takenAt(copy, graph, { own, ...block });
      const at = taken.length > 0 ? taken : block.begins.map((begin) => this.#lockAt(copy, graph, begin));
      const begins = at.map(([node, lock]) => ({ node, lock, frame: this.#frameAt(graph, node) }));
      if (copy.role.does === 'release') return { begins, ends: [] };
      const ends = block.ends.map((end) => {
        const node = this.#code.endAt(end, graph, block);
        return { node, frame: this.#frameAt(graph, node) };
      });
      return { begins, ends };
    } catch (error) {
      if (error instanceof Unseen) return error.message;
      throw error;
    }
  }

  #frameAt(graph: FlowGraph, node: number): FramePlace {
    const frame = this.#code.graphs.frameAt((graph.steps[node] as FlowStep).address);
    if (!frame) throw new Unseen('no call frame information says where its frame is');
    return frame;
  }

  /** Where the lock's address is known: at the instruction, or before what reserves its memory. */
  #lockAt(copy: Copy, graph: FlowGraph, begin: number): readonly [number, LockPlace] {
    const step = graph.steps[begin] as FlowStep;
    const operand = step.kind === 'store' ? this.#memoryAt(step) : undefined;
    if (!graph.isReserved(begin)) {
      // A plain store releases; before a lock is taken it may be anything.
      const isLock = operand?.isAtomic === true || copy.role.does === 'release';
      const place = (isLock ? operand : undefined) ?? this.#selfAt(copy, step.address);
      if (!place) throw new Unseen('nothing says which lock it is');
      return [begin, place];
    }
    const first = graph.steps.findLastIndex((each, node) => node <= begin && each.reservation === 'begins');
    const found = this.#beforeAccess(graph, first);
    if (!found) throw new Unseen('it lies in a loop that reserves memory');
    return found;
  }

  /**
   * Before a lock is tried a guard may do other things, as keeping interrupts away. Then the lock is that of the first
   * atomic instruction of its own function, not of another copy in it. It is seen where the copy begins, or right
   * before that instruction, which turns of waiting come back to.
   */
  #takenAt(copy: Copy, graph: FlowGraph, { own, begins, ends }: CopyNodes): readonly (readonly [number, LockPlace])[] {
    if (copy.role.does !== 'take') return [];
    const others = inlinedInto(copy.die).filter((die) => !functionName(die).startsWith('core::sync::atomic::'));
    const inOthers = nodesIn(graph, others);
    const isTry = (node: number): boolean => {
      const step = graph.steps[node] as FlowStep;
      const isAtomic = step.kind === 'store' ? this.#memoryAt(step)?.isAtomic : step.reservation === 'begins';
      return isAtomic === true && !inOthers.has(node);
    };
    const first = [...own].sort((a, b) => a - b).find(isTry);
    if (first === undefined || begins.includes(first)) return [];
    const until = (stop: number) => graph.reachable(begins, graph.next, (one) => one === stop);
    const before = until(first);
    const place = this.#memoryAt(graph.steps[first] as FlowStep);
    const isKept = [...before].every((node) => node === first || this.#keeps(graph, node, place?.register));
    if (place && isKept && !ends.some((end) => before.has(end))) return begins.map((begin) => [begin, place]);
    const found = this.#beforeAccess(graph, first);
    if (!found || begins.includes(found[0])) return [];
    const inside = graph.next.map((to) => to.filter((one) => own.has(one)));
    const isAgain = graph.reachable([first], inside, () => false).has(found[0]);
    return isAgain || ends.some((end) => until(found[0]).has(end)) ? [] : [found];
  }

  /** It goes on, and leaves a register as it is. */
  #keeps(graph: FlowGraph, node: number, register: string | undefined): boolean {
    const { kind, address, length } = graph.steps[node] as FlowStep;
    const code = this.#debug.elf.bytesAt(address, length);
    return (
      kind !== 'call' && code !== undefined && this.#arch.codeFlow?.writes?.(code, address, register ?? '') === false
    );
  }

  /** The instruction before one, if it alone leads there from before and leaves the address of its memory as it is. */
  #beforeAccess(graph: FlowGraph, node: number): readonly [number, LockPlace] | undefined {
    const [access, entry] = [graph.steps[node], graph.steps[node - 1]];
    const place = access && this.#memoryAt(access);
    const isOnlyWay =
      entry?.kind === 'next' && graph.next[node - 1]?.length === 1 && graph.next[node - 1]?.[0] === node;
    return place && isOnlyWay && this.#keeps(graph, node - 1, place.register) ? [node - 1, place] : undefined;
  }

  #memoryAt({ address, length }: FlowStep): MemoryOperand | undefined {
    const code = this.#debug.elf.bytesAt(address, length);
    return code && this.#arch.codeFlow?.memory?.(code, address);
  }

  /** By debug info. */
  #selfAt({ die, host, role }: Copy, at: Addr): LockPlace | undefined {
    const [self] = role.isGuard ? [] : parametersOf(die);
    const expression = self && locationAt(self, DW_AT.location, host.unit.codes.toCode(at));
    if (!self || !expression || expression.length === 0) return undefined;
    const found = linear(self, expression, host.block(DW_AT.frame_base), 0, this.#arch);
    if (!found) return undefined;
    const { register, offset, isValue } = found;
    return isValue ? { register, offset: BigInt(offset) } : { register, offset: 0n, through: offset };
  }
}

/** The instructions of a copy, and where it is entered and left. */
interface CopyNodes {
  readonly own: ReadonlySet<number>;
  readonly begins: readonly number[];
  readonly ends: readonly number[];
}

interface Sites {
  readonly begins: readonly { readonly node: number; readonly lock: LockPlace; readonly frame: FramePlace }[];
  readonly ends: readonly { readonly node: number; readonly frame: FramePlace }[];
}

function named({ name, host }: Copy): { readonly name: string; readonly into: string } {
  return { name, into: functionName(host) };
}

/** Copies with code. */
function copiesIn(debug: DebugInfo, isTraced: (host: Die) => boolean): readonly Copy[] {
  const { at, origin: origins, into } = inlinedCopies(debug);
  const roles = new Map<number, Pick<Copy, 'name' | 'role'> | 'none'>();
  const roleOf = (offset: number): Pick<Copy, 'name' | 'role'> | 'none' => {
    const die = debug.die(offset);
    const name = die && debug.attempt(die.unit, () => functionName(die));
    const role = name === undefined ? undefined : lockRole(name);
    return name !== undefined && role ? { name, role } : 'none';
  };
  const found: Copy[] = [];
  at.forEach((offset, i) => {
    const origin = origins[i] as number;
    const known = madeOnce(roles, origin, () => roleOf(origin));
    if (known === 'none') return;
    const [die, host] = [debug.die(offset), debug.die(into[i] as number)];
    if (!die || !host || isTraced(host)) return;
    const ranges = debug.attempt(die.unit, () => rangesOf(die)) ?? [];
    if (!ranges.some(({ low, high }) => high > low && debug.elf.isLoaded(low))) return;
    found.push({ die, host, ...known });
  });
  const byHost = new Map<number, Copy[]>();
  for (const copy of found) addTo(byHost, copy.host.offset, copy);
  return found.filter((copy) => !byHost.get(copy.host.offset)?.some((other) => standsFor(other, copy)));
}

function originOf(copy: Die): Die {
  return copy.follow(DW_AT.abstract_origin) ?? copy;
}

/** Of copies in each other the innermost one stands for all, and one that waits for the attempts that it makes. */
function standsFor(one: Copy, other: Copy): boolean {
  if (one.role.does === other.role.does) return isAround(other, one);
  return one.role.does === 'take' && other.role.does === 'try' && isAround(one, other);
}

function isAround({ die: outer }: Copy, { die: inner }: Copy): boolean {
  if (outer.offset >= inner.offset) return false;
  const around = rangesOf(outer);
  return rangesOf(inner).every(({ low, high }) => around.some((each) => each.low <= low && each.high >= high));
}

/** The lock's address there, or the word that has to be read first. */
export function lockIn(
  { register, offset, through }: LockPlace,
  registers: RegisterReader,
): { readonly address: Addr } | { readonly word: Addr } | undefined {
  if (register === undefined) return { address: addr(offset) };
  const base = registers.register(register);
  if (base === undefined) return undefined;
  if (through !== undefined) return { word: addr(BigInt.asUintN(64, base + BigInt(through))) };
  return { address: addr(BigInt.asUintN(64, base + offset)) };
}

const deepest = 4;
const lockLike = /Mutex|Lock|Spin|Atomic/;

/** The pointer of a guard that leads to its lock, or into it; undefined for a guard of something else. */
export function pointerWithin(
  { kind, ...shape }: Shape,
  depth = 0,
): { readonly offset: number; readonly target: Shape } | undefined {
  if (kind !== 'struct' || depth > deepest) return undefined;
  for (const { offset, type } of (shape as Shape & { kind: 'struct' }).fields) {
    const field = type();
    const target = field.kind === 'pointer' ? field.target() : undefined;
    if (target && lockLike.test(target.name)) return { offset, target };
    const inner = pointerWithin(field, depth + 1);
    if (inner) return { ...inner, offset: offset + inner.offset };
  }
  return undefined;
}
