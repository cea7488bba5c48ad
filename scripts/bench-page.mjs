// An HTML report in Chromium: when it is painted and shown, the CPU time of its main thread until then, and while it is
// panned for 120 frames, at several zooms. CPU time is that of the page, however busy the machine is.
//   node scripts/bench-page.mjs FILE.html
import { statSync } from 'node:fs';
import { register } from 'tsx/esm/api';

register();
const { openPage } = await import('../test/support/chromium.ts');
const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('name an HTML report');
const page = await openPage(file);
await page.call('Performance.enable', { timeDomain: 'threadTicks' });
await page.until("document.documentElement?.dataset.state === 'shown'");

/** Milliseconds of the main thread so far. */
async function cpu() {
  const { metrics } = await page.call('Performance.getMetrics');
  return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

/** In the page: 120 frames, in each of which the pointer drags the timeline; how far they were apart. */
const panned = `new Promise((done) => {
  const canvas = document.getElementById('lanes');
  canvas.setPointerCapture = () => {};
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    if (times.length > 120) return done(times.slice(1).sort((a, b) => a - b));
    const type = times.length % 100 === 1 ? 'pointerdown' : 'pointermove';
    canvas.dispatchEvent(new PointerEvent(type, { clientX: 900 - (times.length % 100) * 5, clientY: 400 }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;
const press = (key, times) => `{
  const canvas = document.getElementById('lanes');
  canvas.dispatchEvent(new PointerEvent('pointerup', {}));
  for (let i = 0; i < ${times}; i++) canvas.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}' }));
}`;

const marks = await page.value(
  "[...performance.getEntriesByType('paint'), ...performance.getEntriesByType('mark')].map((e) => [e.name, e.startTime])",
);
const at = Object.fromEntries(marks);
const count = await page.value("document.getElementById('count').textContent");
console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB, ${count}`);
const [painted, shown, used] = [at['first-contentful-paint'], at.shown, await cpu()].map(Math.round);
console.log(`first paint after ${painted} ms, shown after ${shown} ms, of which ${used} ms of CPU`);
for (const zoom of [0, 3, 8, 14]) {
  await page.value(press('0', 1));
  await page.value(press('+', zoom));
  const before = await cpu();
  const times = await page.value(panned);
  const each = ((await cpu()) - before) / times.length;
  const [median, late] = [times[60], times[114]].map((time) => time.toFixed(1));
  console.log(`zoom ${zoom}: a frame takes ${each.toFixed(1)} ms of CPU; ${median} ms apart, 95 % within ${late} ms`);
}
await page[Symbol.asyncDispose]();
if (page.errors.length > 0) throw new Error(page.errors.join('\n'));
