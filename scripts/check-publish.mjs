#!/usr/bin/env node
// Refuses `npm publish` until the package names its repository: npm's provenance is checked against that address.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const manifest = readFileSync(join(import.meta.dirname, '../package.json'), 'utf8');
if (manifest.includes('github.com/OWNER/')) {
  console.error('package.json names no repository yet: put its owner in place of OWNER there, in one line:');
  console.error(
    "  sed -i 's|github.com/OWNER/|github.com/YOUR-NAME/|' package.json SECURITY.md .github/ISSUE_TEMPLATE/config.yml",
  );
  process.exit(1);
}
