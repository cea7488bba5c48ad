// What makes two runs of a QEMU alike (`-icount`, `-rtc`, `-seed` of qemu-options.hx), and what nothing does.
import { RsptraceError } from '../base/errors.js';
import { keyValues, qemuOptions } from '../target/index.js';

/** A command line whose guest does the same in every run, as far as that can be had. */
export interface DeterministicCommand {
  readonly command: readonly string[];
  /** What was added to it. */
  readonly added: readonly string[];
  /** What may still differ from run to run, a sentence each. */
  readonly notes: readonly string[];
}

/**
 * Guest time between two ticks of a timer that does nothing, in microseconds.
 *
 * With `sleep=off` QEMU lets guest time jump to the next timer whenever no hart runs. A breakpoint looks so, too, for a
 * moment. Without any other timer that jump leads to the end of time (OpenSBI sets its timer to "never"). This timer
 * comes first, so a stop costs at most so much guest time. It is one of `filter-buffer` on a network that has no card.
 */
const PULSE_US = 10;

const pulse = [
  // Two hubs that lead to each other: QEMU warns of one that leads nowhere.
  ...['-netdev', 'hubport,id=rsptrace,hubid=7777', '-netdev', 'hubport,id=rsptrace-peer,hubid=7778,netdev=rsptrace'],
  ...['-object', `filter-buffer,id=rsptrace-pulse,netdev=rsptrace,interval=${PULSE_US}`],
];

/** Adds what makes runs alike. Throws `RUN_NOT_DETERMINISTIC`. */
export function deterministicCommand(command: readonly string[]): DeterministicCommand {
  const [program = '', ...args] = command;
  const options = qemuOptions(args);
  const values = (name: string): string[] => options.filter((each) => each.name === name).map(({ value }) => value);
  refuseHardware(
    options.map(({ name }) => name),
    [...values('accel'), ...values('machine'), ...values('M')],
  );
  const [added, notes]: [string[], string[]] = [[], []];
  const icount = values('icount').at(-1);
  if (icount === undefined) added.push('-icount', 'shift=0,sleep=off');
  else notes.push(...icountNotes(icount));
  const harts = values('smp').map((value) => keyValues(value, 'cpus').get('cpus') ?? value);
  added.push('-smp', '1');
  if (harts.some((count) => count !== '1')) notes.push(`the guest has one hart, not ${harts.at(-1)}`);
  const rtc = values('rtc').at(-1);
  if (rtc === undefined) added.push('-rtc', 'base=2024-01-01T00:00:00,clock=vm');
  else if (!/clock=vm/.test(rtc) || !/base=\d/.test(rtc)) {
    notes.push(`its -rtc ${rtc} stays: the guest reads the host's date unless that has base=DATE,clock=vm`);
  }
  if (values('seed').length === 0) added.push('-seed', '1');
  added.push(...pulse);
  // QEMU would join what it is given of harts: sockets and cores that do not make one.
  const kept = args.filter((_, i) => !args.slice(Math.max(0, i - 1), i + 1).some((word) => /^--?smp$/.test(word)));
  return { command: [program, ...kept, ...added], added, notes: [...notes, ...hostNotes(options, values)] };
}

function icountNotes(icount: string): string[] {
  const given = keyValues(icount, 'shift');
  const found: string[] = [];
  if (!/^\d+$/.test(given.get('shift') ?? ''))
    found.push(`its -icount ${icount} stays: without a fixed shift times are the host's`);
  if (given.get('sleep') !== 'off') {
    found.push(`its -icount ${icount} stays: without sleep=off the guest waits for its timers in the host's time`);
  }
  return found;
}

/** Instructions of a processor are not counted. */
function refuseHardware(names: readonly string[], values: readonly string[]): void {
  const uses = names.includes('enable-kvm') || values.some((value) => /\b(kvm|hvf|xen|whpx|nvmm)\b/.test(value));
  if (!uses) return;
  throw new RsptraceError(
    'RUN_NOT_DETERMINISTIC',
    "QEMU is told to use the host's processor (KVM), which counts no instructions",
    {
      hint: 'leave -enable-kvm and -accel kvm out, or leave --deterministic out',
    },
  );
}

/** What comes from the host while the guest runs. */
function hostNotes(
  options: readonly { readonly name: string; readonly value: string }[],
  values: (name: string) => string[],
): string[] {
  const notes: string[] = [];
  const network = [...values('netdev'), ...values('nic'), ...values('net')].filter((value) => !/^none\b/.test(value));
  if (network.length > 0) notes.push(`packets come when the host sends them (${network[0]})`);
  const disks = options.filter(
    ({ name, value }) => /^(drive|hd[abcd]|blockdev|sd|mtdblock|pflash)$/.test(name) && !/readonly=on/.test(value),
  );
  if (disks.length > 0 && !options.some(({ name }) => name === 'snapshot')) {
    notes.push('what the guest writes to its disk is there in the next run: -snapshot keeps the disk as it is');
  }
  if (disks.length > 0) notes.push('a disk answers when the host has read, not at a fixed guest time');
  const shared = [...values('fsdev'), ...values('virtfs')];
  if (shared.length > 0) notes.push("a folder of the host's is shared, and answers when the host does");
  if (values('object').some((value) => /^rng-(random|egd)/.test(value)))
    notes.push("the guest is given the host's random numbers");
  return notes;
}
