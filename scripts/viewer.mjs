// Makes the page of HTML reports out of src/trace/viewer: one text, with its style and its script inside, and a policy
// that lets nothing else run. As a plugin of esbuild it is put in for src/trace/formats/html/page.ts.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'src/trace/viewer');

const bundled = async (file, plugins) => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [join(folder, file)],
    bundle: true,
    write: false,
    minify: true,
    platform: 'browser',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    format: 'iife',
    charset: 'utf8',
    logLevel: 'warning',
    plugins,
  });
  return outputFiles[0].text.trim();
};

/** The page, up to its data. `plugins`: of the bundle around it. */
export async function viewerPage(plugins = []) {
  const [script, style] = await Promise.all([bundled('main.ts', plugins), bundled('page.css', [])]);
  // What would end the element that it stands in.
  if (/<\/?(script|!--)/i.test(script) || style.includes('<')) throw new Error('the viewer has a tag in a text');
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; base-uri 'none'; form-action 'none'; script-src ${hash(script)}; style-src ${hash(style)}`;
  const [html] = readFileSync(join(folder, 'page.html'), 'utf8').replaceAll('\n', '').split('<!-- DATA -->');
  const put = { POLICY: policy, '/* STYLE */': style, '// SCRIPT': script };
  return `${html.replace(/POLICY|\/\* STYLE \*\/|\/\/ SCRIPT/g, (name) => put[name])}\n`;
}

/** For bundles of what writes HTML reports. `plugins`: for the viewer, which is bundled by itself. */
export const withViewer = (plugins = []) => ({
  name: 'with-viewer',
  setup({ onLoad }) {
    let page;
    onLoad({ filter: /\/formats\/html\/page\.ts$/ }, async () => {
      page ??= viewerPage(plugins);
      return { contents: `export const page = ${JSON.stringify(await page)};`, loader: 'js' };
    });
  },
});
