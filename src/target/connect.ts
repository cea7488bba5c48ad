import { architectures } from '../arch/index.js';
import {
  type ConnectOptions,
  connect as connectTo,
  type KnownRegisters,
  type RemoteAddress,
  type Session,
} from '../rsp/index.js';

/** Options of {@link connect}, without those that it sets itself. */
export type TargetOptions = Omit<ConnectOptions, 'architectures'>;

/** `connect` of `rsptrace/rsp`, with the registers of every known architecture. Throws the same errors. */
export function connect(address: string | RemoteAddress, options: TargetOptions = {}): Promise<Session> {
  return connectTo(address, { ...options, architectures: knownArchitectures() });
}

/** What `rsptrace/rsp` needs to know about every architecture. */
export function knownArchitectures(): readonly KnownRegisters[] {
  return architectures().map(({ name, gdbNames, pc, registerDefaults, linux }) => ({
    ...{ name, gdbNames, pc, signals: linux?.signals },
    layout: registerDefaults?.layout,
    aliases: registerDefaults?.aliases ?? [],
  }));
}
