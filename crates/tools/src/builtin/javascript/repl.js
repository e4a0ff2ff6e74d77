// A persistent kernel: one context, cells one after the other, bindings kept from cell to cell.
const util = require('node:util');
const { PassThrough } = require('node:stream');
const { Console } = require('node:console');

const out = new PassThrough();
const server = require('node:repl').start({
  prompt: '', input: new PassThrough(), output: new PassThrough().resume(), terminal: false, useGlobal: false,
});
const { context } = server;
for (const name of ['process', 'require', 'module', 'exports', 'repl']) delete context[name];

let cell = null;

function write(text) {
  if (cell) send({ kind: 'text', text });
}

context.console = Object.fromEntries(
  ['log', 'info', 'warn', 'error', 'debug'].map((name) => [name, (...args) => write(util.format(...args) + '\n')]),
);
const shown = new Console(out);
for (const name of ['dir', 'table', 'trace', 'group', 'groupEnd', 'time', 'timeEnd', 'count', 'assert']) {
  context.console[name] = (...args) => {
    shown[name](...args);
    const text = out.read();
    if (text) write(text.toString());
  };
}

function active(name) {
  if (!cell) throw new Error(`codex.${name} was called after its cell had ended`);
}

function imageUrl(like) {
  if (typeof like === 'string') return { url: like };
  if (like?.bytes) {
    if (typeof like.mimeType !== 'string') throw new Error('codex.emitImage needs mimeType with bytes');
    const base64 = Buffer.from(like.bytes).toString('base64');
    return { url: `data:${like.mimeType};base64,${base64}`, detail: like.detail };
  }
  if (like?.type === 'input_image') return { url: like.image_url, detail: like.detail };
  const parts = Array.isArray(like?.output) ? like.output : [];
  const images = parts.filter((part) => part.type === 'input_image');
  if (images.length !== 1 || images.length !== parts.length) {
    throw new Error('codex.emitImage takes a data URL, an input_image, { bytes, mimeType }, or the output of a tool with one image and no text');
  }
  return { url: images[0].image_url, detail: images[0].detail };
}

context.codex = Object.freeze({
  cwd: process.cwd(),
  homeDir: require('node:os').homedir(),
  tmpDir: require('node:os').tmpdir(),
  async tool(name, args) {
    active('tool');
    const output = await call(name, args);
    return { type: 'function_call_output', call_id: output.callId, output: output.output };
  },
  async emitImage(like) {
    active('emitImage');
    const { url, detail } = imageUrl(await like);
    if (!String(url).startsWith('data:')) throw new Error('codex.emitImage only accepts data URLs');
    send({ kind: 'image', url: String(url), detail: detail ?? null });
  },
});

function message(error) {
  const cause = error?.err ?? error;
  return String(cause?.message ?? cause);
}

function fatal(error) {
  send({
    kind: 'fatal',
    text: `js_repl kernel uncaught exception: ${message(error)}; kernel reset. Catch or handle async errors `
      + "(including Promise rejections and EventEmitter 'error' events) to avoid kernel termination.",
  });
  process.exit(1);
}

// An error ends the cell it comes up in. Nobody waits for one that comes up later.
function caught(error) {
  if (cell) end(error);
  else fatal(error);
}
process.on('uncaughtException', caught);
process.on('unhandledRejection', caught);
server._domain?.removeAllListeners('error').on('error', caught);

function end(error) {
  if (!cell) return;
  const failed = error !== null && error !== undefined;
  send({ kind: 'done', failed, text: failed ? message(error) : '' });
  cell = null;
}

listen(({ code }) => {
  cell = {};
  const imported = /^\s*import\s+(?:[\w*{][^'"]*from\s*)?['"]([^'"]+)['"]/m.exec(code);
  if (imported) {
    const name = imported[1];
    return end(new Error(`Top-level static import "${name}" is not supported in js_repl. Use await import("${name}") instead.`));
  }
  server.eval(`${code}\n`, context, 'js_repl', end);
});
