// The pages' pictures are what the report shows now: they are made anew, and compared in a browser.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openPage } from './support/chromium.js';
import { scratchFolder } from './support/command.js';

const root = join(import.meta.dirname, '..');
/** A channel may differ by so much, because browsers smooth letters each in its way. */
const close = 48;
/** Of all pixels, so many percent may differ more. */
const mostPercent = 1;

const compare = (urls: readonly string[]): string => `(async () => {
  const images = await Promise.all(${JSON.stringify(urls)}.map(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    return canvas.getImageData(0, 0, image.width, image.height);
  }));
  const [one, other] = images;
  if (one.width !== other.width || one.height !== other.height) return 100;
  let differ = 0;
  for (let at = 0; at < one.data.length; at += 4)
    if ([0, 1, 2].some((channel) => Math.abs(one.data[at + channel] - other.data[at + channel]) > ${close})) differ++;
  return (100 * differ) / (one.data.length / 4);
})()`;

t.test('docs have the pictures that scripts/picture makes', async (t) => {
  const folder = scratchFolder(t);
  execFileSync(join(root, 'scripts/picture'), [folder], { stdio: 'pipe' });
  const names = readdirSync(folder);
  t.strictSame(names, ['gallery.png', 'programs.png', 'trace.png']);
  const blank = join(folder, 'blank.html');
  writeFileSync(blank, '<!doctype html>');
  await using page = await openPage(blank);
  for (const name of names) {
    const urls = [join(root, 'docs', name), join(folder, name)].map(
      (path) => `data:image/png;base64,${readFileSync(path, 'base64')}`,
    );
    const percent = await page.value<number>(compare(urls));
    t.ok(
      percent < mostPercent,
      `${name}: ${percent.toFixed(2)} % of the pixels differ: look at them, then scripts/picture`,
    );
  }
});
