// Futures written by hand whose poll the optimiser inlined without a trace: what awaits them shows that they are Futures.
import t from 'tap';
import { findFutures } from '../../../src/async/futures/index.js';
import { isFuturePoll } from '../../../src/async/futures/poll-functions.js';
import { DebugInfo, DW_AT, DW_TAG, DW_FORM as F } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { debugOf } from '../../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../../support/dwarf-writer.js';
import { pollsProgram } from '../../support/native.js';

const member = (name: string, type: string, offset = 0): DieSpec => ({
  tag: DW_TAG.member,
  attributes: [
    [DW_AT.name, F.string, name],
    [DW_AT.type, F.ref4, { ref: type }],
    [DW_AT.data_member_location, F.udata, offset],
  ],
});
const struct = (label: string, name: string, members: readonly DieSpec[] = [], size = 8): DieSpec => ({
  tag: DW_TAG.structure_type,
  label,
  attributes: [
    [DW_AT.name, F.string, name],
    [DW_AT.byte_size, F.udata, size],
  ],
  children: members,
});
const pointer = (label: string, name: string, to: string): DieSpec => ({
  tag: DW_TAG.pointer_type,
  label,
  attributes: [
    [DW_AT.name, F.string, name],
    [DW_AT.type, F.ref4, { ref: to }],
  ],
});

t.test('what a state awaits and the branches of a select!, itself or behind a pointer', (t) => {
  const writer = new DwarfWriter();
  const children = [
    ...['Awaited', 'Borrowed', 'First', 'Second', 'Other', 'Kept'].map((name) => struct(name, name)),
    pointer('&mut Borrowed', '&mut Borrowed', 'Borrowed'),
    struct('branches', '(First, Second)', [member('__0', 'First'), member('__1', 'Second', 8)], 16),
    pointer('&mut branches', '&mut (First, Second)', 'branches'),
    struct('Suspend0', 'Suspend0', [member('__awaitee', 'Awaited'), member('kept', 'Kept')]),
    struct('Suspend1', 'Suspend1', [member('__awaitee', '&mut Borrowed')]),
    struct('closure', '{closure_env#0}', [member('_ref__futures', '&mut branches'), member('other', 'Kept')]),
    struct('plain', 'Plain', [member('futures', 'Other'), member('__awaitee', 'Other')]),
  ];
  writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
  const { all } = findFutures(debugOf(writer));
  t.strictSame(
    all.map(({ future }) => future),
    ['Awaited', 'Borrowed', 'First', 'Second'],
  );
  t.ok(all.every(({ kind, isTypeOnly, polls }) => kind === 'impl' && isTypeOnly && polls.length === 0));
  t.end();
});

t.test('a poll whose mangled name is missing, or cannot be read, is known by its shape', (t) => {
  const parameter = (type: string): DieSpec => ({
    tag: DW_TAG.formal_parameter,
    attributes: [[DW_AT.type, F.ref4, { ref: type }]],
  });
  const poll = (label: string, types: readonly string[], symbol?: string, result = 'Poll'): DieSpec => ({
    tag: DW_TAG.subprogram,
    label,
    attributes: [
      [DW_AT.name, F.string, 'poll'],
      [DW_AT.type, F.ref4, { ref: result }],
      ...(symbol === undefined ? [] : [[DW_AT.linkage_name, F.string, symbol] as const]),
    ],
    children: types.map(parameter),
  });
  const inside = (names: readonly string[], children: readonly DieSpec[]): DieSpec[] =>
    names.reduceRight<readonly DieSpec[]>(
      (below, name) => [{ tag: DW_TAG.namespace, attributes: [[DW_AT.name, F.string, name]], children: below }],
      children,
    ) as DieSpec[];
  // `Future::poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output>`.
  const wanted = [poll('none', ['Pin', 'Context']), poll('unread', ['Pin', 'Context'], 'poll_of_mine')];
  const odd = [
    poll('other', ['Pin', 'Other']),
    poll('alone', ['Pin']),
    poll('odd result', ['Pin', 'Context'], undefined, 'Own'),
    poll('of a stream', ['Pin', 'Context'], '_RNvXCs4fqI2P2rA04_1aNtB2_1SNtB2_6Stream4poll'),
  ];
  const writer = new DwarfWriter();
  const children = [
    ...inside(['core', 'task', 'poll'], [struct('Poll', 'Poll<()>')]),
    ...['Pin', 'Own', 'Waker'].map((name) => struct(name, name)),
    pointer('Context', '&mut core::task::wake::Context', 'Waker'),
    pointer('Other', '&mut core::task::wake::Waker', 'Waker'),
    ...inside(['a', '{impl#0}'], [...wanted, ...odd]),
    ...inside(['a', 'not an impl'], [poll('free', ['Pin', 'Context'])]),
  ];
  writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
  const debug = debugOf(writer);
  const labels = [...wanted, ...odd].flatMap(({ label }) => label ?? []);
  const are = [...labels, 'free'].filter((label) => {
    const fn = debug.die(writer.labels.get(label) ?? -1);
    return fn !== undefined && isFuturePoll(fn);
  });
  t.strictSame(are, ['none', 'unread']);
  t.end();
});

t.test("a program's JoinHandle, one of whose instances has lost its poll", async (t) => {
  const path = pollsProgram(t, 'tokio');
  const found = findFutures(DebugInfo.load(await ElfFile.open(path))).all.filter(({ isTypeOnly }) => isTypeOnly);
  t.ok(found.some(({ future }) => future === 'tokio::runtime::task::join::JoinHandle'));
});
