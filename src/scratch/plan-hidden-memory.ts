import { type Architecture, architectures } from '../arch/index.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import { keyValues, qemuOptions, qemuSize } from '../target/index.js';
import { emulatedBy, machinesWith } from './machines/index.js';
import type { Hide, Hiding, Machine } from './machines/machine.js';
import { ramFor } from './scratch.js';
import { SharedFile } from './shared-file.js';

/** The id of the RAM's backend in QEMU. */
const BACKEND = 'rsptrace-ram';
/** The RAM of a QEMU machine without -m. */
const DEFAULT_RAM = 128 * 2 ** 20;

/** A QEMU that is to be started with more RAM than its guest will be told about. */
export interface HiddenMemoryPlan extends HidingPlan, Disposable {
  /** The command with the options that are added. */
  readonly command: readonly string[];
  readonly machine: Machine;
}

/** RAM that a guest will not know of. */
export interface HidingPlan {
  readonly hide: Hide;
  /** Bytes of RAM that the guest may know about, and how many more there are. */
  readonly visible: number;
  readonly hidden: number;
  /** The file that is the RAM of a machine of ours; undefined if there can be none, for the reason in `notShared`. */
  readonly file?: SharedFile | undefined;
  readonly notShared?: string | undefined;
  /** It is a module of its own. The guest can find it, if it looks for such. */
  readonly isModule?: boolean;
}

/**
 * Adds RAM to a QEMU command that its guest need not know about. Either `-m` is raised, and all RAM lies in a file that
 * this process can read; or a module is added, in such a file. Later options override earlier ones, so the
 * command's own options are not changed. `codeSize`: bytes that trampolines may need, see `codeRoom`.
 *
 * Refused in three cases. QEMU does not lay out the RAM itself (`-numa`, a memory backend, `-readconfig`), or the
 * RAM's contents come from elsewhere (`-incoming`, `-loadvm`, `-dtb`). The accelerator is not TCG. The machine is not
 * in machines/.
 */
export async function planHiddenMemory(command: readonly string[], codeSize = 0): Promise<HiddenMemoryPlan | Refusal> {
  const [program = '', ...args] = command;
  const arch = emulatedBy(program);
  const known = arch ? machinesWith(arch) : [];
  if (arch === undefined || known.length === 0) {
    const emulated = architectures().filter((each) => machinesWith(each).length > 0);
    return { refused: `${program} is not known to be a QEMU of ${emulated.map(({ name }) => name).join(' or ')}` };
  }
  const options = qemuOptions(args);
  const foreign = options.find(({ name }) => ownLayout.has(name));
  if (foreign !== undefined) return { refused: `-${foreign.name} says where the guest's RAM comes from` };
  const wanted = machineOf(options);
  const machine = known.find((one) => one.isType(wanted.get('type')));
  const own = ownMemory(wanted);
  if (own !== undefined) return { refused: own };
  if (machine === undefined) return { refused: unknownMachine(arch, known, wanted) };
  const other = otherAccelerator(options, wanted);
  if (other !== undefined) return { refused: other };

  const memory = new Map<string, string>();
  for (const { value } of options.filter(({ name }) => name === 'm')) {
    for (const [key, each] of keyValues(value, 'size')) memory.set(key, each);
  }
  const asked = memory.get('size');
  const visible = asked === undefined || asked === '0' ? DEFAULT_RAM : qemuSize(asked, 2 ** 20);
  if (visible === undefined || visible % 0x2000 !== 0)
    return { refused: `-m ${asked} is not a size that is understood` };
  if (memory.has('maxmem')) return { refused: '-m maxmem= makes room for RAM that is plugged in later' };

  const hiding = (bytes: number): Promise<Hiding | Refusal> =>
    machine.hiding(options, wanted.get('type'), visible, bytes);
  const [most, least] = [ramFor(codeSize), ramFor(0)];
  const first = await hiding(most);
  // Where there is no place for all trampolines, there may be one for some.
  const [way, hidden] = isRefusal(first) ? [await hiding(least), least] : [first, most];
  return isRefusal(way) ? way : plan(command, machine, way, { visible, hidden });
}

const ownLayout = new Set(['numa', 'mem-path', 'readconfig', 'incoming', 'loadvm', 'dtb']);

function plan(
  command: readonly string[],
  machine: Machine,
  { hide, asModule }: Hiding,
  { visible, hidden }: Pick<HidingPlan, 'visible' | 'hidden'>,
): HiddenMemoryPlan {
  const total = asModule ? hidden : visible + hidden;
  const made = SharedFile.create(total);
  const file = isRefusal(made) ? undefined : made;
  const kind = file === undefined ? 'ram' : 'file';
  const where = file === undefined ? '' : `,share=on,mem-path=${file.path}`;
  const backend = ['-object', `memory-backend-${kind},id=${BACKEND},size=${total}B${where}`];
  const larger = ['-m', `${total}B`, ...(file ? [...backend, '-machine', `memory-backend=${BACKEND}`] : [])];
  return {
    command: [...command, ...(asModule ? [...backend, ...asModule(BACKEND, visible, hidden)] : larger)],
    isModule: asModule !== undefined,
    machine,
    hide,
    visible,
    hidden,
    file,
    notShared: isRefusal(made) ? made.refused : undefined,
    [Symbol.dispose]: () => file?.[Symbol.dispose](),
  };
}

/** The options of `-M` and `-machine` together; later ones override. */
export function machineOf(options: ReturnType<typeof qemuOptions>): ReadonlyMap<string, string> {
  const machine = new Map<string, string>();
  for (const { name, value } of options) {
    if (name !== 'M' && name !== 'machine') continue;
    for (const [key, each] of keyValues(value, 'type')) machine.set(key, each);
  }
  return machine;
}

function ownMemory(machine: ReadonlyMap<string, string>): string | undefined {
  const own = [...machine.keys()].find((key) => /^memory([-.]|$)|^(dtb|max-ram-below-4g)$/.test(key));
  return own === undefined ? undefined : `-machine ${own}= says where the guest's RAM comes from`;
}

function unknownMachine(
  { name }: Architecture,
  known: readonly Machine[],
  machine: ReadonlyMap<string, string>,
): string {
  const types = known.flatMap((one) => one.types).join(' and ');
  const type = machine.get('type') ?? 'the default one';
  return `of ${name} machines only ${types} ${types.includes(' ') ? 'are' : 'is'} known, not ${type}`;
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
