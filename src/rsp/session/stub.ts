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

/** Which server answers, and what only it can say of itself. Each question goes out once, when somebody first asks. */
export class Stub {
  readonly name: StubName;
  /** What it was recognised by: an answer that no other known server gives. */
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

  /** What QEMU runs the guest's code by. Undefined for other servers, and where QEMU does not tell. */
  accelerator(): Promise<'kvm' | 'tcg' | undefined> {
    this.#accelerator ??= this.#askAccelerator();
    return this.#accelerator;
  }

  /** In its own words. Undefined where it does not tell: gdbserver, lldb-server, valgrind, QEMU in user mode. */
  async version(): Promise<string | undefined> {
    if (this.name === 'qemu-system') return firstLine(await this.#monitor('info version'));
    return this.name === 'openocd' ? firstLine(await this.#monitor('version')) : undefined;
  }

  /** A QEMU with -S whose guest was not let go yet: to detach would start it. */
  async neverRan(): Promise<boolean> {
    return this.name === 'qemu-system' && /\bprelaunch\b/.test((await this.#monitor('info status')) ?? '');
  }

  /**
   * Whether its software breakpoints are trap instructions in the target's memory. Emulators (QEMU but for KVM,
   * valgrind, Renode) compare addresses instead, and take a breakpoint where nothing is mapped yet.
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

/** Recognises the server. Asks it nothing where the handshake has told enough. */
export async function identifyStub(features: StubFeatures, monitor: Monitor): Promise<Stub> {
  return new Stub(fromHandshake(features) ?? (await fromVersion(monitor)), monitor);
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
