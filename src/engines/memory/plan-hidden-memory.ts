import { basename } from 'node:path';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import { type BootImage, bootImage, keyValues, qemuOptions, qemuSize } from '../../facts/index.js';
import { SharedFile } from './shared-file.js';

/** RAM beyond what the guest is told of. */
const HIDDEN = 16 * 2 ** 20;
/** What a QEMU machine has without -m. */
const DEFAULT_RAM = 128 * 2 ** 20;
/** From this much RAM on an x86 machine has part of it above 4 GiB (hw/i386/pc_piix.c, pc_q35.c). */
const SPLIT = { pc: 0xe000_0000, q35: 0xb000_0000 } as const;

/** A QEMU that is to be started with more RAM than its guest will be told of. */
export interface HiddenMemoryPlan extends Disposable {
  /** The command with what must be added to it. */
  readonly command: readonly string[];
  readonly machine: { readonly kind: 'riscv-virt' } | { readonly kind: 'pc'; readonly image: BootImage };
  /** Bytes of RAM that the guest may know of, and how many more there are. */
  readonly visible: number;
  readonly hidden: number;
  /** The file that is the machine's RAM; undefined where there can be none, for the reason in `notShared`. */
  readonly file: SharedFile | undefined;
  readonly notShared: string | undefined;
}

/**
 * Adds RAM to a QEMU command that its guest need not know of: `-m` raised, and all RAM in a file that this process can read. Options
 * that come later count, so nothing that stands in the command is changed.
 *
 * Refused where the RAM is not QEMU's own to lay out (`-numa`, a memory backend, `-readconfig`), where it comes from elsewhere
 * (`-incoming`, `-loadvm`, `-dtb`), for accelerators and machines other than TCG's `virt`, `pc` and `q35`, and for what is not a QEMU.
 */
export async function planHiddenMemory(command: readonly string[]): Promise<HiddenMemoryPlan | Refusal> {
  const [program = '', ...args] = command;
  const arch = /^qemu-system-(riscv64|x86_64)(?:\.exe)?$/.exec(basename(program))?.[1];
  if (arch === undefined) return { refused: `${program} is not known to be a QEMU of riscv64 or x86_64` };
  const options = qemuOptions(args);
  const foreign = options.find(({ name }) => ownLayout.has(name));
  if (foreign !== undefined) return { refused: `-${foreign.name} says where the guest's RAM comes from` };
  const machine = machineOf(options);
  const refused = unknownMachine(arch, machine) ?? otherAccelerator(options, machine);
  if (refused !== undefined) return { refused };

  const memory = new Map<string, string>();
  for (const { value } of options.filter(({ name }) => name === 'm')) {
    for (const [key, each] of keyValues(value, 'size')) memory.set(key, each);
  }
  const asked = memory.get('size');
  const visible = asked === undefined || asked === '0' ? DEFAULT_RAM : qemuSize(asked, 2 ** 20);
  if (visible === undefined || visible % 0x2000 !== 0)
    return { refused: `-m ${asked} is not a size that is understood` };
  if (memory.has('maxmem')) return { refused: '-m maxmem= makes room for RAM that is plugged in later' };

  if (arch === 'riscv64') return plan(command, { kind: 'riscv-virt' }, visible);
  const split = machine.get('type')?.includes('q35') ? SPLIT.q35 : SPLIT.pc;
  if (visible < split && visible + HIDDEN >= split) {
    return { refused: `with 16 MiB more than ${visible / 2 ** 20} MiB, part of the RAM would move above 4 GiB` };
  }
  const kernel = options.findLast(({ name }) => name === 'kernel')?.value;
  if (kernel === undefined) return { refused: 'without -kernel it is not known where the guest reads its memory map' };
  const image = await bootImage(kernel);
  return isRefusal(image) ? image : plan(command, { kind: 'pc', image }, visible);
}

const ownLayout = new Set(['numa', 'mem-path', 'readconfig', 'incoming', 'loadvm', 'dtb']);

function plan(command: readonly string[], machine: HiddenMemoryPlan['machine'], visible: number): HiddenMemoryPlan {
  const total = visible + HIDDEN;
  const made = SharedFile.create(total);
  const file = isRefusal(made) ? undefined : made;
  const backend =
    file === undefined
      ? []
      : [
          '-object',
          `memory-backend-file,id=rsptrace-ram,size=${total}B,share=on,mem-path=${file.path}`,
          '-machine',
          'memory-backend=rsptrace-ram',
        ];
  return {
    command: [...command, '-m', `${total}B`, ...backend],
    machine,
    visible,
    hidden: HIDDEN,
    file,
    notShared: isRefusal(made) ? made.refused : undefined,
    [Symbol.dispose]: () => file?.[Symbol.dispose](),
  };
}

/** What `-M` and `-machine` say together; later ones count. */
function machineOf(options: ReturnType<typeof qemuOptions>): ReadonlyMap<string, string> {
  const machine = new Map<string, string>();
  for (const { name, value } of options) {
    if (name !== 'M' && name !== 'machine') continue;
    for (const [key, each] of keyValues(value, 'type')) machine.set(key, each);
  }
  return machine;
}

function unknownMachine(arch: string, machine: ReadonlyMap<string, string>): string | undefined {
  const own = [...machine.keys()].find((key) => /^memory([-.]|$)|^(dtb|max-ram-below-4g)$/.test(key));
  if (own !== undefined) return `-machine ${own}= says where the guest's RAM comes from`;
  const type = machine.get('type');
  if (arch === 'riscv64') {
    return type === 'virt' ? undefined : `of riscv64 machines only virt is known, not ${type ?? 'the default one'}`;
  }
  return type === undefined || /^(pc|q35|pc-(i440fx|q35)-[\d.]+)$/.test(type)
    ? undefined
    : `of x86 machines only pc and q35 are known, not ${type}`;
}

function otherAccelerator(
  options: ReturnType<typeof qemuOptions>,
  machine: ReadonlyMap<string, string>,
): string | undefined {
  const wanted = options
    .filter(({ name }) => name === 'accel')
    .map(({ value }) => keyValues(value, 'accel').get('accel'));
  if (options.some(({ name }) => name === 'enable-kvm')) wanted.push('kvm');
  // Accelerators of the machine option are tried in turn: kvm:tcg.
  wanted.push(...(machine.get('accel')?.split(':') ?? []));
  const other = wanted.find((name) => name !== 'tcg');
  return other === undefined
    ? undefined
    : `the accelerator ${other} is not known to keep up with RAM that is written from outside`;
}
