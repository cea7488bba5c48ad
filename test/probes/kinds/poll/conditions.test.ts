// Conditions at polls, of a Future whose type is written by hand.
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { DebugInfo, DW_AT, DW_FORM, DW_TAG } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { decide } from '../../../../src/probes/expressions/comparison.js';
import { ProgramExpressions } from '../../../../src/probes/expressions/program.js';
import { parseProbe } from '../../../../src/probes/index.js';
import { PollConditions } from '../../../../src/probes/kinds/poll/conditions.js';
import { type DieSpec, DwarfWriter } from '../../../support/dwarf-writer.js';

const F = DW_FORM;

function member(name: string, type: string, offset: number): DieSpec {
  const place = [DW_AT.data_member_location, F.data1, offset] as const;
  return {
    tag: DW_TAG.member,
    label: name,
    attributes: [[DW_AT.name, F.strp, name], [DW_AT.type, F.ref4, { ref: type }], place],
  };
}

function struct(name: string, children: readonly DieSpec[]): DieSpec {
  const attributes = [[DW_AT.name, F.strp, name] as const, [DW_AT.byte_size, F.data1, 2] as const];
  return { tag: DW_TAG.structure_type, label: name, attributes, children };
}

/** Names in the order of their numbers. */
function enumeration(name: string, names: readonly string[]): DieSpec {
  const attributes = [
    [DW_AT.name, F.strp, name] as const,
    [DW_AT.byte_size, F.data1, 1] as const,
    [DW_AT.type, F.ref4, { ref: 'u8' }] as const,
  ];
  const children = names.map((each, value) => ({
    tag: DW_TAG.enumerator,
    attributes: [[DW_AT.name, F.strp, each] as const, [DW_AT.const_value, F.data1, value] as const],
  }));
  return { tag: DW_TAG.enumeration_type, label: name, attributes, children };
}

t.test('a member of one name is of another type in another state', async (t) => {
  const writer = new DwarfWriter();
  const states = [3, 4];
  const variants = states.map((value, i) => ({
    tag: DW_TAG.variant,
    attributes: [[DW_AT.discr_value, F.data1, value] as const],
    children: [member(`${value}`, `Suspend${i}`, 0)],
  }));
  const part: DieSpec = {
    tag: DW_TAG.variant_part,
    attributes: [[DW_AT.discr, F.ref4, { ref: '__state' }]],
    children: [member('__state', 'u8', 0), ...variants],
  };
  writer.unit({
    version: 5,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: [[DW_AT.language, F.data1, 0x1c]],
      children: [
        struct('env', [
          part,
          struct('Suspend0', [member('colour', 'Warm', 1)]),
          struct('Suspend1', [member('colour', 'Cold', 1)]),
        ]),
        enumeration('Warm', ['Red', 'Blue']),
        enumeration('Cold', ['Blue', 'Red']),
        {
          tag: DW_TAG.base_type,
          label: 'u8',
          attributes: [
            [DW_AT.name, F.strp, 'u8'],
            [DW_AT.byte_size, F.data1, 1],
            [DW_AT.encoding, F.data1, 7],
          ],
        },
      ],
    },
  });
  const debug = DebugInfo.load(ElfFile.parse(writer.elf(), 'hand'));
  const typeOffset = writer.labels.get('env') ?? -1;
  const future = {
    ...{ future: 'app::worker', instance: 'app::worker::{async_fn_env#0}', typeOffset },
    ...{ states: states.map((value) => ({ value })), discriminant: { offset: 0, size: 1 } },
  } as unknown as Parameters<PollConditions['of']>[0];
  /** In both states, with both numbers. */
  const holds = (condition: string): boolean[] => {
    const spec = parseProbe(`poll:app::worker if ${condition}`) as ConstructorParameters<
      typeof PollConditions
    >[1][number];
    const conditions = new PollConditions(new ProgramExpressions(debug), [spec]).of(future, 'a0') ?? [];
    return states.flatMap((state) =>
      [0, 1].map((number) => {
        const bytes = Uint8Array.of(state, number);
        const memory = { at: () => ({ bytes }), bytes: () => bytes };
        return decide(conditions, { register: () => addr(0x1000n) }, memory as never) === true;
      }),
    );
  };
  t.strictSame(holds('colour == Red'), [true, false, false, true]);
  t.strictSame(holds('colour != Red'), [false, true, true, false]);
  t.strictSame(holds('colour == Blue'), [false, true, true, false]);
});
