// What one run of the scenario saw of a stub: a row of docs/internals/stubs.md.
import type { Addr } from '../../src/base/addr.js';
import { abilitiesOf } from '../../src/doctor/index.js';
import type { Session, SignalStop } from '../../src/rsp/index.js';

export interface ObservedFeatures {
  readonly packetSize: number;
  readonly noAck: boolean;
  /** There is a target.xml. */
  readonly described: boolean;
  /** How registers are read and written: `g`, `p` or both. */
  readonly registers: string;
  readonly threads: string;
  readonly vCont: string;
  /** The types of Z that are taken: `0 1 2 3 4`. */
  readonly breakpoints: string;
  readonly memoryMap: boolean;
  readonly fileTransfer: boolean;
}

export interface StubRow extends ObservedFeatures {
  readonly stub: string;
  readonly version: string;
  readonly quirks: readonly string[];
  readonly hitsPerSecond: number;
}

/** Asks for each thing that the table says. */
export async function observeFeatures(
  session: Session,
  place: { readonly code: Addr; readonly data: Addr; readonly kind: number },
): Promise<ObservedFeatures> {
  const { breakpoints, threads, memoryMap, fileTransfer } = await abilitiesOf(session, place);
  const harts = await session.harts();
  const { features, target } = session;
  return {
    packetSize: features.packetSize,
    noAck: features.noAck,
    described: target.source === 'target.xml',
    registers: [features.registerBlock ? 'g' : '', features.singleRegister ? 'p' : ''].join(' ').trim(),
    threads: harts.length > 1 ? `${threads}, ${harts.length}` : threads,
    vCont: [...features.vCont].join(' '),
    breakpoints: breakpoints.join(' '),
    memoryMap: memoryMap !== undefined,
    fileTransfer,
  };
}

/** Listens to every packet for what a client has to know. */
export class PacketLog {
  readonly quirks = new Set<string>();
  /** Off while hits are timed. */
  listening = true;

  readonly logger = {
    isLevelEnabled: (level: string): boolean => level === 'trace' && this.listening,
    trace: (fields: object, message: string): void => {
      const packet = 'packet' in fields ? String(fields.packet) : '';
      if (message.startsWith('->')) return;
      if (packet.startsWith('%')) this.quirks.add('notifications between answers');
      else if (/^O[0-9a-f]+$/.test(packet)) this.quirks.add('console packets nobody asked for');
    },
  };

  /** What a stop at a breakpoint says beyond its signal. */
  stop(stop: SignalStop): void {
    if (stop.hart === undefined) this.quirks.add('stops name no thread');
    if (stop.reason !== undefined) this.quirks.add(`stops say \`${stop.reason}\``);
  }
}
