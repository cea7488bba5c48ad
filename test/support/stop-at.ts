import { architectureOf } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { elfPath } from '../qemu/guests/guests.js';

/** Lets the guest run to a function, and leaves it standing there. */
export async function stopAt(socket: string, name: string, symbol: string): Promise<void> {
  const elf = await ElfFile.open(elfPath(name));
  const address = elf.symbols.named(symbol)[0]?.address;
  const arch = architectureOf(elf.machine);
  const code = address && elf.bytesAt(address, 4);
  if (address === undefined || code === undefined || arch === undefined) throw new Error(`no ${symbol}`);
  const session = await connect(`unix:${socket}`, { waitMs: 60_000 });
  await session.insertBreakpoint({ type: 0, address, kind: arch.breakpointKind(code) });
  await session.resume();
  session.close();
}
