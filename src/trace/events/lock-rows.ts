// What is known of locks at the end, as `--json` prints it.

/** What one lock did: a row of the table, as `--json` prints it. Times are guest nanoseconds. */
export interface LockRow {
  /** `app::CONSOLE`, `proc[3].lock`; its type if it lies in no static. */
  readonly lock: string;
  readonly type: string;
  /** `0x80208050`, with ` of space 0x80254000` in a program that a kernel runs. */
  readonly address: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly taken: number;
  /** Attempts that did not take it. */
  readonly not_taken: number;
  /** Of `taken`: it was taken again, although no release was seen. */
  readonly unreleased: number;
  /** Of `taken`: another has released it since the function was entered. */
  readonly contended: number;
  /** Calls that have not come back: they wait, or the function was left in another way, which findings leave out. */
  readonly waiting: number;
  /** From the entry of the function that takes it to its return. */
  readonly waited_ns: number;
  readonly max_wait_ns: number;
  /** From that return to the entry of the function that releases it, of those that were seen to; null without any. */
  readonly held_ns: number | null;
  readonly max_held_ns: number | null;
  /** Who held it longest: `app::print at src/console.rs:40`. */
  readonly max_held_by: string | null;
  /** Who waited for whom, the longest first. */
  readonly contention: readonly Contention[];
}

export interface Contention {
  readonly holder: string;
  readonly waiter: string;
  readonly count: number;
  readonly waited_ns: number;
}

/** A lock that was taken while another one was held. */
export interface LockOrder {
  readonly held: string;
  readonly held_address: string;
  /** Where it was taken that was held. */
  readonly held_by: string;
  readonly taken: string;
  readonly taken_address: string;
  readonly taken_by: string;
  readonly count: number;
  readonly first_ns: number;
}

/** Two locks that were taken in both orders, or harts that wait for each other's locks. */
export type LockFinding =
  | { readonly kind: 'lock-inversion'; readonly orders: readonly [LockOrder, LockOrder] }
  | {
      readonly kind: 'lock-deadlock';
      /** Each waits for the next one, and the last for the first: one alone waits for itself. */
      readonly waits: readonly LockWait[];
    };

/** A call that has not come back. */
export interface LockWait {
  readonly lock: string;
  readonly address: string;
  readonly hart: number;
  readonly by: string;
  readonly since_ns: number;
  /** Where the lock was taken. */
  readonly held_by: string;
  readonly held_since_ns: number;
}

/** Who waits for a lock at the moment, and who is seen to hold it. */
export interface OpenLockWait extends Pick<LockWait, 'lock' | 'address' | 'hart' | 'by' | 'since_ns'> {
  readonly held_by: string | null;
  readonly held_since_ns: number | null;
  /** On which hart it was taken. */
  readonly held_on: number | null;
}
