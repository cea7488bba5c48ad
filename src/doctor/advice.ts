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
  const all = [...programAdvice(found), ...stubAdvice(found), ...guestAdvice(found)];
  return all.flatMap(([code, text]) => (typeof text === 'string' ? { code, text } : []));
}

/** A code and its sentence; where it does not apply, the condition in place of that. */
type MayAdvise = readonly [code: string, text: string | false | undefined];

function programAdvice({ program, server, session }: Findings): MayAdvise[] {
  if (program === undefined)
    return [['no-elf', 'give the ELF too: then it is compared with the target, and its probes are looked at']];
  const { problem, absent, elsewhere, compared, scratch } = program;
  const summary = summarizeEngines(program.probes);
  const refusal = scratch !== undefined && 'refused' in scratch && !scratch.later ? scratch.refused : undefined;
  const isMachineOfQemu = server.name === 'qemu-system';
  const situation = { isMachineOfQemu, isLaunched: false, isProcess: isProcess(session.features) };
  const stops = summary.stopping + summary.crowded > 0;
  const way = stops ? adviceOnStops(summary, refusal, situation) : undefined;
  return [
    ['problem', problem && `${problem.message}${problem.hint === undefined ? '' : `: ${problem.hint}`}`],
    [
      'no-debug-info',
      !program.debugInfo &&
        'no debug info: polls, states and arguments need it (debug = 2, strip = false in Cargo.toml)',
    ],
    [
      'no-frame-info',
      !program.frameInfo &&
        'no call frame information: bt and --bt follow the code instead, or frame pointers where there are any (-C force-unwind-tables=yes, -C force-frame-pointers=yes)',
    ],
    [
      refusal === undefined ? 'some-stop' : 'no-scratch',
      stops && `${engineSentence(summary)}${way ? `; ${adviceText(way)}` : ''}`,
    ],
    [
      'not-loaded',
      absent > 0 &&
        `the code of ${absent} of ${compared} places is not loaded yet: let the guest boot first to have it compared`,
    ],
    [
      'runs-elsewhere',
      elsewhere > 0 &&
        `other code is at ${elsewhere} of ${compared} places now: hits count in the address spaces where the program runs, with a stop at each`,
    ],
  ];
}

function stubAdvice(found: Findings): MayAdvise[] {
  const { server, abilities, hardware, times, hits, hartCount, hartsUnseen } = found;
  const { packetSize, batches } = found.session.features;
  const tripUs = times.smallest.medianUs;
  const few = abilities.memoryMap?.some(({ type }) => type !== 'ram') || !abilities.breakpoints.includes(0);
  return [
    ['small-packets', packetSize < smallPackets && `packets of ${packetSize} bytes: memory is read in many pieces`],
    ['one-by-one', !batches && 'this stub takes one packet at a time: every read costs a round trip'],
    [
      'slow-wire',
      tripUs > slowWireUs &&
        `a round trip takes ${(tripUs / 1000).toFixed(1)} ms: run rsptrace nearer to the stub, over a unix socket where it can`,
    ],
    [
      'slow-poll',
      server.name === 'openocd' &&
        (hits.rate?.perSecond ?? slowHits) < slowHits &&
        'OpenOCD looks for halted harts every 100 ms: have it look more often (proc look_often {} { poll; after 1 look_often }; look_often)',
    ],
    [
      'few-hardware-breakpoints',
      hardware !== undefined &&
        few &&
        `code that is not in RAM needs hardware breakpoints, and there are ${hardware}: one for each probed function and for each return that is awaited`,
    ],
    ['unseen-harts', hartsUnseen > 0 && unseenText(hartsUnseen, hartCount)],
    [
      'smp',
      server.name === 'qemu-system' &&
        hartCount > 1 &&
        `a stop stops all ${hartCount} harts: -smp 1 disturbs less, where one will do`,
    ],
  ];
}

function guestAdvice({ clocks, hits, fresh, server }: Findings): MayAdvise[] {
  const later = server.name === 'qemu-system' ? ' (firmware or kernel may not have set one up yet)' : '';
  const now = hits.stands
    ? `it has run for ${hits.ranMs.toFixed(0)} ms now, and stands again`
    : 'it has run to its end now';
  return [
    [
      'host-clock',
      clocks.find(({ chosen }) => chosen)?.guest === false &&
        `no clock of the guest can be read here${later}: times will be the host's, while the guest ran`,
    ],
    [
      'was-started',
      fresh &&
        hits.ranMs > 0 &&
        `the guest had not been started: ${now}. Start it anew to trace its boot; --no-run leaves it alone`,
    ],
  ];
}
