// Which of the probes that lie in each other's way are patched.
import t from 'tap';
import { aarch64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/errors.js';
import { planSites, type RecordSources } from '../../src/inject/index.js';
import type { ReadPlan } from '../../src/probes/index.js';
import { proofOf } from '../../src/proof/index.js';

t.test('a place inside gives way to an entry whose patch comes behind a landing pad', async (t) => {
  const { probeCode } = aarch64;
  if (!probeCode) throw new Error('aarch64 is patched');
  const start = addr(0x40_1000);
  const place = addr(0x40_1004);
  // bti c; mov x1, x0; add x0, x0, #1; ret
  const code = new Uint8Array(Uint32Array.of(0xd503_245f, 0xaa00_03e1, 0x9100_0400, 0xd65f_03c0).buffer);
  const own = code.subarray(4, 8);
  const entry = probeCode.displace(code, start, 'near');
  const inside = probeCode.displaceInside(own, place, 0, { kind: 'near', free: undefined });
  if (isRefusal(entry) || isRefusal(inside)) throw new Error('both can be patched');
  t.equal(entry.start, inside.start, 'at the same place');
  const plan = {
    ...{ address: start, codeSize: code.length, name: 'f', seesReturn: false, scratchIsFree: false },
    ...{ entryRegisters: [], entryReads: [], entryExtents: [], when: [], counts: [] },
    exit: { keep: [], registers: [], reads: [], extents: [] },
  };
  const window = { address: place, length: own.length };
  const inner = { ...plan, address: place, inside: { window, groups: [], taken: [], noted: [] } };
  const plans: unknown = [plan, inner];
  const looks = [
    { code, ways: [entry], ends: undefined, proof: proofOf('entry') },
    { code: own, ways: [inside], inside: [inside], ends: undefined, proof: proofOf('inside') },
  ];
  const sources: RecordSources = {
    ...{ hart: undefined, outer: undefined, returnRegister: 'x30' },
    floats: { names: new Set(), mayBeOff: false },
  };
  const { sites, refused } = planSites(plans as readonly ReadPlan[], looks, sources);
  t.same([...refused], [[1, 'the patch of another probe is there']]);
  t.same(
    sites.map((site) => site.plan.address),
    [start],
  );
});
