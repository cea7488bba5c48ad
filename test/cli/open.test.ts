// `rsptrace open`, as a browser would use it.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { main, rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { variant } from '../support/long.js';

const folder = scratchFolder(t);

t.test('serves the trace to the viewer, and ends when that has fetched it', async (t) => {
  const path = join(folder, 'a+b &c 100%.json');
  const text = '[\n{"ph":"M","ts":0,"pid":1,"tid":1,"name":"process_name","args":{"name":"k"}}\n]\n';
  writeFileSync(path, text);
  const port = 20_000 + (process.pid % 20_000);
  const run = rsptraceProcess('open', path, '--perfetto', '--no-browser', '--port', String(port));
  let shown = '';
  run.process.stdout?.on('data', (part: string) => {
    shown += part;
  });
  await run.shows('ui.perfetto.dev');
  const other = await fetch(`http://127.0.0.1:${port}/../etc/passwd`);
  t.equal(other.status, 404);
  const again = await rsptrace('open', path, '--perfetto', '--no-browser', '--port', String(port)).ended;
  t.match(again.stderr, /OPEN_CANNOT_SERVE/);
  // As the viewer's router reads it.
  const { hash } = new URL(shown);
  const got = await fetch(new URLSearchParams(hash.slice('#!/'.length)).get('url') ?? '');
  t.equal(got.headers.get('access-control-allow-origin'), 'https://ui.perfetto.dev');
  t.equal(await got.text(), text);
  const { status, stdout } = await run.ended;
  t.equal(status, 0);
  t.match(stdout, /^https:\/\/ui\.perfetto\.dev\/#!\/\?url=http:\S+\n$/);
  t.match((await rsptrace('open', join(folder, 'none.json')).ended).stderr, /TRACE_UNREADABLE/);
  writeFileSync(join(folder, 'notes.json'), '{}');
  t.match((await rsptrace('open', join(folder, 'notes.json'), '--perfetto').ended).stderr, /TRACE_FOREIGN/);
});

t.test('makes a page of a trace, serves that to this machine, and ends when it has been fetched', async (t) => {
  const path = join(folder, 'calls <b>.json');
  const call = (name: string, ts: number) => ({ ph: 'X', name, ts, dur: 3, pid: 1, tid: 1 });
  writeFileSync(path, JSON.stringify([call('fetch_me', 1), call('fetch_me', 9)]));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = scratchFolder(t);
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const run = rsptraceProcess('open', path, '--no-browser');
  let shown = '';
  run.process.stdout?.on('data', (text: string) => {
    shown += text;
  });
  await run.shows('.html');
  rmSync(path);
  const page = shown.trim();
  const { port, pathname } = new URL(page);
  t.equal(pathname, '/calls%20%3Cb%3E.json.html');
  t.equal((await got(Number(port), 'attacker.example', pathname)).status, 403);
  t.equal((await fetch(new URL('/favicon.ico', page))).status, 404);
  const answer = await fetch(page);
  t.equal(answer.headers.get('content-type'), 'text/html');
  t.equal(answer.headers.get('access-control-allow-origin'), null, 'no other page may read it');
  t.match(await answer.text(), /^<!doctype html>[\s\S]*name="generator" content="rsptrace"/);
  t.equal((await run.ended).status, 0);
  t.same(readdirSync(process.env.TMPDIR ?? ''), [], 'nothing is left');
  t.match((await rsptrace('open', join(folder, 'notes.json')).ended).stderr, /TRACE_FOREIGN/);
});

variant(t, 'killed while it makes the page: nothing is left', async (t) => {
  const path = join(folder, 'long.json');
  const calls = Array.from(
    { length: 500_000 },
    (_, i) => `{"ph":"X","name":"f","ts":${i * 3},"dur":2,"pid":1,"tid":1}`,
  );
  writeFileSync(path, `[${calls.join()}]`);
  const temporary = scratchFolder(t);
  // After two seconds of the processor's time the system kills it.
  const killed = await start('prlimit', [
    ...['--cpu=2:2', 'env', `TMPDIR=${temporary}`, process.execPath, main, 'open', path, '--no-browser'],
  ]).ended;
  t.equal(killed.stdout, '', 'the page is not made yet');
  t.same(readdirSync(temporary), []);
});

t.test('an HTML report is the page', async (t) => {
  const path = join(folder, 'a b.html');
  writeFileSync(
    path,
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="rsptrace">',
  );
  const run = await rsptrace('open', path, '--no-browser').ended;
  t.match(run, { status: 0, stdout: `${pathToFileURL(path).href}\n` });
  t.match((await rsptrace('open', path, '--perfetto').ended).stderr, /TRACE_FOREIGN/);
  writeFileSync(path, '<!doctype html><p>of somebody else');
  t.match((await rsptrace('open', path).ended).stderr, /TRACE_FOREIGN/);
});

t.test('only this machine, by its own name; the trace may be gone; ends after any complete download', async (t) => {
  const port = 20_000 + ((process.pid + 7) % 20_000);
  const text = `[\n${'{"ph":"M","ts":0,"pid":1,"tid":1,"name":"process_name","args":{"name":"k"}},\n'.repeat(20_000)}]\n`;
  const path = join(folder, 'gone.json');
  for (let i = 0; i < 6; i++) {
    writeFileSync(path, text);
    const run = rsptraceProcess('open', path, '--perfetto', '--no-browser', '--port', String(port));
    await run.shows('ui.perfetto.dev');
    rmSync(path);
    t.equal((await got(port, 'attacker.example', '/gone.json')).status, 403);
    const whole = await got(port, `localhost:${port}`, '/gone.json');
    t.match(whole, { status: 200, bytes: text.length });
    t.equal((await run.ended).status, 0);
  }
  const far = await rsptrace('open', path, '--port', '70000').ended;
  t.match(far, { status: 2, stderr: /1 to 65535.*\[USAGE\]/ });
});

t.test('Ctrl-C ends it while a browser runs in the foreground of xdg-open', async (t) => {
  const path = join(folder, 'foreground.json');
  writeFileSync(path, '[\n{"ph":"M","ts":0,"pid":1,"tid":1,"name":"process_name","args":{"name":"k"}}\n]\n');
  const opener = join(folder, 'xdg-open');
  const seen = join(folder, 'browser.pid');
  writeFileSync(opener, `#!/bin/sh\necho $$ > ${seen}.new; mv ${seen}.new ${seen}\nexec sleep 300\n`, { mode: 0o755 });
  const before = process.env.PATH;
  process.env.PATH = `${folder}:${before}`;
  t.teardown(() => {
    process.env.PATH = before;
  });
  const run = rsptraceProcess('open', path);
  while (!existsSync(seen) && !run.over()) await sleep(20);
  t.teardown(() => process.kill(Number(readFileSync(seen, 'utf8'))));
  run.signal('SIGINT');
  t.equal((await run.ended).status, 0);
});

/** A plain GET, as curl's: it closes the connection as soon as it has all bytes. */
function got(port: number, host: string, path: string): Promise<{ status: number; bytes: number }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes === Number(response.headers['content-length'])) response.socket.destroy();
      });
      response.on('close', () => resolve({ status: response.statusCode ?? 0, bytes }));
    });
    asked.on('error', reject).end();
  });
}
