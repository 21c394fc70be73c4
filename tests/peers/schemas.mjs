// What each revision of MCP allows on the wire, for wire.mjs. The official JSON schemas come out of
// the conformance suite, which carries them as literals in its one bundled program. It has none of
// 2024-11-05; that one is checked with the schemas of the official SDK of its time.
//
// definitionsOf(REVISION) has, all of them undefined where the revision knows nothing of the kind:
//   resultOf(method)        the definition of the result of a client's request
//   notificationOf(method)  that of a notification that servers send
//   errorOf(code)           that of a whole error answer
//   envelope                that of a whole answer with a result
//   batch                   that of answers to a batch
//   check(definition, value)  what is wrong, as a list of sentences
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import * as sdk2024 from 'sdk-2024-11-05/types.js';

const bundle = join(import.meta.dirname,
  'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const strings = /`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}]/gs;

export const revisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];

// -- The conformance suite ------------------------------------------------------------------------

// The object literal that begins at `from`. Braces in strings do not count.
function cutLiteral(source, from) {
  let depth = 0;
  strings.lastIndex = from;
  for (let token; (token = strings.exec(source));) {
    if (token[0] === '{') depth++;
    else if (token[0] === '}' && --depth === 0) return source.slice(from, strings.lastIndex);
  }
  throw new Error(`a literal of ${bundle} has no end`);
}

// It has a table of its schemas: {"2025-03-26":a,"2025-06-18":b,"2025-11-25":c,[newest]:d}.
function readSchemas() {
  const source = readFileSync(bundle, 'utf8');
  const name = '([\\w$]+)';
  const table = new RegExp(`\\{"2025-03-26":${name},"2025-06-18":${name},"2025-11-25":${name},`
    + `\\[[\\w$]+\\]:${name}\\}`).exec(source);
  if (!table) throw new Error(`${bundle} has no table of schemas`);
  return new Map(revisions.slice(1).map((revision, i) => {
    const head = `${table[i + 1]}={$schema:`;
    const at = source.indexOf(head);
    if (at < 0) throw new Error(`${bundle} has no schema of ${revision}`);
    const literal = cutLiteral(source, at + head.indexOf('{'));
    return [revision, JSON.parse(JSON.stringify(runInNewContext(`(${literal})`)))];
  }));
}

const nameOf = (reference) => reference.$ref.split('/').at(-1);
const membersOf = (union) => union.anyOf.map(nameOf);

// Standard errors are defined by what `error` is, those of MCP as whole answers.
function errorsOf(definitions) {
  const errors = new Map();
  for (const [name, definition] of Object.entries(definitions)) {
    const parts = definition.properties?.error?.allOf ?? [];
    const whole = parts.map((part) => part.properties?.code?.const).find((code) => code);
    if (whole) errors.set(whole, { name, whole: true });
    const bare = definition.properties?.code?.const;
    if (typeof bare === 'number') errors.set(bare, { name, whole: false });
  }
  return errors;
}

function ofJsonSchema(schema) {
  const key = '$defs' in schema ? '$defs' : 'definitions';
  const definitions = schema[key];
  const ajv = new (schema.$schema.includes('2020-12') ? Ajv2020 : Ajv)(
    { strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addFormat('byte', true);
  ajv.addSchema(schema, 'mcp');

  const methodOf = (name) => definitions[name].properties.method.const;
  const resultNamed = (name) => (name in definitions ? name : 'EmptyResult');
  const results = new Map(membersOf(definitions.ClientRequest).map((name) =>
    [methodOf(name), resultNamed(name.replace(/Request$/, 'Result'))]));
  const notifications = new Map(membersOf(definitions.ServerNotification).map((name) =>
    [methodOf(name), name]));
  const errors = errorsOf(definitions);
  const anyError = 'JSONRPCErrorResponse' in definitions ? 'JSONRPCErrorResponse' : 'JSONRPCError';
  const check = (name, value) => {
    const validate = ajv.getSchema(`mcp#/${key}/${name}`);
    return validate(value) ? [] : validate.errors.map((error) =>
      `${name}${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
  };
  return {
    resultOf: (method) => results.get(method),
    notificationOf: (method) => notifications.get(method),
    // What a server may ask of a client: by a request, or by a result.
    requestOf: (method) => (method === 'elicitation/create' && !('InputRequiredResult' in definitions)
      && 'ElicitRequest' in definitions ? 'ElicitRequest' : undefined),
    inputRequired: 'InputRequiredResult' in definitions ? 'InputRequiredResult' : undefined,
    // A revision that defines the standard errors has no others.
    errorOf: (code) => (errors.has(-32602) && !errors.has(code) ? undefined : { code }),
    envelope: 'JSONRPCResultResponse' in definitions ? 'JSONRPCResultResponse' : 'JSONRPCResponse',
    batch: 'JSONRPCBatchResponse' in definitions ? 'JSONRPCBatchResponse' : undefined,
    check: (definition, value) => {
      if (typeof definition === 'string') return check(definition, value);
      const special = errors.get(definition.code);
      return [...check(anyError, value),
        ...(special ? check(special.name, special.whole ? value : value.error) : [])];
    },
  };
}

// -- 2024-11-05 -----------------------------------------------------------------------------------

function ofSdk(sdk) {
  const methodOf = (schema) => schema.shape.method.value;
  const nameOfSchema = (schema) => Object.keys(sdk).find((name) => sdk[name] === schema);
  const resultNamed = (name) => (name in sdk ? name : 'EmptyResultSchema');
  const results = new Map(sdk.ClientRequestSchema.options.map((schema) =>
    [methodOf(schema), resultNamed(nameOfSchema(schema).replace('Request', 'Result'))]));
  const notifications = new Map(sdk.ServerNotificationSchema.options.map((schema) =>
    [methodOf(schema), nameOfSchema(schema)]));
  return {
    resultOf: (method) => results.get(method),
    notificationOf: (method) => notifications.get(method),
    errorOf: () => 'JSONRPCErrorSchema',
    envelope: 'JSONRPCResponseSchema',
    check: (name, value) => {
      const { error } = sdk[name].safeParse(value);
      return error?.issues.map((issue) => `${name}/${issue.path.join('/')} ${issue.message}`) ?? [];
    },
  };
}

// -------------------------------------------------------------------------------------------------

const known = new Map([['2024-11-05', ofSdk(sdk2024)]]);
for (const [revision, schema] of readSchemas()) known.set(revision, ofJsonSchema(schema));

export const definitionsOf = (revision) => known.get(revision);
