/*
 * The process of this machine at the other end of a socket, by proc(5) and the kernel's
 * Documentation/networking/proc_net_tcp.rst:
 *
 *   /proc/net/tcp, tcp6   sl local_address rem_address st ... inode     addresses as hex, `0100007F:04D2`
 *   /proc/net/unix        Num RefCount Protocol Flags Type St Inode Path
 *   /proc/PID/fd/N        a link to `socket:[INODE]`
 */

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Refusal } from '../../base/errors.js';
import { entriesOf, linkOf, textOf } from '../../base/proc.js';
import type { SocketAddress } from './transport.js';

const established = '01';

/**
 * The process that has accepted our connection. `localPort` is our own end of a TCP connection. `name`: processes whose
 * name has this part are asked first. Refused on another machine, in another container, and for another user's process.
 */
export function peerProcess(address: SocketAddress, localPort: number | undefined, name: string): number | Refusal {
  const sockets = address.kind === 'unix' ? unixSockets(address.path) : tcpSockets(address.port, localPort);
  if (sockets.length === 0) return { refused: 'the stub runs on another machine, or behind another address' };
  const owner = ownerOf(sockets, name);
  return owner ?? { refused: 'the process of the stub belongs to another user, or runs in a container' };
}

interface PeerSocket {
  readonly inode: string;
  /** For a unix socket: the path to which its process has bound it, and the path that we have opened. */
  readonly bound?: string;
  readonly path?: string;
}

/** The stub's end has our port as its remote port. A server that listens on all addresses may have it in tcp6. */
function tcpSockets(port: number, localPort: number | undefined): PeerSocket[] {
  if (localPort === undefined) return [];
  const [own, remote] = [port, localPort].map((each) => each.toString(16).toUpperCase().padStart(4, '0'));
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    rowsOf(file).flatMap(([, local = '', peer = '', state, , , , , , inode = '']) => {
      const isPeer = state === established && local.endsWith(`:${own}`) && peer.endsWith(`:${remote}`);
      return isPeer && inode !== '0' ? [{ inode }] : [];
    }),
  );
}

/** Sockets bound to a path of that name: the one that listens, and those that were accepted. */
function unixSockets(path: string): PeerSocket[] {
  const base = path.slice(path.lastIndexOf('/') + 1);
  return rowsOf('/proc/net/unix').flatMap(([, , , , , , inode = '', ...rest]) => {
    const bound = rest.join(' ');
    return bound === base || bound.endsWith(`/${base}`) ? [{ inode, bound, path }] : [];
  });
}

function rowsOf(file: string): string[][] {
  return textOf(file)
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/));
}

function ownerOf(sockets: readonly PeerSocket[], name: string): number | undefined {
  const links = new Map(sockets.map((socket) => [`socket:[${socket.inode}]`, socket]));
  const ids = entriesOf('/proc').filter((each) => /^\d+$/.test(each) && each !== String(process.pid));
  const isNamed = (id: string): boolean => textOf(`/proc/${id}/comm`).includes(name);
  for (const id of [...ids.filter(isNamed), ...ids.filter((each) => !isNamed(each))]) {
    for (const file of entriesOf(`/proc/${id}/fd`)) {
      const socket = links.get(linkOf(`/proc/${id}/fd/${file}`));
      if (socket !== undefined && isSameSocket(socket, id)) return Number(id);
    }
  }
  return undefined;
}

/** A server may have bound its socket to a path relative to its own folder. */
function isSameSocket({ bound, path }: PeerSocket, id: string): boolean {
  if (bound === undefined || path === undefined) return true;
  try {
    const [theirs, ours] = [statSync(resolve(linkOf(`/proc/${id}/cwd`), bound)), statSync(path)];
    return theirs.ino === ours.ino && theirs.dev === ours.dev;
  } catch {
    return false;
  }
}
