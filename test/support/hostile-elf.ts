// A program whose every name is what the test says: a Future with its vtable, types, functions, variables and symbols.
import { DW_AT, DW_FORM, DW_TAG } from '../../src/dwarf/index.js';
import { type DieSpec, DwarfWriter } from './dwarf-writer.js';
import { ByteWriter } from './elf-writer.js';

const F = DW_FORM;
/** Where its code begins, where the Future's vtable is, and how large the Future is. */
export const program = { entry: 0x1000, vtable: 0x1800, futureSize: 16 } as const;

function member(name: string, type: string, offset: number): DieSpec {
  const place = [DW_AT.data_member_location, F.data1, offset] as const;
  return { tag: DW_TAG.member, attributes: [[DW_AT.name, F.strp, name], [DW_AT.type, F.ref4, { ref: type }], place] };
}

function variant(name: string, value: number, label: string): DieSpec {
  return {
    tag: DW_TAG.variant,
    attributes: [[DW_AT.discr_value, F.data1, value]],
    children: [member(name, label, 0)],
  };
}

function struct(name: string, label: string, children: readonly DieSpec[]): DieSpec {
  const attributes = [[DW_AT.name, F.strp, name] as const, [DW_AT.byte_size, F.data1, program.futureSize] as const];
  return { tag: DW_TAG.structure_type, label, attributes, children };
}

export function hostileElf(name: string): Uint8Array {
  const writer = new DwarfWriter();
  const future: DieSpec = struct(`{async_fn_env#0}<${name}>`, 'env', [
    {
      tag: DW_TAG.variant_part,
      attributes: [[DW_AT.discr, F.ref4, { ref: 'state' }]],
      children: [
        {
          tag: DW_TAG.member,
          label: 'state',
          attributes: [
            [DW_AT.type, F.ref4, { ref: 'byte' }],
            [DW_AT.data_member_location, F.data1, 8],
            [DW_AT.noreturn, F.flag_present, 0],
          ],
        },
        variant('0', 0, 'unresumed'),
        variant('3', 3, 'suspend'),
      ],
    },
    struct('Unresumed', 'unresumed', [member(name, 'byte', 1)]),
    struct(`Suspend0${name}`, 'suspend', [member('__awaitee', 'other', 0), member(`local${name}`, 'byte', 2)]),
  ]);
  const variable: DieSpec = {
    tag: DW_TAG.variable,
    attributes: [
      [DW_AT.name, F.strp, `<${name} as core::future::future::Future>::{vtable}`],
      [DW_AT.type, F.ref4, { ref: 'vtable' }],
      [DW_AT.location, F.exprloc, new ByteWriter().u8(3).uint(program.vtable, 8).bytes()],
    ],
  };
  const code: DieSpec = {
    tag: DW_TAG.subprogram,
    attributes: [
      [DW_AT.name, F.strp, `function${name}`],
      [DW_AT.low_pc, F.addr, program.entry],
      [DW_AT.high_pc, F.data4, 0x100],
    ],
  };
  writer.unit({
    version: 5,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: [
        [DW_AT.name, F.strp, name],
        [DW_AT.language, F.data1, 0x1c],
      ],
      children: [
        { tag: DW_TAG.namespace, attributes: [[DW_AT.name, F.strp, `space${name}`]], children: [future, code] },
        struct(`Other${name}`, 'other', [member(`field${name}`, 'byte', 0)]),
        struct(`Other2${name}`, 'other2', [member(`field${name}`, 'byte', 0)]),
        {
          tag: DW_TAG.base_type,
          label: 'byte',
          attributes: [
            [DW_AT.name, F.strp, `u8${name}`],
            [DW_AT.byte_size, F.data1, 1],
            [DW_AT.encoding, F.data1, 7],
          ],
        },
        {
          tag: DW_TAG.structure_type,
          label: 'vtable',
          attributes: [
            [DW_AT.containing_type, F.ref4, { ref: 'env' }],
            [DW_AT.name, F.strp, '{vtable_type}'],
          ],
        },
        variable,
      ],
    },
  });
  const symbols = new ByteWriter().raw(new Uint8Array(24));
  symbols.uint(1, 4).u8(0x12).u8(0).uint(1, 2).uint(program.entry, 8).uint(0x100, 8);
  const names = new ByteWriter().u8(0).cstr(`symbol${name}`);
  const sections = writer.sections().length + 1;
  return writer.elf([
    { name: '.symtab', bytes: symbols.bytes(), type: 2, link: sections + 1, entrySize: 24 },
    { name: '.strtab', bytes: names.bytes(), type: 3 },
    { name: '.text', bytes: new Uint8Array(0x100), flags: 6, address: BigInt(program.entry) },
  ]);
}
