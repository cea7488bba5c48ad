import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { protocolError } from '../wire/framing.js';
import type { Link } from '../wire/link.js';
import type { Probe } from '../wire/resync.js';
import { packetSizeOf, parseActions, parseSupported, type StubFeatures, transferObjects } from './features.js';
import { packets } from './packets.js';
import { defaultRegisters, type KnownRegisters, knownRegisters } from './registers.js';
import { type Request, TextRequest } from './request.js';
import { SignalNumbers } from './signals.js';
import { parseStopReply, pidOf, type StopReply } from './stop-reply.js';
import { type RegisterDescription, readTargetXml, TargetDescription } from './target-description.js';
import { readThreads } from './threads.js';
import { readObject } from './transfer.js';

/** What the handshake has found out. */
export interface Greeting {
  readonly features: StubFeatures;
  readonly target: TargetDescription;
  /** Where there are several processes, that of each: their processors may have other registers. */
  readonly clusters: ReadonlyMap<string, TargetDescription>;
  readonly stop: StopReply;
  readonly harts: readonly string[];
  readonly attached: boolean | undefined;
}

/** What {@link shakeHands} knows about registers beforehand. */
interface RegisterOptions {
  readonly architectures?: readonly KnownRegisters[] | undefined;
  readonly expectedArchitecture?: string | undefined;
}

const MOST_CLUSTERS = 256;

/** One question, answered as text. */
export interface Ask {
  (packet: string): Promise<string>;
  /** Timeout for one answer. */
  readonly timeoutMs: number;
}

/** A way to ask single questions over a link. */
export function askOver(link: Link): Ask {
  const ask = async (packet: string): Promise<string> => {
    const request = new TextRequest(packet);
    await sendAll(link, [request]);
    return request.value;
  };
  return Object.assign(ask, { timeoutMs: link.timeoutMs });
}

function sendAll(link: Link, requests: readonly Request<unknown>[]): Promise<void> {
  return new Promise((resolve, reject) => {
    link.send(requests, (error) => (error === undefined ? resolve() : reject(error)));
  });
}

/** What the stub says before the target is asked about. */
async function greet(link: Link, ask: Ask) {
  // If the first question must be asked twice, an answer without a PacketSize is not its second answer.
  link.probes = [{ packet: packets.mustReplyEmpty, isAnswer: (text) => !text.includes('PacketSize=') }];
  const supported = parseSupported(await ask(packets.supported));
  const bySize: Probe = { packet: packets.supported, isAnswer: (text) => text.includes('PacketSize=') };
  const probes = supported.has('PacketSize') ? [bySize] : [];
  link.probes = probes;
  const noAck = (await ask(packets.startNoAckMode)) === 'OK';
  if (noAck) link.stopAcks();
  return {
    ...{ supported, probes, noAck },
    vPackets: (await ask(packets.mustReplyEmpty)) === '',
    stop: whyStopped(await ask(packets.whyStopped)),
    packetSize: packetSizeOf(supported),
    transfer: transferObjects(supported),
    multiprocess: supported.get('multiprocess') === '+',
  };
}

/**
 * Does the handshake with a stub. The order works with every stub: `?` before any qXfer (gdbserver 13 aborts
 * otherwise), the description before single registers (QEMU 7.2 knows none before), `vCont?` last.
 */
export async function shakeHands(
  link: Link,
  logger: Logger,
  { architectures = [], expectedArchitecture }: RegisterOptions,
): Promise<Greeting> {
  const ask = askOver(link);
  const { probes, stop, ...said } = await greet(link, ask);
  const { supported, noAck, vPackets, packetSize, transfer, multiprocess } = said;
  const readDescription = async () =>
    transfer.has('features')
      ? await readTargetXml((annex) => readObject(ask, 'features', annex, packetSize))
      : undefined;
  const described = await readDescription();
  const readHarts = async () => [...(await readThreads(ask, transfer.has('threads'), packetSize)).keys()];
  const first = await readHarts();
  const vCont = vPackets ? parseActions(await ask(packets.actions)) : new Set<string>();
  if (vCont.size > 0) {
    link.probes = [...probes, { packet: packets.actions, isAnswer: (text) => text.startsWith('vCont;') }];
  }
  const pid = multiprocess ? pidAt(stop, first) : undefined;
  const attached = { '1': true, '0': false }[await ask(packets.attached(pid))];

  const known = knownRegisters(architectures, described?.architecture, expectedArchitecture);
  const target = await describe(ask, described, known, logger);
  const singleRegister = await readsSingly(ask, target.description, known);
  const stepBits = await ask(packets.qemuStepBits);
  const qemuStepBits = stepBits.startsWith('ENABLE=') ? stepBits : undefined;
  const isProcess = transfer.has('auxv');
  // lldb-server has the system's numbers already; a machine has no signals.
  const signals = new SignalNumbers(known?.signals, isProcess && !supported.has('native-signals'));
  const isUserMode = qemuStepBits !== undefined && isProcess;
  const others = qemuStepBits !== undefined && !isProcess && multiprocess ? await attachClusters(ask) : [];
  const clusters = await describeAll(ask, [first[0] ?? '', ...others], async () => {
    return (await describe(ask, await readDescription(), known, logger)).description;
  });
  return {
    features: {
      ...{ ...said, vCont, singleRegister, qemuStepBits, signals, pointerBits: known?.pointerBits },
      swbreak: supported.get('swbreak') === '+',
      registerBlock: target.blockLength > 0,
      // Not vgdb, which alone has no-ack mode without vCont.
      batches: !isUserMode && !(noAck && vCont.size === 0),
      isClustered: others.length > 0,
    },
    target: richest([target.description, ...clusters.values()]),
    clusters,
    stop: signals.inSystem(stop),
    harts: others.length > 0 ? await readHarts() : first,
    attached,
  };
}

