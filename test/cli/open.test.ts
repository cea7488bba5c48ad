// `rsptrace open`, as a browser would use it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);

t.test('serves the trace to the viewer, and ends when that has fetched it', async (t) => {
  const path = join(folder, 'a b.json');
  const text = '[\n{"ph":"M","ts":0,"pid":1,"tid":1,"name":"process_name","args":{"name":"k"}}\n]\n';
  writeFileSync(path, text);
  const port = 20_000 + (process.pid % 20_000);
  const run = rsptraceProcess('open', path, '--no-browser', '--port', String(port));
  await run.shows('ui.perfetto.dev');
  const address = `http://127.0.0.1:${port}/a%20b.json`;
  const other = await fetch(`http://127.0.0.1:${port}/../etc/passwd`);
  t.equal(other.status, 404);
  const again = await rsptrace('open', path, '--no-browser', '--port', String(port)).ended;
  t.match(again.stderr, /OPEN_CANNOT_SERVE/);
  const got = await fetch(address);
  t.equal(got.headers.get('access-control-allow-origin'), 'https://ui.perfetto.dev');
  t.equal(await got.text(), text);
  const { status, stdout } = await run.ended;
  t.equal(status, 0);
  t.equal(stdout, `https://ui.perfetto.dev/#!/?url=${address}\n`);
  t.match((await rsptrace('open', join(folder, 'none.json')).ended).stderr, /TRACE_UNREADABLE/);
  writeFileSync(join(folder, 'notes.json'), '{}');
  t.match((await rsptrace('open', join(folder, 'notes.json')).ended).stderr, /TRACE_FOREIGN/);
});
