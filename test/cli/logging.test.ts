// Warnings are sentences for who reads them; with --log they are JSON lines for programs.
import t from 'tap';
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
    written(() => logger.info(fields, 'not told')),
    '',
  );
  t.notOk(logger.isLevelEnabled('info'));
});

t.test('with a level JSON lines, down to that level', async (t) => {
  const logger = createLogger('info');
  const line = written(() => logger.info(fields, 'records wait'));
  t.match(JSON.parse(line), { level: 30, path: fields.path, probes: ['c', 'd'], msg: 'records wait' });
  t.equal(
    written(() => logger.debug(fields, 'not told')),
    '',
  );
  t.equal(
    written(() => createLogger('silent').warn(fields, 'not told')),
    '',
  );
});
