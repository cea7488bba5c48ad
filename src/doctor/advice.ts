import { adviceOnStops, adviceText, engineSentence, summarizeEngines } from '../engines/index.js';
import { isProcess } from '../rsp/index.js';
import { unseenText } from '../target/index.js';
import type { Diagnosis } from './examine.js';

/** What to change for better results. */
export interface Advice {
  /** Stable, for programs. */
  readonly code: string;
  readonly text: string;
}

type Findings = Omit<Diagnosis, 'advice'>;

/** PacketSize, in bytes, below which reads come in many pieces. */
const smallPackets = 1024;
/** A round trip, in microseconds, from which on the wire is the main cost. */
const slowWireUs = 1000;
/** Fewer hits per second are slow: OpenOCD's own poll allows about ten. */
const slowHits = 30;

/** Everything that could be better, the most important first. */
export function adviceFor(found: Findings): Advice[] {
  return [...programAdvice(found), ...stubAdvice(found), ...guestAdvice(found)];
}

function programAdvice({ program, server, session }: Findings): Advice[] {
  if (program === undefined)
    return [
      { code: 'no-elf', text: 'give the ELF too: then it is compared with the target, and its probes are looked at' },
    ];
  const advice: Advice[] = [];
  if (program.problem) {
    const { message, hint } = program.problem;
    advice.push({ code: 'problem', text: `${message}${hint === undefined ? '' : `: ${hint}`}` });
  }
  if (!program.debugInfo) {
    advice.push({
      code: 'no-debug-info',
      text: 'no debug info: polls, states and arguments need it (debug = 2, strip = "none" in Cargo.toml)',
    });
  }
  if (!program.frameInfo) {
    advice.push({
      code: 'no-frame-info',
      text: 'no call frame information: bt and --bt follow the code instead, or frame pointers where there are any (-C force-unwind-tables=yes, -C force-frame-pointers=yes)',
    });
  }
  const summary = summarizeEngines(program.probes);
  if (summary.stopping + summary.crowded > 0) {
    const { scratch } = program;
    const refusal = scratch !== undefined && 'refused' in scratch && !scratch.later ? scratch.refused : undefined;
    const isMachineOfQemu = server.name === 'qemu-system';
    const situation = { isMachineOfQemu, isLaunched: false, isProcess: isProcess(session.features) };
    const way = adviceOnStops(summary, refusal, situation);
    advice.push({
      code: refusal === undefined ? 'some-stop' : 'no-scratch',
      text: `${engineSentence(summary)}${way ? `; ${adviceText(way)}` : ''}`,
    });
  }
  if (program.absent > 0) {
    advice.push({
      code: 'not-loaded',
      text: `the code of ${program.absent} of ${program.compared} places is not loaded yet: let the guest boot first to have it compared`,
    });
  }
  if (program.elsewhere > 0) {
    advice.push({
      code: 'runs-elsewhere',
      text: `other code is at ${program.elsewhere} of ${program.compared} places now: hits count in the address spaces where the program runs, with a stop at each`,
    });
  }
  return advice;
}

function stubAdvice({ server, session, abilities, hardware, times, hits, hartCount, hartsUnseen }: Findings): Advice[] {
  const advice: Advice[] = [];
  const { features } = session;
  if (features.packetSize < smallPackets) {
    advice.push({
      code: 'small-packets',
      text: `packets of ${features.packetSize} bytes: memory is read in many pieces`,
    });
  }
  if (!features.batches) {
    advice.push({ code: 'one-by-one', text: 'this stub takes one packet at a time: every read costs a round trip' });
  }
  if (times.smallest.medianUs > slowWireUs) {
    advice.push({
      code: 'slow-wire',
      text: `a round trip takes ${(times.smallest.medianUs / 1000).toFixed(1)} ms: run rsptrace nearer to the stub, over a unix socket where it can`,
    });
  }
  if (server.name === 'openocd' && (hits.rate?.perSecond ?? slowHits) < slowHits) {
    advice.push({
      code: 'slow-poll',
      text: 'OpenOCD looks for halted harts every 100 ms: have it look more often (proc look_often {} { poll; after 1 look_often }; look_often)',
    });
  }
  const few = abilities.memoryMap?.some(({ type }) => type !== 'ram') || !abilities.breakpoints.includes(0);
  if (hardware !== undefined && few) {
    advice.push({
      code: 'few-hardware-breakpoints',
      text: `code that is not in RAM needs hardware breakpoints, and there are ${hardware}: one for each probed function and for each return that is awaited`,
    });
  }
  if (hartsUnseen > 0) advice.push({ code: 'unseen-harts', text: unseenText(hartsUnseen, hartCount) });
  if (server.name === 'qemu-system' && hartCount > 1) {
    advice.push({ code: 'smp', text: `a stop stops all ${hartCount} harts: -smp 1 disturbs less, where one will do` });
  }
  return advice;
}

function guestAdvice({ clocks, hits, fresh, server }: Findings): Advice[] {
  const advice: Advice[] = [];
  const chosen = clocks.find(({ chosen }) => chosen);
  if (chosen !== undefined && !chosen.guest) {
    const later = server.name === 'qemu-system' ? ' (firmware or kernel may not have set one up yet)' : '';
    advice.push({
      code: 'host-clock',
      text: `no clock of the guest can be read here${later}: times will be the host's, while the guest ran`,
    });
  }
  if (fresh && hits.ranMs > 0) {
    const now = hits.stands
      ? `it has run for ${hits.ranMs.toFixed(0)} ms now, and stands again`
      : 'it has run to its end now';
    advice.push({
      code: 'was-started',
      text: `the guest had not been started: ${now}. Start it anew to trace its boot; --no-run leaves it alone`,
    });
  }
  return advice;
}
