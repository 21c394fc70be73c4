// Checks what the server wrote, as tee.mjs wrote it down: every line is one message, and valid as
// what it is in the revision it belongs to. A message that no definition covers is a fault.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { definitionsOf } from './schemas.mjs';

const meta = 'io.modelcontextprotocol/';
const modern = '2026-07-28';
const keyOf = (id) => JSON.stringify(id);

// One connection. The revision of a modern request is in the request, that of all others what
// `initialize` ended with.
class Connection {
  requests = new Map(); // by id: { method, revision, isCancelled }
  owners = new Map(); // the same, by the progress token
  legacy = undefined;
  count = 0;
  kinds = new Set();
  faults = [];

  // Clients may write what is no message.
  hearLine(line) {
    try {
      this.hear(JSON.parse(line));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }

  hear(message) {
    for (const one of Array.isArray(message) ? message : [message]) {
      if (typeof one?.method !== 'string') continue;
      if (one.method === 'notifications/cancelled') this.cancel(one.params.requestId);
      if (!('id' in one)) continue;
      const revision = one.params?._meta?.[`${meta}protocolVersion`];
      const request = { method: one.method, id: one.id, revision };
      this.requests.set(keyOf(one.id), request);
      const token = one.params?._meta?.progressToken;
      if (token !== undefined) this.owners.set(keyOf(token), request);
    }
  }

  cancel(id) {
    const request = this.requests.get(keyOf(id));
    if (request) request.isCancelled = true;
  }

  check(line) {
    this.count++;
    let message;
    try {
      message = JSON.parse(line);
    } catch (error) {
      this.faults.push(`${error.message}: ${line}`);
      return;
    }
    for (const fault of this.faultsOf(message)) this.faults.push(`${fault}\n    in ${line}`);
  }

  faultsOf(message) {
    if (Array.isArray(message)) return this.faultsOfBatch(message);
    if (message === null || typeof message !== 'object') return ['is no object'];
    if ('method' in message) {
      return 'id' in message
        ? this.validate(this.legacy, message.method, (d) => d.requestOf?.(message.method), message)
        : this.faultsOfNotification(message);
    }
    if (!('id' in message) || message.id === null) return this.faultsOfLostError(message);
    const request = this.requests.get(keyOf(message.id));
    if (!request) return ['answers no request'];
    if (request.isCancelled) return ['answers a request that was cancelled'];
    this.requests.delete(keyOf(message.id));
    return 'error' in message ? this.faultsOfError(message, request)
      : this.faultsOfResult(message, request);
  }

  // Only one revision has them.
  faultsOfBatch(batch) {
    return [
      ...this.validate(this.legacy, 'batch', (d) => d.batch, batch),
      ...batch.flatMap((message) => this.faultsOf(message)),
    ];
  }

  // Finds the definitions, and that of the message among them, and validates.
  validate(revision, kind, pick, value) {
    const definitions = definitionsOf(revision);
    if (!definitions) return [`${kind}: no revision ${revision} is known`];
    const definition = pick(definitions);
    if (!definition) return [`${kind}: no definition in ${revision}`];
    this.kinds.add(`${revision} ${kind}`);
    return definitions.check(definition, value).map((fault) => `${revision} ${fault}`);
  }

  faultsOfResult(message, request) {
    if (request.method === 'initialize') this.legacy = message.result.protocolVersion;
    const revision = request.revision ?? this.legacy;
    const asks = message.result.resultType === 'input_required';
    return [
      ...this.validate(revision, `answer to ${request.method}`, (d) => d.envelope, message),
      ...this.validate(revision, `result of ${request.method}`, 
        (d) => (asks ? d.inputRequired : d.resultOf(request.method)), message.result),
    ];
  }

  // A version that is not known is refused in the newest that is.
  faultsOfError(message, request) {
    const { code } = message.error;
    const revision = definitionsOf(request.revision) ? request.revision
      : request.revision ? modern : this.legacy ?? '2025-11-25';
    return this.validate(revision, `error ${code}`, (d) => d.errorOf(code), message);
  }

  // The answer to what is no message has no id. Before 2025-11-25 errors must have one, so nothing
  // would be valid: there it is null, as JSON-RPC has it, and the rest is checked as later.
  faultsOfLostError({ id, ...message }) {
    const { code } = message.error ?? {};
    const revision = this.legacy === undefined ? modern : '2025-11-25';
    const isOld = this.legacy < revision;
    return this.validate(revision, `error ${code}, of no request`, (d) => d.errorOf(code),
      isOld || id === undefined ? message : { id, ...message });
  }

  faultsOfNotification(message) {
    const { method, params } = message;
    const subscription = params?._meta?.[`${meta}subscriptionId`];
    const owner = subscription === undefined ? this.owners.get(keyOf(params?.progressToken))
      : this.requests.get(keyOf(subscription));
    const faults = this.validate(owner?.revision ?? this.legacy ?? modern, method,
      (d) => d.notificationOf(method), message);
    if (method === 'notifications/progress' && !owner) faults.push('a token of nobody');
    if (subscription !== undefined && !owner) faults.push('a subscription of nobody');
    return faults;
  }
}

// All connections written down in a folder: how many messages, which kinds, and what is wrong.
export function checkWire(folder) {
  const sum = { count: 0, kinds: new Set(), faults: [] };
  for (const name of readdirSync(folder)) {
    const connection = new Connection();
    for (const entry of readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1)) {
      const { from, line } = JSON.parse(entry);
      if (from === 'server') connection.check(line);
      else connection.hearLine(line);
    }
    sum.count += connection.count;
    sum.faults.push(...connection.faults);
    connection.kinds.forEach((kind) => sum.kinds.add(kind));
  }
  return sum;
}
