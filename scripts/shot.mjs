// A page in a browser without a window, as a PNG: node --import tsx scripts/shot.mjs PAGE.html PICTURE.png WIDTH HEIGHT [FRAGMENT]
import { writeFileSync } from 'node:fs';
import { openPage } from '../test/support/chromium.ts';

/** What pages take to be drawn, in milliseconds: far more than they need. */
const drawn = 2000;

const [path, picture, width, height, fragment = ''] = process.argv.slice(2);
const page = await openPage(path, { fragment });
const size = { width: Number(width), height: Number(height), deviceScaleFactor: 1, mobile: false };
await page.call('Emulation.setDeviceMetricsOverride', size);
await page.value(`new Promise((resolve) => setTimeout(resolve, ${drawn}))`);
const { data } = await page.call('Page.captureScreenshot');
writeFileSync(picture, Buffer.from(data, 'base64'));
await page[Symbol.asyncDispose]();
