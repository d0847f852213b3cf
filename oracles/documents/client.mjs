// What the clients of all five documents share: requests, and streams cut into frames. It knows no dialect.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import WebSocket from "ws";

const CONTENT_TYPES = { ndjson: "application/x-ndjson", sse: "text/event-stream", json: "application/json" };

/** A server under test, and the requests that the tests make of it. */
export class Server {
  /** `program` is the path of the command line, `backends` the address of the back ends. */
  constructor({ address, program, backends }) {
    Object.assign(this, { address, program, backends });
  }

  request(path, options = {}) {
    return fetch(`${this.address}${path}`, options);
  }

  /** Posts a JSON body. */
  post(path, body, headers = {}) {
    return this.request(path, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });
  }

  /** Gets JSON. */
  async get(path, headers = { Accept: "application/json" }) {
    const response = await this.request(path, { headers });
    const text = await response.text();
    assert.equal(response.status, 200, `GET ${path}: ${text}`);
    return JSON.parse(text);
  }

  /** Writes frames as a producer does, and tells how the server answers. */
  async write(path, frames, { framing = "ndjson", headers = {} } = {}) {
    const body = typeof frames === "string" ? frames : framed(frames, framing);
    const response = await this.request(path, { method: "POST", headers: { "Content-Type": CONTENT_TYPES[framing], ...headers }, body });
    return { status: response.status, answer: await response.json() };
  }

  /** Writes frames that must be accepted. */
  async push(path, frames, options) {
    const { status, answer } = await this.write(path, frames, options);
    assert.equal(status, 200, `POST ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /** Reads what a run or a thread has, as NDJSON in a dialect. */
  async read(path, dialect, query = "") {
    const text = await this.text(`${path}?dialect=${dialect}&follow=false${query}`, "application/x-ndjson");
    const lines = text.split("\n").filter((line) => line !== "");
    assert.notEqual(lines.length, 0, `nothing came from ${path} in ${dialect}`);
    return lines.map((line) => JSON.parse(line));
  }

  /** Gets a body as text. */
  async text(path, accept) {
    const response = await this.request(path, { headers: { Accept: accept } });
    const text = await response.text();
    assert.equal(response.status, 200, `GET ${path}: ${text}`);
    return text;
  }

  /** Writes one run in a dialect, and gives its id. `name` is the run's id and, with `-thread`, its thread's. */
  async run(name, dialect, frames, query = "") {
    await this.push(`/v1/runs/${name}/events?dialect=${dialect}&thread=${name}-thread${query}`, frames);
    return name;
  }

  /** Reads one run in a dialect. */
  frames(run, dialect, query) {
    return this.read(`/v1/runs/${run}/events`, dialect, query);
  }

  /** Opens a WebSocket. */
  socket(path, protocols) {
    return Socket.open(`${this.address.replace("http", "ws")}${path}`, protocols);
  }

  /** Runs the command line with some input, and gives what it prints. */
  command(options, input = "") {
    return new Promise((resolve) => {
      const child = execFile(this.program, options, { env: { ...process.env, RUNWIRE_URL: this.address } }, (error, stdout, stderr) => {
        resolve({ code: error?.code ?? 0, stdout, stderr });
      });
      // A program that ends without reading its input is judged by its exit code.
      child.stdin.on("error", () => {});
      child.stdin.end(input);
    });
  }
}

/** Writes frames in a framing. */
export function framed(frames, framing = "ndjson") {
  if (framing === "json") return JSON.stringify(frames);
  const lines = frames.map((frame) => (typeof frame === "string" ? frame : JSON.stringify(frame)));
  return lines.map((line) => (framing === "sse" ? `data: ${line}\n\n` : `${line}\n`)).join("");
}

/** Cuts a body of server-sent events into blocks: their fields, and their comments. */
export async function* blocks(response) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body) {
    const cut = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = cut.pop();
    for (const block of cut) yield blockOf(block);
  }
}

function blockOf(text) {
  const block = { text, comments: [] };
  for (const line of text.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (name === "") block.comments.push(value);
    else if (name === "data" && block.data !== undefined) block.data += `\n${value}`;
    else block[name] = value;
  }
  return block;
}

/** Gives the blocks that have data, parsed as `frame`; stops after one for which `enough` is true. */
export async function events(response, enough = () => false) {
  const seen = [];
  for await (const block of blocks(response)) {
    if (block.data === undefined) continue;
    const event = { ...block, frame: JSON.parse(block.data) };
    seen.push(event);
    if (await enough(event.frame, event)) break;
  }
  assert.notEqual(seen.length, 0, `nothing came from ${response.url}`);
  return seen;
}

/** A WebSocket whose messages can be waited for. */
class Socket {
  #messages = [];
  #waiting = [];

  static async open(address, protocols) {
    const socket = new Socket();
    socket.wire = new WebSocket(address, protocols);
    socket.wire.on("message", (text) => socket.#take(text.toString()));
    socket.wire.on("close", () => socket.#take(undefined));
    const refused = new Promise((_, reject) => socket.wire.once("error", reject));
    await Promise.race([once(socket.wire, "open"), refused]);
    socket.wire.on("error", () => {});
    return socket;
  }

  #take(text) {
    this.#messages.push(text);
    this.#waiting.splice(0).forEach((wake) => wake());
  }

  send(message) {
    this.wire.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Waits for the next message, as text; `undefined` is the end. */
  async nextText() {
    while (this.#messages.length === 0) await new Promise((wake) => this.#waiting.push(wake));
    return this.#messages.shift();
  }

  async next() {
    const text = await this.nextText();
    assert.notEqual(text, undefined, "the socket was closed");
    return JSON.parse(text);
  }

  close() {
    this.wire.close();
  }
}

/** Makes a request whose body stays open: `write` adds to it, `end` gives the answer. */
export function openBody(server, path, headers = {}) {
  const request = http.request(`${server.address}${path}`, { method: "POST", headers: { "Content-Type": CONTENT_TYPES.ndjson, ...headers } });
  const answered = once(request, "response").then(async ([response]) => {
    let text = "";
    for await (const bytes of response.setEncoding("utf8")) text += bytes;
    return { status: response.statusCode, answer: JSON.parse(text) };
  });
  return {
    write: (bytes) => new Promise((resolve) => request.write(bytes, resolve)),
    end: () => (request.end(), answered),
  };
}

/** Makes a request and gives its response with the headers exactly as they came. */
export async function rawRequest(server, path, { method = "GET", headers = {}, body } = {}) {
  const request = http.request(`${server.address}${path}`, { method, headers });
  request.end(body);
  const [response] = await once(request, "response");
  const header = (name) => response.rawHeaders.filter((_, at) => at % 2 === 1 && response.rawHeaders[at - 1].toLowerCase() === name.toLowerCase());
  return { status: response.statusCode, header, body: response.setEncoding("utf8"), close: () => response.destroy() };
}

/** Does something once for each server, however many tests ask for it. */
export function shared(doing) {
  const done = new WeakMap();
  return (server) => {
    if (!done.has(server)) done.set(server, doing(server));
    return done.get(server);
  };
}

/** Waits until something is so. */
export async function until(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const KINDS = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  list: (value) => Array.isArray(value),
  any: (value) => value !== undefined,
};

/**
 * Checks the fields of an object: `{name: kind}`, where a name with `?` may be absent. A kind is one of the names
 * above, a list of allowed values, or a function.
 */
export function assertFields(object, fields, where) {
  assert.ok(KINDS.object(object), `${where}: an object was expected, and ${JSON.stringify(object)} came`);
  for (const [key, kind] of Object.entries(fields)) {
    const name = key.replace("?", "");
    if (key.endsWith("?") && object[name] === undefined) continue;
    const fits = typeof kind === "function" ? kind(object[name]) : Array.isArray(kind) ? kind.includes(object[name]) : KINDS[kind](object[name]);
    const wanted = Array.isArray(kind) ? kind.join(" | ") : typeof kind === "function" ? "what the document says" : kind;
    assert.ok(fits, `${where}: \`${name}\` must be ${wanted}, and is ${JSON.stringify(object[name])} in ${JSON.stringify(object)}`);
  }
}

/** Gives those of some frames for which something is so; there must be one, or the test would show nothing. */
export function some(frames, isWanted, where) {
  const found = frames.filter(isWanted);
  assert.notEqual(found.length, 0, `${where}: none came`);
  return found;
}

/** Asserts that an object has at least these members, with these values. */
export function assertHas(object, members, where = "") {
  for (const [name, value] of Object.entries(members)) {
    assert.deepEqual(object?.[name], value, `${where} \`${name}\` of ${JSON.stringify(object)}`);
  }
}

/** Takes members away. */
export function without(object, ...names) {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
