import type { Test } from 'tap';
import { type ConnectOptions, connect, type Session } from '../../src/rsp/index.js';
import { FakeStub, riscv, type Script } from '../support/fake-stub.js';

/**
 * A session with a stub that answers `scripts` over the RISC-V handshake; what the handshake sent is forgotten. Both end
 * with the test.
 */
export async function open(
  t: Test,
  script: Script = {},
  options: ConnectOptions = {},
): Promise<{ stub: FakeStub; session: Session }> {
  const stub = await FakeStub.start(riscv, script);
  t.teardown(() => stub[Symbol.asyncDispose]());
  const session = await connect(stub.path, { timeoutMs: 400, ...options });
  t.teardown(() => session.close());
  stub.heard.length = 0;
  stub.chunks.length = 0;
  return { stub, session };
}
