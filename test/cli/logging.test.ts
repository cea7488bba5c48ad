// Warnings are sentences for who reads them; with --log they are JSON lines for programs.
import t from 'tap';
import { partOf } from '../../src/base/logger.js';
import { createLogger } from '../../src/cli/logging.js';

/** What is written to stderr meanwhile. */
function written(write: () => void): string {
  const { write: before } = process.stderr;
  let text = '';
  process.stderr.write = (piece: string | Uint8Array): boolean => {
    text += String(piece);
    return true;
  };
  try {
    write();
  } finally {
    process.stderr.write = before;
  }
  return text;
}

const fields = { path: '/a\u{202e}b', probes: ['c', 'd'], more: 3, none: undefined };

t.test('without a level warnings alone, as sentences', async (t) => {
  const logger = createLogger(undefined);
  t.equal(
    written(() => logger.warn(fields, 'records wait')),
    'rsptrace: records wait (path: /a\\u{202e}b; probes: c, d; more: 3)\n',
  );
  t.equal(
    written(() => logger.warn({}, 'nothing more is known')),
    'rsptrace: nothing more is known\n',
  );
  t.equal(
    written(() => logger.info(fields, 'not written')),
    '',
  );
  t.notOk(logger.isLevelEnabled('info'));
});

t.test('with a level JSON lines, down to that level', async (t) => {
  const logger = createLogger('info');
  const line = written(() => logger.info(fields, 'records wait'));
  t.match(JSON.parse(line), { level: 30, path: fields.path, probes: ['c', 'd'], msg: 'records wait' });
  t.equal(
    written(() => logger.debug(fields, 'not written')),
    '',
  );
  t.equal(
    written(() => createLogger('silent').warn(fields, 'not written')),
    '',
  );
});

t.test('of parts: their level, and warnings of the rest', async (t) => {
  const logger = createLogger('debug:inject,clock');
  const line = written(() => partOf(logger, 'inject').debug({ probes: 3 }, 'patches'));
  t.match(JSON.parse(line), { level: 20, part: 'inject', probes: 3, msg: 'patches' });
  for (const other of [logger, partOf(logger, 'stop')]) {
    t.equal(
      written(() => other.debug(fields, 'not written')),
      '',
    );
    t.match(JSON.parse(written(() => other.warn({}, 'lost'))), { level: 40, msg: 'lost' });
  }
  t.throws(() => createLogger('debug:injekt'), { code: 'USAGE', message: /parts of .*inject.*, not 'injekt'/ });
});

t.test('RSPTRACE_LOG holds where no level is given', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_LOG;
  });
  process.env.RSPTRACE_LOG = 'debug';
  t.ok(createLogger(undefined).isLevelEnabled('debug'));
  t.notOk(createLogger('warn').isLevelEnabled('debug'));
  process.env.RSPTRACE_LOG = 'loud';
  t.throws(() => createLogger(undefined), { code: 'USAGE', message: /^RSPTRACE_LOG is one of/ });
});

t.test('a terminal gets lines for people', async (t) => {
  const { isTTY } = process.stderr;
  process.stderr.isTTY = true;
  t.teardown(() => {
    process.stderr.isTTY = isTTY;
  });
  const logger = partOf(createLogger('debug'), 'record');
  t.match(
    written(() => logger.debug(fields, 'records wait')),
    /^ *\d+\.\d{3} debug record {2}records wait {2}path: \/a\\u\{202e\}b; probes: c, d; more: 3\n$/,
  );
});
