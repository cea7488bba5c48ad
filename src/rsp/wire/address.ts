import { Buffer } from 'node:buffer';
import { RsptraceError } from '../../base/errors.js';

/** Where a stub listens. */
export type RemoteAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  /** A wire recording that is played back. */
  | { readonly kind: 'replay'; readonly path: string };

const HOST_PORT = /^(?:tcp:)?(?:\[([0-9a-fA-F:.%\w]+)\]|([\w.-]*)):(\d{1,5})$/;
/** sun_path of sockaddr_un(7) holds 108 bytes with the terminating zero. */
const LONGEST_PATH = 107;

/**
 * Reads an address: `:1234`, `host:1234`, `[::1]:1234`, each also with `tcp:` before it, `unix:/path`, `/path`,
 * `./path`, `replay:FILE`. Throws `RSP_BAD_ADDRESS` for anything else.
 */
export function parseRemote(text: string): RemoteAddress {
  if (/^replay:./.test(text)) return { kind: 'replay', path: text.slice(7) };
  const path = text.startsWith('unix:') ? text.slice(5) : /^\.{0,2}\//.test(text) ? text : undefined;
  if (path !== undefined) {
    if (path.length === 0 || path.includes('\0')) throw badAddress(text);
    if (Buffer.byteLength(path) > LONGEST_PATH) {
      throw new RsptraceError(
        'RSP_BAD_ADDRESS',
        `The path of a unix socket has at most ${LONGEST_PATH} bytes: ${path}`,
        {
          hint: 'Put the socket into a directory with a shorter name, or give a relative path',
        },
      );
    }
    return { kind: 'unix', path };
  }
  // QEMU's spelling of a port is tcp::1234: with one colon less, tcp would be the host.
  const match = /^tcp:\d*$/.test(text) ? null : HOST_PORT.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65535) throw badAddress(text);
  return { kind: 'tcp', host: match[1] ?? (match[2] || 'localhost'), port };
}

function badAddress(text: string): RsptraceError {
  return new RsptraceError('RSP_BAD_ADDRESS', `"${text}" is not the address of a stub: ${whatIsWrong(text)}`, {
    hint: 'Give :PORT, HOST:PORT, [IPv6]:PORT, unix:PATH, /PATH, ./PATH or replay:FILE',
  });
}

function whatIsWrong(text: string): string {
  const tcp = text.replace(/^tcp:/, '');
  if (text === '') return 'it is empty';
  if (/^\w+:\/\//.test(text)) return 'it is a URL';
  if (/^\d+$/.test(tcp)) return `a port on this machine is written :${tcp}`;
  if (/^(?:unix|replay):$/.test(text)) return 'the path is missing';
  if (/:$/.test(tcp)) return 'the port is missing';
  if (/^[\w.-]*:\d+$/.test(tcp) || /^\[.*\]:\d+$/.test(tcp)) return 'ports are 1 to 65535';
  if (/^[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$/.test(tcp)) return 'an IPv6 address stands in brackets, [::1]:1234';
  if (/^[\w.-]+:/.test(tcp)) return 'what stands behind the colon is no port';
  if (/^[\w.-]+$/.test(tcp)) return 'it has no port, and a path has a slash, as in ./name';
  return 'it cannot be read';
}

/** An address as messages show it, and as {@link parseRemote} reads it. */
export function formatRemote(address: RemoteAddress): string {
  if (address.kind === 'replay') return `replay:${address.path}`;
  if (address.kind === 'unix') return address.path.startsWith('/') ? address.path : `unix:${address.path}`;
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
