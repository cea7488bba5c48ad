// A gdbserver of this machine whose client is gone: takes out what that client had put into the process, and ends it.
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { architectureNamed } from '../arch/index.js';
import { entriesOf, linkOf, sendSignal, statOf, textOf, tracerIn } from '../base/proc.js';
import { type TakenOut, takeOutOwnCode } from '../inject/index.js';
import { connect } from '../target/index.js';
import { plural } from '../text/index.js';

/** How long it may take until it listens, and until it answers, in milliseconds. */
const answerMs = 10_000;
const lookMs = 5;
/** How long a server may take to be started, and a client that was killed to be gone, in milliseconds. */
const startMs = 300;
/** How long a supervisor has to begin, in milliseconds. */
const supervisorMs = 1500;
/** How long it may take to end when it has left the process, in milliseconds. */
const endMs = 300;

/** In the environment of a gdbserver that rsptrace has attached to a process: a word by which that is found. */
export const markOfOurs = 'RSPTRACE_SERVER';

/** States of a listening socket, and of one with a client: /proc/net/tcp, include/net/tcp_states.h. */
const [established, listening] = ['01', '0A'];

/**
 * The gdbserver that traces a process, if an rsptrace has started it that is gone. It stays without a client for the
 * time that a supervisor has to act.
 */
export async function abandonedServer(pid: number): Promise<number | undefined> {
  const begun = performance.now();
  for (;;) {
    const tracer = tracerOf(pid);
    if (tracer === undefined || !isOurs(tracer)) return undefined;
    const waited = performance.now() - begun;
    // A client that was killed is there until the system has taken it down.
    const hasClient = socketsOf(tracer).some(({ state }) => state === established);
    if (hasClient && waited > startMs) return undefined;
    if (!hasClient && waited > supervisorMs) return tracer;
    await delay(lookMs);
  }
}

/** The gdbserver of an rsptrace that is gone, by its word: see `Supervisor`. Undefined if it has another client. */
export async function serverOf(word: string): Promise<number | undefined> {
  for (const deadline = performance.now() + startMs; performance.now() < deadline; await delay(lookMs)) {
    const found = readdirSync('/proc')
      .map(Number)
      .find((pid) => pid !== process.pid && isServerOf(pid, word));
    // The connection of the one that was killed may be closed a moment after the pipe to its supervisor.
    if (found !== undefined && !socketsOf(found).some(({ state }) => state === established)) return found;
  }
  return undefined;
}

/** Also while it is a shell that is about to become one. */
function isServerOf(pid: number, word: string): boolean {
  const words = wordsOf(pid);
  return (words.includes('--attach') && markOf(pid) === word) || (words.includes('--wrapper') && words.includes(word));
}

/** Undefined for a server that somebody else has started. */
function markOf(pid: number): string | undefined {
  const variables = textOf(`/proc/${pid}/environ`).split('\0');
  return variables.find((variable) => variable.startsWith(`${markOfOurs}=`))?.slice(markOfOurs.length + 1);
}

/** Its command line. */
function wordsOf(pid: number): readonly string[] {
  return textOf(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

/** By what `Gdbserver.start` has given it. */
function isOurs(server: number): boolean {
  const [program, first] = wordsOf(server);
  return program === 'gdbserver' && (first === '--wrapper' || (first === '--attach' && markOf(server) !== undefined));
}

/**
 * Connects to a gdbserver and takes patches and breakpoints out of its process. That runs on, and the server is ended.
 * @returns undefined if the server, or its process, has ended by itself
 */
export async function takeOverServer(server: number): Promise<(TakenOut & { readonly pid: number }) | undefined> {
  const port = await untilFound(server, () => socketsOf(server).find(({ state }) => state === listening)?.port);
  const pid = port === undefined ? undefined : await untilFound(server, () => processOf(server));
  if (port === undefined || pid === undefined) return undefined;
  const answered = new AbortController();
  const standing = makeStand(pid, answered.signal);
  try {
    await using session = await connect(`127.0.0.1:${port}`, { timeoutMs: answerMs });
    answered.abort();
    await session.findLocalProcess();
    session.takeOver();
    const arch = architectureNamed(session.target.architecture ?? '');
    const taken = arch && (await takeOutOwnCode(session, arch, pid));
    await session.detach();
    return taken && { ...taken, pid };
  } finally {
    answered.abort();
    if (await standing) sendSignal(pid, 'SIGCONT');
    await endServer(server);
  }
}

/** A server waits for a process that runs, and listens again only when that stops. Returns whether it was stopped. */
async function makeStand(pid: number, signal: AbortSignal): Promise<boolean> {
  for (let runs = 0; !signal.aborted; await delay(lookMs)) {
    runs = stands(pid) ? 0 : runs + 1;
    if (runs < 2) continue;
    sendSignal(pid, 'SIGSTOP');
    return true;
  }
  return false;
}

/** All threads wait for their tracer. */
function stands(pid: number): boolean {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.every((thread) => /^[tZX]/.test(statOf(`${pid}/task/${thread}`)[0] ?? ''));
  } catch {
    return true;
  }
}

async function untilFound<T>(server: number, find: () => T | undefined): Promise<T | undefined> {
  for (const deadline = performance.now() + answerMs; performance.now() < deadline; await delay(lookMs)) {
    const found = find();
    if (found !== undefined) return found;
    if (!isThere(server)) return undefined;
  }
  return undefined;
}

async function endServer(server: number): Promise<void> {
  for (const deadline = performance.now() + endMs; performance.now() < deadline; await delay(lookMs))
    if (!isThere(server)) return;
  if (isGdbserver(server)) sendSignal(server, 'SIGKILL');
}

function isGdbserver(pid: number): boolean {
  return textOf(`/proc/${pid}/comm`).trim() === 'gdbserver';
}

function isThere(pid: number): boolean {
  return /^[^ZX]/.test(statOf(pid)[0] ?? '');
}

/** Who traces a process. */
export function tracerOf(pid: number): number | undefined {
  return tracerIn(textOf(`/proc/${pid}/status`));
}

/** The process that a server traces. */
function processOf(server: number): number | undefined {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.find((pid) => tracerOf(pid) === server);
}

interface TcpSocket {
  readonly state: string;
  readonly port: number;
}

function socketsOf(pid: number): readonly TcpSocket[] {
  const inodes = new Set(entriesOf(`/proc/${pid}/fd`).map((file) => linkOf(`/proc/${pid}/fd/${file}`)));
  // local address and port, remote ones, state, ..., inode: the tenth
  return textOf(`/proc/${pid}/net/tcp`)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , , , , , , , inode]) => inodes.has(`socket:[${inode}]`))
    .map(([, local = '', , state = '']) => ({ state, port: Number.parseInt(local.split(':')[1] ?? '', 16) }));
}

/** What became of a process whose rsptrace was killed: a sentence. */
export function takenOutText({ pid, patches, traps }: TakenOut & { readonly pid: number }): string {
  const what = [
    ...(patches.length > 0 ? [plural(patches.length, 'patch').replace('patchs', 'patches')] : []),
    ...(traps.length > 0 ? [plural(traps.length, 'breakpoint')] : []),
  ];
  return what.length === 0
    ? `Nothing of it was in the code of process ${pid}, which runs on`
    : `${what.join(' and ')} of it were taken out of process ${pid}, which runs on`;
}
