// Which server answers, and what it can do: what docs/stubs.md tells of the stubs that the tests know, asked of this one.
import { type Addr, addOffset } from '../base/addr.js';
import { isProcess, type MemoryRegion, type Session } from '../rsp/index.js';

export type ServerName =
  | 'qemu-system'
  | 'qemu-user'
  | 'gdbserver'
  | 'lldb-server'
  | 'valgrind'
  | 'openocd'
  | 'renode'
  | 'unknown';

/** Which server it is, as far as it can be told. */
export interface Server {
  readonly name: ServerName;
  /** In its own words; undefined where it does not tell (gdbserver, lldb-server, valgrind, QEMU in user mode). */
  readonly version: string | undefined;
  /** QEMU alone: `kvm`, or `tcg` where it says that KVM is not in use. */
  readonly accelerator: 'kvm' | 'tcg' | undefined;
}

export async function identify(session: Session): Promise<Server> {
  const { features } = session;
  const server = (name: ServerName, version?: string): Server => ({ name, version, accelerator: undefined });
  if (features.qemuStepBits !== undefined) {
    if (isProcess(features)) return { ...server('qemu-user'), accelerator: 'tcg' };
    const kvm = await session.monitor('info kvm');
    const accelerator = kvm === undefined ? undefined : /\benabled\b/.test(kvm) ? 'kvm' : 'tcg';
    return { ...server('qemu-system', firstLine(await session.monitor('info version'))), accelerator };
  }
  if (features.supported.has('t32extensions')) return server('renode');
  if (features.supported.has('qEcho') || features.supported.has('native-signals')) return server('lldb-server');
  if (features.supported.has('QProgramSignals')) return server('gdbserver');
  if (await session.isOpenOcd()) return server('openocd', firstLine(await session.monitor('version')));
  const help = isProcess(features) ? await session.monitor('help') : undefined;
  return server(help !== undefined && /\bvalgrind\b/i.test(help) ? 'valgrind' : 'unknown');
}

/** QEMU puts no space before its package's version. */
function firstLine(text: string | undefined): string | undefined {
  const line = text?.split(/[\r\n]/).find((each) => each.trim() !== '');
  return line?.trim().replace(/^(\d[\d.]*)(?=[A-Za-z])/, '$1 ');
}

/** What a stub takes and tells. */
export interface StubAbilities {
  /** The types of Z that are taken: 0 software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. */
  readonly breakpoints: readonly number[];
  /** The packets that list threads. */
  readonly threads: 'qXfer' | 'qf' | 'none';
  readonly memoryMap: readonly MemoryRegion[] | undefined;
  /** It reads files of its machine (vFile). */
  readonly fileTransfer: boolean;
}

/** Inserts a breakpoint of each type and takes it out in the same write, the target standing: `code` and `data` are addresses that may bear them. */
export async function abilitiesOf(
  session: Session,
  place: { readonly code: Addr; readonly data: Addr; readonly kind: number },
): Promise<StubAbilities> {
  const batch = session.batch();
  const tried = [0, 1, 2, 3, 4].map((type) => {
    const where = type < 2 ? `${place.code.toString(16)},${place.kind}` : `${place.data.toString(16)},8`;
    const reply = batch.raw(`Z${type},${where}`);
    batch.raw(`z${type},${where}`);
    return { type, reply };
  });
  const first = batch.raw('qfThreadInfo');
  const files = batch.raw('vFile:setfs:0');
  await batch.send();
  const { transfer } = session.features;
  return {
    breakpoints: tried.filter(({ reply }) => reply.value === 'OK').map(({ type }) => type),
    threads: transfer.has('threads') ? 'qXfer' : first.value.startsWith('m') ? 'qf' : 'none',
    memoryMap: transfer.has('memory-map') ? await session.memoryRegions() : undefined,
    fileTransfer: files.value.startsWith('F'),
  };
}

/** More hardware breakpoints than any chip has: who takes so many does not count them. */
const mostHardware = 16;

/** How many hardware breakpoints fit at once; undefined where there is no end of them (an emulator), or none. */
export async function countHardware(session: Session, code: Addr, kind: number): Promise<number | undefined> {
  const batch = session.batch();
  const places = Array.from({ length: mostHardware }, (_, index) => addOffset(code, index * kind));
  const inserted = places.map((address) => batch.insertBreakpoint({ type: 1, address, kind }));
  await batch.send();
  const count = inserted.filter((reply) => reply.value).length;
  const out = session.batch();
  for (const breakpoint of session.breakpoints) if (breakpoint.type === 1) out.removeBreakpoint(breakpoint);
  await out.send();
  return count === 0 || count === mostHardware ? undefined : count;
}
