import { isProcess, type StubFeatures } from './features.js';

export type StubName =
  | 'qemu-system'
  | 'qemu-user'
  | 'gdbserver'
  | 'lldb-server'
  | 'openocd'
  | 'valgrind'
  | 'rr'
  | 'renode'
  | 'unknown';

/** Which server answers, and facts that only it has about itself. Each question is asked once, at the first request. */
export class Stub {
  readonly name: StubName;
  /** What identified it: an answer that no other known server gives. */
  readonly recognizedBy: string;
  readonly #monitor: Monitor;
  #accelerator: Promise<'kvm' | 'tcg' | undefined> | undefined;

  constructor({ name, by }: Recognized, monitor: Monitor) {
    this.name = name;
    this.recognizedBy = by;
    this.#monitor = monitor;
  }

  get isQemu(): boolean {
    return this.name === 'qemu-system' || this.name === 'qemu-user';
  }

  /** How QEMU runs the guest's code. Undefined for other servers, and if QEMU does not say. */
  accelerator(): Promise<'kvm' | 'tcg' | undefined> {
    this.#accelerator ??= this.#askAccelerator();
    return this.#accelerator;
  }

  /** In its own words. Undefined if it does not say: gdbserver, lldb-server, valgrind, QEMU in user mode. */
  async version(): Promise<string | undefined> {
    if (this.name === 'qemu-system') return firstLine(await this.#monitor('info version'));
    return this.name === 'openocd' ? firstLine(await this.#monitor('version')) : undefined;
  }

  /** How many harts its machine has, whether it shows them or not. Undefined for other servers than QEMU. */
  async processors(): Promise<number | undefined> {
    const said = this.name === 'qemu-system' ? await this.#monitor('info cpus') : undefined;
    return said?.match(/^[* ]*CPU #\d+:/gm)?.length;
  }

  /** A QEMU with -S whose guest was never started: a detach would start it. */
  async neverRan(): Promise<boolean> {
    return this.name === 'qemu-system' && /\bprelaunch\b/.test((await this.#monitor('info status')) ?? '');
  }

  /**
   * Whether its software breakpoints are trap instructions in the target's memory. Emulators (QEMU without KVM,
   * valgrind, Renode) compare addresses instead, and accept a breakpoint at an address that is not mapped yet.
   */
  async writesTraps(): Promise<boolean> {
    if (this.isQemu) return (await this.accelerator()) === 'kvm';
    return this.name !== 'valgrind' && this.name !== 'renode';
  }

  async #askAccelerator(): Promise<'kvm' | 'tcg' | undefined> {
    if (this.name === 'qemu-user') return 'tcg';
    const said = this.name === 'qemu-system' ? await this.#monitor('info kvm') : undefined;
    if (said === undefined) return undefined;
    return /\benabled\b/.test(said) ? 'kvm' : 'tcg';
  }
}

/** Runs a command of the stub's own: what it prints, or undefined where it refuses. */
type Monitor = (command: string) => Promise<string | undefined>;

interface Recognized {
  readonly name: StubName;
  readonly by: string;
}

/** Recognises the server. Asks it nothing if the handshake was enough. */
export async function identifyStub(features: StubFeatures, monitor: Monitor): Promise<Stub> {
  return new Stub(fromHandshake(features) ?? (await fromVersion(monitor)), monitor);
}

/** The server, if the handshake was enough to recognise it. */
export function stubOfHandshake(features: StubFeatures): StubName | undefined {
  return fromHandshake(features)?.name;
}

function fromHandshake(features: StubFeatures): Recognized | undefined {
  const { supported, qemuStepBits, noAck, vCont } = features;
  const process = isProcess(features);
  if (qemuStepBits !== undefined) return { name: process ? 'qemu-user' : 'qemu-system', by: 'qqemu.sstepbits' };
  if (supported.has('t32extensions')) return { name: 'renode', by: 't32extensions in qSupported' };
  for (const feature of ['qEcho', 'native-signals']) {
    if (supported.has(feature)) return { name: 'lldb-server', by: `${feature} in qSupported` };
  }
  if (supported.has('QProgramSignals')) return { name: 'gdbserver', by: 'QProgramSignals in qSupported' };
  if (process && noAck && vCont.size === 0) {
    return { name: 'valgrind', by: 'no-ack mode without vCont, of a process' };
  }
  if (process && supported.get('ReverseContinue') === '+') {
    return { name: 'rr', by: 'ReverseContinue in qSupported, of a process' };
  }
  return process || features.multiprocess ? unknown : undefined;
}

const unknown: Recognized = { name: 'unknown', by: 'nothing that it answers' };

async function fromVersion(monitor: Monitor): Promise<Recognized> {
  const isOpenOcd = (await monitor('version'))?.includes('Open On-Chip Debugger');
  return isOpenOcd ? { name: 'openocd', by: 'monitor version' } : unknown;
}

/** QEMU puts no space before its package's version. */
function firstLine(text: string | undefined): string | undefined {
  const line = text?.split(/[\r\n]/).find((each) => each.trim() !== '');
  return line?.trim().replace(/^(\d[\d.]*)(?=[A-Za-z])/, '$1 ');
}
