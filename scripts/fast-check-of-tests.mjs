// What test files import as 'fast-check' once they are bundled. Without this an array with a maxLength of 150 has ten
// elements at most, so that properties of long stories are never tried.
import fc from 'fast-check';

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });

export * from 'fast-check';
export default fc;
