// What bundles of tests have under these names: `scripts/bundle-tests.mjs`.

declare module 'tap' {
  import type { TAP } from '@tapjs/core';

  export type { Test } from '@tapjs/test';

  const t: TAP;
  export default t;
}

declare module 'json-schema' {
  import type { ValidateFunction } from 'ajv';

  const validators: Readonly<Record<string, ValidateFunction>>;
  export default validators;
}
