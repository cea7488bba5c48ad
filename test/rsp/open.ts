import { type ConnectOptions, connect, type Session } from '../../src/rsp/index.js';
import { FakeStub, riscv, type Script } from '../support/fake-stub.js';

/** A session with a stub that answers `scripts` over the RISC-V handshake; what the handshake sent is forgotten. */
export async function open(
  script: Script = {},
  options: ConnectOptions = {},
): Promise<{ stub: FakeStub; session: Session }> {
  const stub = await FakeStub.start(riscv, script);
  const session = await connect(stub.path, { timeoutMs: 400, ...options });
  stub.heard.length = 0;
  stub.chunks.length = 0;
  return { stub, session };
}
