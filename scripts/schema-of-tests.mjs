// Code that checks docs/json.schema.json, made once for all processes of a run, because it costs each a second of CPU.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import makeCode from 'ajv/dist/standalone/index.js';

/** With no other fields than those that it names, but for what is said to be open. */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inside = Object.fromEntries(Object.entries(schema).map(([key, one]) => [key, closed(one)]));
  const isObject = 'properties' in schema && [schema.type].flat().includes('object');
  return isObject ? { additionalProperties: false, ...inside } : inside;
}

/** A CommonJS module with a function for each definition, by its name. */
export function schemaCode(root) {
  const schema = closed(JSON.parse(readFileSync(join(root, 'docs/json.schema.json'), 'utf8')));
  const ajv = new Ajv2020({ allowUnionTypes: true, strictRequired: false, code: { source: true, optimize: false } });
  ajv.addSchema(schema, 'json');
  return makeCode.default(
    ajv,
    Object.fromEntries(Object.keys(schema.$defs).map((name) => [name, `json#/$defs/${name}`])),
  );
}
