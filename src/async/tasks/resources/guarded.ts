import { type Look, nameOfType, type Primitive } from './resource.js';

/** Locks of one kind: their guards point to them, and so do the Futures that wait. */
interface Guarded {
  readonly kind: 'Mutex' | 'Semaphore';
  /** The types of the locks themselves. */
  readonly locks: readonly string[];
  readonly futures: readonly string[];
  readonly guards: readonly string[];
  /** The bit of its member `state` that a locked one has set. */
  readonly lockedBit?: bigint;
}

/** What those wait for who want a lock whose guards point to it. */
export function guarded({ kind, locks, futures, guards: owners, lockedBit }: Guarded): Primitive {
  const isFree = async (look: Look, lock: Parameters<Look['number']>[0]): Promise<boolean> => {
    const state = lockedBit === undefined ? undefined : await look.number(lock, 'state');
    return state !== undefined && lockedBit !== undefined && (state & lockedBit) === 0n;
  };
  return {
    futures,
    owners,
    async awaited(look, node) {
      const lock = (await look.pointers(node)).find(({ type }) => locks.includes(nameOfType(type)));
      if (!lock) return undefined;
      const { address } = lock;
      const enders = { how: 'held by', owners, key: address } as const;
      if (kind === 'Semaphore') return { kind, address, enders: { ...enders, needs: 'any', count: 'unknown' } };
      return { kind, address, enders: { ...enders, needs: 'all', count: 1 }, free: await isFree(look, lock) };
    },
  };
}
