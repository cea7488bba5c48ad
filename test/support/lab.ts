import { guest, type Lab, TIMING_DEPENDENT } from '../qemu/guests/guests.js';
import type { FutureRow } from './recording.js';

/** Which Futures of the trace the guest counts under one name: by path, and by a part of the instance's type. */
const places: Readonly<Record<string, { readonly future: string; readonly instance?: RegExp }>> = {
  ...Object.fromEntries(
    [
      'chain_task',
      'level1',
      'level2',
      'level3',
      'leaf_io',
      'joiner',
      'selector',
      'loser',
      'sleeper',
      'producer',
      'consumer',
    ].map((name) => [name, { future: `labkern::work::${name}` }]),
  ),
  irq_wait: { future: 'labkern::work::irq_wait' },
  fib_box: { future: 'labkern::work::fib_box::{async_block#0}' },
  generic_add_u8: { future: 'labkern::work::generic_add', instance: /<u8, / },
  generic_add_u32: { future: 'labkern::work::generic_add', instance: /<u32, / },
  method: { future: 'labkern::work::Disk::seek' },
  trait_method: { future: '<labkern::work::Disk as labkern::work::BlockDev>::read' },
  block_fn: { future: 'labkern::work::block_fn::{async_block#0}' },
  closure: { future: 'labkern::work::device_task::{closure#0}' },
  yield_n: { future: 'labkern::futs::YieldN' },
  sleep: { future: 'labkern::futs::Sleep' },
  join2: { future: 'labkern::futs::Join2' },
  select2: { future: 'labkern::futs::Select2' },
  recv: { future: 'labkern::futs::Recv' },
};

/** `LAB stat` names that are not polls of a Future of the guest's own crate. */
const notPolls = new Set(['deep_calls', 'pollfn', 'poll_task']);

/** For each name that the guest counts polls under, its own count and the trace's. */
export function compareCounts(
  lab: Lab,
  futures: readonly FutureRow[],
): { name: string; counted: number; polls: number; derived: number; timing: boolean }[] {
  return [...lab.stats]
    .filter(([name]) => !notPolls.has(name))
    .map(([name, { polls: counted }]) => {
      const place = places[name];
      if (!place) throw new Error(`the guest counts '${name}', which no test knows`);
      const rows = futures.filter((row) => row.future === place.future && (place.instance?.test(row.instance) ?? true));
      const sum = (field: 'polls' | 'derived'): number => rows.reduce((total, row) => total + row[field], 0);
      return { name, counted, polls: sum('polls'), derived: sum('derived'), timing: TIMING_DEPENDENT.has(name) };
    });
}

/** QEMU's arguments behind `--`, from the manifest. */
export function guestExit(name: string): string {
  return `status ${guest(name).exit}`;
}
