import { Buffer } from 'node:buffer';
import { statSync, writeSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Refusal } from '../../base/errors.js';
import { messageOf, RsptraceError } from '../../base/errors.js';
import { formatRemote, type RemoteAddress } from './address.js';
import { peerProcess } from './peer-process.js';

/** An address that a socket can be opened to. */
export type SocketAddress = Exclude<RemoteAddress, { readonly kind: 'replay' }>;

/** A two-way stream of bytes to a stub. */
export interface Transport {
  /** The address, for messages. */
  readonly name: string;
  /** The process of this machine at the other end, or why it is not known; undefined for what is no socket. */
  readonly peer?: (name: string) => number | Refusal;
  /** Sends bytes; true when the buffer may be reused at once. */
  write(bytes: Uint8Array): boolean;
  /** Ends it; nothing is reported any more. */
  close(): void;
}

/** What a transport reports. */
export interface TransportEvents {
  /** The first `length` bytes of `chunk`, which is reused after the call. */
  data(chunk: Uint8Array, length: number): void;
  /** The other side has closed, or the connection broke. */
  closed(error: Error | undefined): void;
}

/** Timeout for one attempt to connect, in ms. */
const CONNECT_MS = 5000;

interface OpenOptions {
  /** How long to retry while nothing listens, in ms: a server that was just started needs a moment. */
  readonly waitMs: number;
  /** Ends the retries. */
  readonly signal?: AbortSignal | undefined;
}

/** Opens a TCP or unix socket. Throws `RSP_CONNECT`. */
export async function openTransport(
  address: SocketAddress,
  events: TransportEvents,
  options: OpenOptions,
): Promise<Transport> {
  const deadline = performance.now() + options.waitMs;
  for (let pause = 10; ; pause = Math.min(pause * 2, 100)) {
    try {
      return await openOnce(address, events);
    } catch (error) {
      const again =
        ['ECONNREFUSED', 'ENOENT'].includes(codeOf(error)) &&
        performance.now() + pause < deadline &&
        !options.signal?.aborted;
      if (!again) throw connectError(address, error);
    }
    await delay(pause);
  }
}

function openOnce(address: SocketAddress, events: TransportEvents): Promise<Transport> {
  return new Promise((resolve, reject) => {
    let state: 'connecting' | 'open' | 'closed' = 'connecting';
    let failure: Error | undefined;
    const finish = (error: Error | undefined): void => {
      clearTimeout(timer);
      const before = state;
      state = 'closed';
      socket.destroy();
      if (before === 'connecting') reject(error ?? new Error('the connection was closed'));
      else if (before === 'open') events.closed(error);
    };
    const socket = net.connect({
      ...(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port, noDelay: true }),
      // Reads go into one buffer and past the stream's own queue.
      onread: {
        buffer: Buffer.allocUnsafeSlow(64 * 1024),
        callback: (length, chunk) => {
          if (state === 'open') events.data(chunk, length);
          return true;
        },
      },
    });
    const timer = setTimeout(() => finish(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })), CONNECT_MS);
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('end', () => finish(failure));
    socket.on('close', () => finish(failure));
    socket.on('connect', () => {
      clearTimeout(timer);
      state = 'open';
      const { localPort } = socket;
      resolve({
        name: formatRemote(address),
        peer: (name) => peerProcess(address, localPort, name),
        write: (bytes) => {
          if (state !== 'open') return true;
          const sent = writeNow(socket, bytes);
          if (sent === bytes.length) return true;
          socket.write(bytes.subarray(sent));
          return socket.writableLength === 0;
        },
        close: () => {
          state = 'closed';
          socket.destroy();
        },
      });
    });
  });
}

/**
 * Writes past the stream, because the stream costs more than the write itself. Returns how many bytes the kernel
 * took. The rest, and any error, is left to the stream, as is everything if this Node does not give the socket's
 * descriptor.
 */
function writeNow(socket: net.Socket, bytes: Uint8Array): number {
  if (socket.writableLength > 0) return 0;
  const handle: unknown = Reflect.get(socket, '_handle');
  const descriptor: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined;
  if (typeof descriptor !== 'number' || descriptor < 0) return 0;
  try {
    return writeSync(descriptor, bytes);
  } catch {
    return 0;
  }
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Why a path takes no connection, and what to do. */
function unixRefused(name: string, path: string): [message: string, hint: string] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return [`${name} is a directory, not a socket`, 'Give the path of the socket in it'];
  if (stats?.isCharacterDevice()) {
    return [
      `${name} is a device, not a socket`,
      `For a serial line: socat TCP-LISTEN:1234 ${path},raw,echo=0,b115200, then --remote :1234`,
    ];
  }
  if (stats?.isFile()) return [`${name} is a file, not a socket`, 'To play a recording of the wire back: replay:FILE'];
  return [`Nothing listens at ${name}`, 'The socket is left over from a stub that has ended: start the stub again'];
}

function connectError(address: SocketAddress, error: unknown): RsptraceError {
  const name = formatRemote(address);
  const fail = (message: string, hint: string): RsptraceError =>
    new RsptraceError('RSP_CONNECT', message, { hint, cause: error });
  switch (codeOf(error)) {
    case 'ECONNREFUSED':
      return address.kind === 'unix'
        ? fail(...unixRefused(name, address.path))
        : fail(
            `Nothing listens at ${name}`,
            `Start the stub first, for example: qemu-system-riscv64 -gdb tcp::${address.port} -S ...`,
          );
    case 'ENOENT':
      return fail(
        `There is no socket ${name}`,
        `Start the stub first, for example: qemu-system-riscv64 -gdb unix:${address.kind === 'unix' ? address.path : name},server=on,wait=off -S ...`,
      );
    case 'ENOTDIR':
      return fail(`There is no socket ${name}`, 'Part of the path is a file, not a directory');
    case 'ENETUNREACH':
    case 'EHOSTUNREACH':
      return fail(`The host of ${name} cannot be reached`, 'Check the address and the network between');
    case 'EACCES':
    case 'EPERM':
      return fail(
        `No permission to connect to ${name}`,
        'Run as the user who started the stub, or make the socket writable',
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return fail(`The host of ${name} is not known`, 'Check the spelling; a port on this machine is written :1234');
    case 'ETIMEDOUT':
      return fail(`${name} does not accept the connection in time`, 'Check the host, the port and firewalls between');
    default:
      return fail(`Cannot connect to ${name}: ${messageOf(error)}`, 'Check that a stub listens there');
  }
}
