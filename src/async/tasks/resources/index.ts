import { smol } from './async-lock.js';
import { embassyPrimitives } from './embassy.js';
import { futuresCrates } from './futures-rs.js';
import type { Primitive } from './resource.js';
import { sockets } from './sockets.js';
import { tokioPrimitives } from './tokio.js';

export { type Awaited, type Counted, type Enders, Look, type Primitive } from './resource.js';
export { socketThatWakes } from './sockets.js';

/** The locks, channels, handles and timers that are known. */
export const primitives: readonly Primitive[] = [
  ...[...tokioPrimitives, ...sockets, ...embassyPrimitives, ...smol, ...futuresCrates],
];
