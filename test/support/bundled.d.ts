// What bundles of tests have under these names: `scripts/bundle-tests.mjs`.

declare module 'json-schema' {
  import type { ValidateFunction } from 'ajv';

  const validators: Readonly<Record<string, ValidateFunction>>;
  export default validators;
}
