// Members by the names on the way to them, against llvm-dwarfdump; and what is said of one that is missing.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { genericsOf, memberAt, partCalled } from '../../../src/async/tasks/index.js';
import { alignOf } from '../../../src/async/tasks/runtimes/header-tasks.js';
import { DebugInfo, DW_AT, DW_TAG } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { elfPath } from '../../qemu/guests/guests.js';

const path = elfPath('rv-embassy-o3');

t.test('every member of a header, where llvm-dwarfdump has it', async (t) => {
  const debug = DebugInfo.load(await ElfFile.open(path));
  const [header] = debug.typesNamed('embassy_executor::raw::TaskHeader');
  const text = execFileSync('llvm-dwarfdump', ['--name=TaskHeader', '-c', path], { encoding: 'utf8' });
  const [first = ''] = text.split('DW_TAG_structure_type').slice(1);
  const members = [...first.matchAll(/DW_AT_name\s+\("(\w+)"\)(?:(?!DW_TAG).)*?data_member_location\s+\((0x\w+)\)/gs)];
  t.ok(members.length >= 6, first);
  for (const [, name = '', offset] of members)
    t.equal(header && memberAt(header, name)?.offset, Number(offset), `${name} at ${offset}`);
});

t.test('through members and wrappers; the first name that is missing is told', async (t) => {
  const debug = DebugInfo.load(await ElfFile.open(path));
  const [storage] = debug.typesNamed('embassy_executor::raw::TaskStorage');
  t.ok(storage);
  if (storage === undefined) return;
  t.match(genericsOf(storage).get('F')?.name, /^\{async_fn_env#0\}/);
  const header = memberAt(storage, 'raw');
  const direct = memberAt(storage, 'raw.poll_fn');
  const alone = header && memberAt(header.type, 'poll_fn');
  t.equal(direct?.offset, (header?.offset ?? 0) + (alone?.offset ?? 0));
  t.equal(direct && partCalled(direct.type, 'Option')?.offset, 0, 'behind an UnsafeCell');
  const told: string[] = [];
  t.equal(
    memberAt(storage, 'raw.priority.value', (what) => told.push(what)),
    undefined,
  );
  t.strictSame(told, ["`embassy_executor::raw::TaskHeader` has no member `priority` in this program's debug info"]);
});

t.test('arrays are aligned as their elements', async (t) => {
  const debug = DebugInfo.load(await ElfFile.open(path));
  let seen = 0;
  const found = new Map<string, number>();
  debug.walk((cursor) => {
    const array = cursor.tag === DW_TAG.array_type ? cursor.die() : undefined;
    const element = array?.follow(DW_AT.type);
    const align = element?.name === 'u8' ? 1 : element?.number(DW_AT.alignment);
    if (array && align !== undefined && alignOf(array) !== align) found.set(array.name ?? '?', align);
    if (array && align !== undefined) seen++;
  });
  t.ok(seen > 10, `${seen} arrays`);
  t.same([...found], []);
});
