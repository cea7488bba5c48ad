import { setTimeout as delay } from 'node:timers/promises';
import { clockOf } from '../api/index.js';
import { isRefusal, RsptraceError } from '../base/errors.js';
import { samplesOf, trampolineRoom, verifyProgram } from '../record/index.js';
import { parseRemote, type Session, wasLaunched } from '../rsp/index.js';
import { firmwareMs, hideAtReset } from '../scratch/index.js';
import { isMovedAtBoot, ResetVector } from '../target/index.js';
import { atStub } from './at-target.js';
import { note } from './failure.js';
import type { RecordArguments } from './options/recording.js';
import { ReadingLine } from './reading-line.js';
import { hidesRam, planWishes } from './recording/asked.js';
import { report } from './recording/outcome.js';
import { type Prepared, withRecording } from './recording/prepare.js';
import { type Recorded, recordSession, type SessionOptions } from './recording/session.js';

/** How long `--reconnect` tries, in milliseconds, and how long it waits between. */
const reconnectMs = 10_000;
const pauseMs = 200;
/** After so long it is said that a machine's firmware is waited for, in milliseconds. */
const lateMs = 3000;

/** `rsptrace --remote ADDR kernel.elf`: records at a stub that was started elsewhere. Gives the exit status. */
export async function recordRemote(args: RecordArguments): Promise<number> {
  // Before the program is read, because that takes time.
  parseRemote(args.remote);
  return withRecording(args, async (prepared) => {
    const recording = await recordAt(args, prepared);
    if (recording.end === 'guest-ended' && recording.stop?.kind === 'gone') {
      note(
        'the stub closed the connection while the guest ran: the guest ended, or its server was ended (this stub does not say which)',
      );
    }
    return report(prepared, recording);
  });
}

/** Connects, records what is prepared, and leaves the target. */
export async function recordAt(
  args: RecordArguments,
  prepared: Prepared,
  watched: Pick<SessionOptions, 'ending' | 'watcher'> = {},
): Promise<Recorded> {
  const remote = parseRemote(args.remote);
  if (remote.kind === 'replay' && samplesOf(prepared.program)) throw replayed();
  const isReplayed = remote.kind === 'replay';
  const before = { args, logger: prepared.logger, path: args.elf };
  return await atStub(args.remote, before, async ({ session, recordingBegins, reopen, console }) => {
    // A recording of the wire has no target that could still be there.
    const reconnect = args.reconnect && !isReplayed ? () => openAgain(reopen) : undefined;
    // A recording of `rsptrace run` is played back to the requests of that command.
    const { arch } = prepared.program;
    const resetVector = wasLaunched(remote) ? await ResetVector.find(session, arch, prepared.logger) : undefined;
    const begun = resetVector || reconnect || isReplayed ? undefined : await fromReset(prepared, session);
    recordingBegins();
    return await recordSession(prepared, session, {
      reconnect,
      resetVector,
      isReplayed,
      console,
      ...begun,
      ...watched,
    });
  });
}

function replayed(): RsptraceError {
  return new RsptraceError(
    'SAMPLES_UNAVAILABLE',
    'a recording of the wire is played back: nothing can be interrupted',
    {
      hint: "leave the probe 'sample:' out",
    },
  );
}

/** For a QEMU that stands at its reset: keeps memory for trampolines from the guest, as `rsptrace run` does. */
async function fromReset(
  { args, program, logger }: Prepared,
  session: Session,
): Promise<Pick<SessionOptions, 'hidden' | 'resetVector' | 'nanosPerInstruction' | 'clockSleeps'> | undefined> {
  const hides = hidesRam(args, program.elf);
  if (hides === undefined || args.engine === 'stop') return undefined;
  await verifyProgram(session, program);
  const codeSize = trampolineRoom(program, planWishes(args, program));
  using line = new ReadingLine(args.elf, args.progress, 'waits for the firmware that starts');
  const late = line.isShown ? undefined : setTimeout(sayThatItWaits, lateMs);
  const found = await hideAtReset({ session, arch: program.arch, elf: program.elf, codeSize, logger });
  line[Symbol.dispose]();
  clearTimeout(late);
  if (found === undefined) {
    if (hides === 'asked') note('--scratch hidden needs a QEMU that stands at its reset (-S)');
    return undefined;
  }
  if (isRefusal(found)) {
    const refused = `no RAM can be kept from the guest for trampolines: ${found.refused}`;
    // Else it is said with what else is in the way, unless the kernel must be found first.
    const { wayOut } = found;
    const isSaid = hides === 'asked' || (wayOut !== undefined && isMovedAtBoot(program.elf));
    if (isSaid) note(`${refused}${wayOut ? `; ${wayOut}` : ''}`);
    return { hidden: { ...found, refused } };
  }
  const { hidden, resetVector, command, taken } = found;
  const kept = `${taken / 2 ** 20} MiB of the guest's RAM are kept from it, for trampolines and records`;
  const wayOut = hides === 'asked' ? '' : '; --scratch none leaves it all, and each event stops the guest then';
  note(`${kept}${wayOut}`);
  return { hidden, resetVector, ...clockOf(command.slice(1)) };
}

function sayThatItWaits(): void {
  const what = "waits for the machine's firmware to start a kernel";
  note(`${what}, for at most ${firmwareMs / 1000} s`);
}

/** Tries until the stub answers, because it may not have noticed yet that the link is broken. */
async function openAgain(open: () => Promise<Session>): Promise<Session> {
  const deadline = performance.now() + reconnectMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const mayCome = error instanceof RsptraceError && /^RSP_(?:CONNECT|CLOSED|TIMEOUT)$/.test(error.code);
      if (!mayCome || performance.now() + pauseMs > deadline) throw error;
    }
    await delay(pauseMs);
  }
}
