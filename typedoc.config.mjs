// Pages of the library's types, made of the declarations in dist/: npm run build && npm run api
import manifest from './package.json' with { type: 'json' };

export default {
  name: 'rsptrace',
  entryPoints: Object.values(manifest.exports).flatMap(({ types }) => types ?? []),
  tsconfig: 'tsconfig.api.json',
  readme: 'docs/api.md',
  out: '.cache/api',
  disableSources: true,
  highlightLanguages: ['ts', 'toml', 'sh', 'rust', 'json'],
  // Of a type that no entry exports, its name is shown.
  validation: { notExported: false, invalidLink: true },
  treatWarningsAsErrors: true,
};
