// What is kept in the user's cache folder besides debug info.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { isFirstSaid } from '../../src/base/kept-files.js';
import { scratchFolder } from '../support/command.js';

t.test('a sentence is said once; where nothing can be kept, each time', async (t) => {
  const before = process.env.RSPTRACE_CACHE;
  t.teardown(() => {
    if (before === undefined) delete process.env.RSPTRACE_CACHE;
    else process.env.RSPTRACE_CACHE = before;
  });
  const folder = join(scratchFolder(t), 'cache');
  process.env.RSPTRACE_CACHE = folder;
  t.same([isFirstSaid('a'), isFirstSaid('a'), isFirstSaid('b'), isFirstSaid('a')], [true, false, true, false]);
  t.equal(readdirSync(folder).length, 2);
  for (const nowhere of ['off', '/proc/rsptrace']) {
    process.env.RSPTRACE_CACHE = nowhere;
    t.same([isFirstSaid('a'), isFirstSaid('a')], [true, true], nowhere);
  }
});
