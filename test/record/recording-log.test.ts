// Records of a recording whose disk was full are none that its trace could be made of.
import { closeSync, existsSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { silent } from '../../src/base/logger.js';
import { RecordingLog } from '../../src/record/recording-log.js';
import { scratchFolder } from '../support/command.js';

const clock = { name: 'riscv-time', resolutionNs: 100, guest: true };
const info = { program: 'program', buildId: undefined, arch: 'x86_64', harts: [], clock };

for (const [hole, keeps] of [
  [false, false],
  [true, false],
  [true, true],
] as const) {
  t.test(`${hole ? 'with' : 'without'} a hole, ${keeps ? 'asked for' : 'not asked for'}`, async (t) => {
    const path = join(scratchFolder(t), 'x.records');
    const log = new RecordingLog({ path, asked: {}, keeps }, silent);
    log.begin({ info, loadBias: '0x0', harts: [], watches: false });
    if (hole) {
      const own = readdirSync('/proc/self/fd').find((fd) => links(fd) === path);
      closeSync(Number(own));
      // The same number again, which nothing can be written to.
      openSync('/dev/null', 'r');
    }
    log.raw.records(new Uint8Array(64));
    log.end(true);
    t.equal(existsSync(path), !hole || keeps);
  });
}

function links(fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return undefined;
  }
}