/**
 * QEMU has a process for each cluster of a machine's processors, numbered from 1, and lets a client see the first
 * alone. Attaches to the others.
 * @returns a hart of each
 */
async function attachClusters(ask: Ask): Promise<string[]> {
  const harts: string[] = [];
  for (let pid = 2; pid < MOST_CLUSTERS; pid++) {
    const stop = parseStopReply(await ask(packets.attachProcess(pid)));
    if (stop?.kind !== 'signal' || stop.hart === undefined) break;
    harts.push(stop.hart);
  }
  return harts;
}

/** The descriptions of the processes of these harts, if there are several. The first hart is selected afterwards. */
async function describeAll(
  ask: Ask,
  harts: readonly string[],
  describeOne: () => Promise<TargetDescription>,
): Promise<ReadonlyMap<string, TargetDescription>> {
  const all = new Map<string, TargetDescription>();
  if (harts.length < 2) return all;
  // The first comes last.
  for (const hart of harts.toReversed()) {
    await ask(packets.selectHart(hart));
    all.set(pidOf(hart) ?? '', await describeOne());
  }
  return all;
}

/** The description with the most registers. */
function richest(all: readonly [TargetDescription, ...TargetDescription[]]): TargetDescription {
  return all.reduce((a, b) => (b.registers.size > a.registers.size ? b : a));
}

/** Whether the stub answers `p`, tried with the program counter. */
async function readsSingly(ask: Ask, target: TargetDescription, known: KnownRegisters | undefined): Promise<boolean> {
  const pc = programCounter(target, known);
  return pc !== undefined && isRegister(await ask(packets.readRegister(pc.number)));
}

function pidAt(stop: StopReply, harts: readonly string[]): string | undefined {
  return pidOf(stop.kind === 'signal' ? stop.hart : undefined) ?? pidOf(harts[0]);
}

function whyStopped(text: string): StopReply {
  const stop = parseStopReply(text);
  if (stop === undefined) throw protocolError(`it answers "${text.slice(0, 60)}" to "?"`);
  if (stop.kind !== 'signal') {
    throw new RsptraceError('RSP_NO_PROGRAM', 'The stub has no program to trace: it has ended, or was not started');
  }
  return stop;
}

async function describe(
  ask: Ask,
  described: Awaited<ReturnType<typeof readTargetXml>>,
  known: KnownRegisters | undefined,
  logger: Logger,
): Promise<{ readonly description: TargetDescription; readonly blockLength: number }> {
  const block = await ask(packets.readRegisters);
  const blockLength = isRegister(block) ? block.length >> 1 : 0;
  if (described !== undefined && described.registers.length > 0) {
    const { architecture, registers } = described;
    const description = new TargetDescription(architecture, registers, blockLength, 'target.xml', known?.aliases);
    return { description, blockLength };
  }
  const architecture = described?.architecture;
  logger.debug({ architecture, assumed: known?.name }, 'the stub does not describe its registers');
  const specs = known && defaultRegisters(known);
  const source = specs ? 'built-in' : 'none';
  const description = new TargetDescription(architecture, specs ?? [], blockLength, source, known?.aliases);
  return { description, blockLength };
}

/** For an unknown architecture, by the names that stubs usually have for the pc. */
function programCounter(
  { registers }: TargetDescription,
  known: KnownRegisters | undefined,
): RegisterDescription | undefined {
  const names = known ? [known.pc] : ['pc', 'rip'];
  return [...registers.values()].find(({ name }) => names.includes(name));
}

/** True for an answer of `g` or `p` that holds registers. */
function isRegister(text: string): boolean {
  return text.length >= 2 && text.length % 2 === 0 && /^(?:[0-9a-fA-F]{2}|xx)+$/.test(text);
}
