import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Hit, MemoryRequest } from '../calls/index.js';
import type { Reply } from '../rsp/index.js';
import { codeBytes } from './breakpoints.js';
import type { Found } from './hit-checks.js';
import type { Passing } from './passing.js';
import type { Point } from './point.js';
import { finish, type GuessedReads } from './read-guesses.js';
import type { Next } from './resuming.js';
import type { LeftStop, StopParts } from './stop-engine-options.js';

const noVisit: Awaited<ReturnType<typeof finish>> = { more: [], reaction: { watch: [], unwatch: [] } };

/** What a hit means: whose it is, what the tracer wants read at it, and what follows for the breakpoints. */
export class Hits {
  readonly #parts: StopParts;
  readonly #passing: Passing;
  /** The program's own code has come to a place of a probe. */
  wasSeen = false;
  /** Where a hart stood at first; then where one is left. */
  leftAt: LeftStop | undefined;

  constructor(parts: StopParts, passing: Passing) {
    this.#parts = parts;
    this.#passing = passing;
    this.leftAt = parts.options.leftAt;
  }

  /** The code at a hit's pc, as far as it was guessed; undefined for a process. */
  found(pc: Addr, registers: RegisterReader, guessed: GuessedReads): Found | undefined {
    const { checks } = this.#parts;
    if (!checks) return undefined;
    const code = guessed.find({ address: pc, length: codeBytes })?.value;
    return { pc, code, standing: checks.standing(registers) };
  }

  /** A hit whose code is read now: `own` if it is the program's, else how to go on. */
  async whose(
    found: Found,
    point: Point,
    hit: Hit,
    guessed: GuessedReads,
    hart: string | undefined,
  ): Promise<Next | 'own'> {
    const { checks } = this.#parts;
    found.code ??= await checks?.read(found.pc, hart);
    const whose = await checks?.whose(found, hart);
    return whose === 'foreign' ? this.#passing.foreign(hit, point, guessed, hart) : (whose ?? 'own');
  }

  /** Gives the hit to the tracer, and goes on from it. */
  async handle(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    guessed: GuessedReads,
    found: Found | undefined,
  ): Promise<Next> {
    const { options, points, firstReads, resuming } = this.#parts;
    const { session, tracer } = options;
    const before = this.#before(hit, hart);
    if (!before) point.pause?.();
    const isBack = this.#passing.isRepeated(point, hit);
    const repeated = before?.isHit ?? (isBack || (point.pause !== undefined && !before));
    const second = session.batch(hart);
    const visit = repeated ? undefined : tracer.visit(hit);
    const asked = visit?.next();
    const requests = asked && !asked.done ? asked.value : [];
    const load = point.over?.load?.(hit.registers);
    const loads = load && load.length > 0;
    const missing = { count: 0 };
    const read = (request: MemoryRequest): Reply<Uint8Array | undefined> => {
      const known = guessed.find(request);
      if (known) return known;
      missing.count++;
      return second.readMemory(request.address, request.length);
    };
    const replies = requests.map(read);
    const loaded = loads ? read(load) : undefined;
    const here = { address: hit.pc, length: codeBytes };
    const wantsCode = found !== undefined || points.wantsCode(point);
    const code = wantsCode ? read(here) : undefined;
    if (missing.count > 0) await second.send();
    if (found) {
      found.code = code?.value;
      const whose = await this.whose(found, point, hit, guessed, hart);
      if (whose !== 'own') return whose;
    }
    this.wasSeen ||= visit !== undefined;
    const answers = replies.map((reply) => reply.value);
    const { more, reaction } = visit ? await finish(visit, () => session.batch(hart), guessed, answers) : noVisit;
    const changed = code !== undefined && points.changed(point, hit.pc, code.value);
    const again = [...(loads ? [load] : []), ...(wantsCode ? [here] : [])];
    firstReads.learn(hit.pc, [...requests, ...more, ...again]);
    if (!repeated) await tracer.standing?.(hit, session.memory(hart));
    if (reaction.stay?.length) await points.armNow(reaction.stay);
    if (reaction.spent?.length) await points.disarm(reaction.spent);
    const watched: Point[] = [];
    for (const address of reaction.watch) watched.push(points.at(address) ?? (await points.of(address)));
    const batch = session.batch(hart);
    const last = { batch, inserts: points.plant(batch, watched, reaction.unwatch), repeated };
    if (resuming.askedToStop) {
      this.leftAt = { hart, at: this.#at(hit), isHit: !repeated || before?.isHit === true };
      await batch.send();
      if (!repeated) tracer.digest();
      return undefined;
    }
    if (!(point.permanent || point.awaited)) return resuming.goOn(hit.pc, last);
    return this.#passing.own(point, hit, hart, { ...last, load, loaded: loaded?.value, changed });
  }

  /** Handled by the recording before this one, which has left the hart here. */
  #before(hit: Hit, hart: string | undefined): LeftStop | undefined {
    const { leftAt } = this;
    if (leftAt?.hart !== hart) return undefined;
    this.leftAt = undefined;
    return leftAt?.at === this.#at(hit) ? leftAt : undefined;
  }

  #at(hit: Hit): string {
    return `${hit.pc} ${this.#passing.standing(hit)}`;
  }
}
