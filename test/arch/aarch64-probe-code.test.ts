import { target } from './aarch64-target.js';
import { trampolineTests } from './trampoline-tests.js';

trampolineTests({
  ...target,
  counted: ['x0', 'x1', 'x7', 'x19', 'x9', 'x17', 'x10', 'x3'],
  usual: ['x0', 'x19', 'x9', 'x17', 'x10'],
  fixed: ['x9'],
  leading: 'x9',
  nothing: ['x21', 'x22'],
  scratch: ['x11', 'x12', 'x13', 'x10'],
  sources: [{ kind: 'hart', how: 'mpidr' }],
  hartOf: () => 0x8000_0000n,
});
