// Sections of which only what is needed is read give the same as whole ones, whatever is asked for first.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type DebugInfo, DieCursor, DW_AT, DebugInfo as Dwarf, rangesOf } from '../../src/dwarf/index.js';
import { locationsOf } from '../../src/dwarf/location.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { usually } from '../support/long.js';
import { scratch } from '../support/small-programs.js';

interface Asked {
  readonly offset: number;
  readonly attribute: 'location' | 'ranges';
}

/** Every entry with a list of ranges or locations. */
function listsOf(debug: DebugInfo): Asked[] {
  return debug.units.flatMap((unit) => {
    const found: Asked[] = [];
    for (const cursor = DieCursor.of(unit); cursor.next(); )
      for (const attribute of ['location', 'ranges'] as const)
        if (cursor.locate(DW_AT[attribute])) found.push({ offset: cursor.offset, attribute });
    return found;
  });
}

for (const name of usually(['rv-o2', 'rv-o2-dwarf5'], (one) => one === 'rv-o2-dwarf5'))
  t.test(name, async (t) => {
    const path = join(scratch(), name);
    execFileSync('riscv64-linux-gnu-objcopy', ['--decompress-debug-sections', elfPath(name), path]);
    const whole = Dwarf.load(ElfFile.parse(new Uint8Array(readFileSync(path)), name));
    const asked = listsOf(whole);
    t.ok(asked.length > 500, `${asked.length}`);
    const answer = (debug: DebugInfo, { offset, attribute }: Asked): string => {
      const die = debug.die(offset);
      return JSON.stringify(
        die && (attribute === 'ranges' ? rangesOf(die) : locationsOf(die, DW_AT.location)),
        (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value),
      );
    };
    const expected = asked.map((one) => answer(whole, one));
    const lines = whole.units.map((unit) => whole.lineTable(unit));
    // Each number comes once: 7919 is a prime.
    const order = asked.map((_, i) => (i * 7919) % asked.length);
    const inPart = Dwarf.load(await ElfFile.open(path));
    const wrong = order.filter((i) => answer(inPart, asked[i] as Asked) !== expected[i]);
    t.same(wrong, []);
    const again = Dwarf.load(await ElfFile.open(path));
    const tables = [...again.units.keys()]
      .reverse()
      .map((i) => again.lineTable(again.units[i] as (typeof again.units)[number]));
    t.same(tables.reverse(), lines);
  });
