import { type Logger, partOf, silent } from '../../base/logger.js';
import { formatRemote, parseRemote, type RemoteAddress } from '../wire/address.js';
import type { Link } from '../wire/link.js';
import { Replay } from '../wire/replay.js';
import { operationTimeouts, tooSlow } from '../wire/reply-timeout.js';
import { openTransport, type Transport, type TransportEvents } from '../wire/transport.js';
import type { WireRecorder } from '../wire/wire-log.js';
import { askOver, shakeHands } from './handshake.js';
import { packets } from './packets.js';
import type { KnownRegisters } from './registers.js';
import { RunControl } from './run-control.js';
import { Session } from './session.js';

export interface ConnectOptions {
  /** Gets every packet, both ways, at level `trace`. */
  readonly logger?: Logger;
  /** Timeout for one answer of the stub, in ms; 5000 by default. A run has no limit. */
  readonly timeoutMs?: number;
  /** How long to retry while nothing listens, in ms; 0 by default. For a stub that was just started. */
  readonly waitMs?: number;
  /** Aborted when no stub will come any more, for example because its process has ended: ends the retries. */
  readonly signal?: AbortSignal;
  /** What the target prints through the stub (O packets, semihosting). The bytes are the receiver's. */
  readonly onConsole?: (text: Uint8Array) => void;
  /** What is known about registers if the stub does not describe them; none by default. */
  readonly architectures?: readonly KnownRegisters[];
  /** Which one of {@link architectures} a stub has if it does not say its architecture. */
  readonly expectedArchitecture?: string;
  /** Writes down every byte, both ways. Several connections one after the other may share it. */
  readonly recordWire?: WireRecorder | undefined;
  /** Since when the target stands, as `performance.now` counts; since the handshake by default. */
  readonly standsSince?: number | undefined;
}

/**
 * Connects to a stub and does the handshake; the target is stopped afterwards. Throws `RSP_BAD_ADDRESS`,
 * `RSP_CONNECT`, `RSP_TIMEOUT`, `RSP_CLOSED`, `RSP_PROTOCOL`, `RSP_BAD_XML`, `RSP_NO_PROGRAM`, `RSP_REPLAY_*`.
 */
export async function connect(address: string | RemoteAddress, options: ConnectOptions = {}): Promise<Session> {
  const remote = typeof address === 'string' ? parseRemote(address) : address;
  const logger = partOf(options.logger ?? silent, 'rsp');
  const timeoutMs = options.timeoutMs ?? 5000;
  const control = new RunControl(formatRemote(remote), logger, timeoutMs, options.onConsole);
  control.standsSince = options.standsSince;
  const link = control.link;
  const transport = await open(remote, link, options);
  link.open(transport);
  const mostMs = timeoutMs * operationTimeouts;
  const deadline = setTimeout(() => link.close(tooSlow('telling what it is', mostMs)), mostMs);
  try {
    const greeting = await shakeHands(link, logger, options);
    logger.debug(
      {
        stub: transport.name,
        architecture: greeting.target.architecture,
        registers: greeting.target.registers.size,
        packetSize: greeting.features.packetSize,
        noAck: greeting.features.noAck,
      },
      'connected',
    );
    const session = new Session(control, greeting, logger, transport.peer);
    // A recording's process may be gone, and its number another's.
    if (remote.kind !== 'replay') await session.findLocalProcess(options.recordWire);
    if (options.recordWire === undefined) session.readFilesHere();
    return session;
  } catch (error) {
    await letGo(link);
    throw error;
  } finally {
    clearTimeout(deadline);
  }
}

async function open(
  remote: RemoteAddress,
  link: Link,
  { recordWire: wire, waitMs = 0, signal }: ConnectOptions,
): Promise<Transport> {
  const events: TransportEvents = {
    data(chunk, length) {
      wire?.bytes('client', chunk, length);
      link.data(chunk, length);
    },
    closed(error) {
      wire?.closed('stub');
      link.disconnected(error);
    },
  };
  const transport =
    remote.kind === 'replay'
      ? new Replay(remote.path, events)
      : await openTransport(remote, events, { waitMs, signal });
  if (wire === undefined) return transport;
  wire.opened(transport.name);
  return {
    name: transport.name,
    write(bytes) {
      wire.bytes('stub', bytes, bytes.length);
      return transport.write(bytes);
    },
    close() {
      wire.closed('client');
      transport.close();
    },
  };
}

/** Connecting has stopped the target. After a failed handshake it is resumed as well as possible without one. */
async function letGo(link: Link): Promise<void> {
  const ask = askOver(link);
  try {
    // QEMU's only process is 1, and it takes no D without one once it has agreed to multiprocess.
    if ((await ask(packets.detach('1'))) !== 'OK') await ask(packets.detach(undefined));
  } catch {
    // The link is dead, and the error before says why.
  } finally {
    link.close();
  }
}
